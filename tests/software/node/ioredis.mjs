// ioredis: pipelines, transactions, scripts as commands, pub/sub, streams, scanning.

import { Redis } from 'ioredis';
import { assert, report, until, url } from './program.mjs';

const redis = new Redis(url);
const seen = {};
seen.pipeline = await redis.pipeline().set('a', 1).incr('a').get('a').lpush('a', 'x').exec()
  .then((results) => results.map(([error, value]) => (error ? error.message : value)));
seen.multi = await redis.multi().hset('h', { x: 1, y: 2 }).hgetall('h').zadd('z', 1, 'one', 2, 'two').zrange('z', 0, -1, 'WITHSCORES').exec();
redis.defineCommand('bump', { numberOfKeys: 1, lua: "local n = redis.call('incrby', KEYS[1], ARGV[1]) return {n, KEYS[1]}" });
seen.script = [await redis.bump('counter', 5), await redis.bump('counter', 6)];
await redis.script('FLUSH');
seen.afterFlush = await redis.bump('counter', 7);
await redis.watch('watched');
await redis.duplicate().set('watched', 'changed');
seen.watch = await redis.multi().set('watched', 'mine').exec();

const subscriber = redis.duplicate();
const heard = [];
subscriber.on('message', (channel, message) => heard.push([channel, message]));
subscriber.on('pmessage', (pattern, channel, message) => heard.push([pattern, channel, message]));
await subscriber.subscribe('news');
await subscriber.psubscribe('n*');
seen.receivers = await redis.publish('news', 'hello');
await until(() => heard.length === 2, 'messages');
seen.heard = heard;

await redis.xadd('stream', '1-1', 'k', 'v');
await redis.xgroup('CREATE', 'stream', 'workers', '0');
seen.stream = await redis.xreadgroup('GROUP', 'workers', 'one', 'COUNT', 10, 'STREAMS', 'stream', '>');
seen.acked = await redis.xack('stream', 'workers', '1-1');
const waiting = redis.duplicate().brpop('jobs', 5);
await redis.lpush('jobs', 'job');
seen.popped = await waiting;

const keys = new Set(Array.from({ length: 300 }, (_, n) => `scan:${n}`));
const pipeline = redis.pipeline();
for (const key of keys) pipeline.set(key, 'x', 'EX', 100);
await pipeline.exec();
for await (const batch of redis.scanStream({ match: 'scan:*', count: 50 })) batch.forEach((key) => keys.delete(key));
assert.equal(keys.size, 0);
seen.buffer = (await redis.getBuffer('scan:1')).toString();
seen.error = await redis.lpush('scan:1', 'x').catch((error) => error.message);
const fast = new Redis(url, { enableAutoPipelining: true });
seen.automatic = await Promise.all(Array.from({ length: 20 }, (_, n) => fast.incr('auto').then(() => n)));
seen.total = await fast.get('auto');
report(seen);
