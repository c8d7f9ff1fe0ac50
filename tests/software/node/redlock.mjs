// redlock: a lock is held by one, extended, released, and taken over when its time is over.

import { Redis } from 'ioredis';
import Redlock from 'redlock';
import { assert, report, sleep, url } from './program.mjs';

const clients = [new Redis(url)];
const patient = new Redlock(clients, { retryCount: 200, retryDelay: 5, retryJitter: 5 });
const hasty = new Redlock(clients, { retryCount: 0 });
const seen = {};
const lock = await hasty.lock('resource', 5000);
seen.second = await hasty.lock('resource', 5000).then(() => 'got it', (error) => error.name);
const extended = await lock.extend(5000);
await extended.unlock();
seen.released = await clients[0].exists('resource');
seen.twice = await extended.unlock().then(() => 'ok', (error) => error.name);
await hasty.lock('short', 50);
await sleep(120);
seen.takenOver = await hasty.lock('short', 1000).then(() => 'got it', (error) => error.name);
let inside = 0;
let most = 0;
let runs = 0;
await Promise.all(Array.from({ length: 10 }, async () => {
  const held = await patient.lock('critical', 5000);
  most = Math.max(most, ++inside);
  await sleep(2);
  inside--;
  runs++;
  await held.unlock();
}));
seen.critical = [most, runs];
const several = await hasty.lock(['m1', 'm2'], 1000);
seen.several = await clients[0].exists('m1', 'm2');
await several.unlock();
assert.deepEqual(seen.critical, [1, 10]);
report(seen);
