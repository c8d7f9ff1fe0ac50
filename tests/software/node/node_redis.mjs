// node-redis: RESP3, client-side caching, pools, scripts, pub/sub.

import { BasicClientSideCache, createClient } from 'redis';
import { createHash } from 'node:crypto';
import { assert, report, until, url } from './program.mjs';

const seen = {};
const cache = new BasicClientSideCache({ maxEntries: 100, ttl: 0, evictPolicy: 'LRU' });
const reader = createClient({ url, RESP: 3, clientSideCache: cache });
const writer = createClient({ url, RESP: 3 });
for (const client of [reader, writer]) {
  client.on('error', () => {});
  await client.connect();
}

// Reads are served from the cache until another client changes the key.
await writer.set('cached', 'one');
seen.first = [await reader.get('cached'), await reader.get('cached'), await reader.get('cached')];
const stats = () => { const { hitCount, missCount } = cache.stats(); return { hitCount, missCount }; };
seen.stats = stats();
await writer.set('cached', 'two');
seen.second = await until(async () => ((await reader.get('cached')) === 'two' ? 'two' : null), 'an invalidation');
await writer.hSet('hash', { a: '1', b: '2' });
seen.hash = await reader.hGetAll('hash');
await writer.hSet('hash', 'a', '3');
await until(async () => (await reader.hGetAll('hash')).a === '3', 'an invalidation of a hash');
await writer.sendCommand(['PSETEX', 'short', '60', 'gone soon']);
seen.short = await reader.get('short');
await until(async () => (await reader.get('short')) === null, 'an invalidation of an expired key');
await reader.get('cached');
await writer.flushAll();
await until(async () => (await reader.get('cached')) === null, 'an invalidation of everything');
assert.ok(stats().hitCount >= 2);

// Commands in one write, transactions, pub/sub, scripts, scanning.
const results = await Promise.all(Array.from({ length: 100 }, (_, n) => writer.set(`key:${n}`, `${n}`)));
seen.pool = results.every((result) => result === 'OK');
seen.transaction = await writer.multi().incr('n').incrBy('n', 5).get('n').exec();
const subscriber = writer.duplicate();
await subscriber.connect();
const heard = [];
await subscriber.subscribe('news', (message) => heard.push(message));
await writer.publish('news', 'hello');
await until(() => heard.length === 1, 'a message');
seen.heard = heard;
const lua = "return redis.call('GET', KEYS[1])";
const sha = await writer.scriptLoad(lua);
assert.equal(sha, createHash('sha1').update(lua).digest('hex'));
seen.script = await writer.evalSha(sha, { keys: ['key:7'] });
seen.zset = [await writer.zAdd('z', [{ score: 1.5, value: 'a' }, { score: 2, value: 'b' }]), await writer.zRangeWithScores('z', 0, -1)];
const found = new Set();
for await (const keys of writer.scanIterator({ MATCH: 'key:*', COUNT: 30 })) for (const key of [keys].flat()) found.add(key);
seen.scanned = found.size;
report(seen);
