// rate-limiter-flexible: points, blocking, penalties, unions, over ioredis.

import { Redis } from 'ioredis';
import { BurstyRateLimiter, RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible';
import { assert, report, url } from './program.mjs';

const storeClient = new Redis(url, { enableOfflineQueue: false });
await new Promise((resolve) => storeClient.once('ready', resolve));
const make = (keyPrefix, points, duration, more = {}) => new RateLimiterRedis({ storeClient, keyPrefix, points, duration, ...more });
const attempt = async (limiter, key, points = 1) => {
  try {
    const result = await limiter.consume(key, points);
    return result.remainingPoints ?? 'ok';
  } catch (rejection) {
    if (rejection instanceof Error) throw rejection;
    assert.ok(rejection.msBeforeNext === undefined || rejection.msBeforeNext > 0);
    return 'refused';
  }
};
const seen = {};
const limiter = make('login', 5, 60);
seen.consumed = [];
for (let n = 0; n < 7; n++) seen.consumed.push(await attempt(limiter, 'someone'));
seen.other = await attempt(limiter, 'other', 3);
const parallel = make('parallel', 100, 60);
const results = await Promise.all(Array.from({ length: 250 }, () => attempt(parallel, 'all')));
seen.parallel = results.filter((result) => result === 'refused').length;
const blocking = make('block', 1, 60, { blockDuration: 100 });
seen.blocked = [await attempt(blocking, 'x'), await attempt(blocking, 'x')];
const blockedTtl = await storeClient.ttl('block:x');
assert.ok(blockedTtl > 60 && blockedTtl <= 100, `${blockedTtl}`);
seen.penalty = (await limiter.penalty('fresh', 2)).consumedPoints;
seen.reward = (await limiter.reward('fresh', 1)).consumedPoints;
seen.get = (await limiter.get('fresh')).remainingPoints;
seen.deleted = [await limiter.delete('fresh'), await limiter.get('fresh')];
const union = new RateLimiterUnion(make('u1', 2, 60), make('u2', 3, 60));
seen.union = [];
for (let n = 0; n < 3; n++) seen.union.push(await union.consume('k').then(() => 'ok', () => 'refused'));
const bursty = new BurstyRateLimiter(make('slow', 1, 60), make('burst', 2, 60));
seen.bursty = [];
for (let n = 0; n < 4; n++) seen.bursty.push((await attempt(bursty, 'b')) === 'refused' ? 'refused' : 'ok');
report(seen);
