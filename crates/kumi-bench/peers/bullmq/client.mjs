// The client of BullMQ for `kumi-bench jobs` and `kumi-bench node`. Takes: Redis URL, operation, tasks, concurrency.
//
// It does what src/jobs/client.rs does: says `ready`, waits for a line, carries out the operation, says `done`. The
// worker and the queue have BullMQ's defaults; finished jobs are kept, as they are by default.

import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const IN_FLIGHT = 64;
const BULK = 500;
const SETTLE_MS = 2000;
const BETWEEN_MS = 25;
const WAKE_LIMIT_MS = 20000;
const WAKES_AT_LEAST = 5;
const NAME = 'mail';

const [url, operation, tasks, concurrencyText] = process.argv.slice(2);
const count = Number(tasks);
const concurrency = Number(concurrencyText);
const body = 'x'.repeat(142);
const mail = (number) => ({ to: 'someone@example.org', number: 1000000000 + number, body });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const connect = () => new Redis(url, { maxRetriesPerRequest: null });

const go = () => {
  console.log('ready');
  return new Promise((resolve) => process.stdin.once('data', resolve));
};

const queue = new Queue(NAME, { connection: connect() });
await queue.waitUntilReady();

const work = (ran) =>
  new Worker(
    NAME,
    async (job) => {
      if (job.data.number < 1000000000) throw new Error('the task was not decoded');
      ran();
    },
    { connection: connect(), concurrency },
  );

let done = 'done';
if (operation === 'enqueue-one') {
  await go();
  for (let number = 0; number < count; number++) await queue.add(NAME, mail(number));
} else if (operation === 'enqueue-many') {
  await go();
  let next = 0;
  const caller = async () => {
    while (next < count) await queue.add(NAME, mail(next++));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
} else if (operation === 'enqueue-bulk') {
  await go();
  for (let first = 0; first < count; first += BULK) {
    const jobs = [];
    for (let number = first; number < Math.min(count, first + BULK); number++) {
      jobs.push({ name: NAME, data: mail(number) });
    }
    await queue.addBulk(jobs);
  }
} else if (operation === 'drain') {
  await go();
  let ran = 0;
  await new Promise((resolve) => {
    work(() => {
      if (++ran === count) resolve();
    });
  });
} else if (operation === 'wake') {
  let started = () => {};
  await work(() => started(process.hrtime.bigint())).waitUntilReady();
  await sleep(SETTLE_MS);
  await go();
  const times = [];
  const end = Date.now() + WAKE_LIMIT_MS;
  for (let number = 0; number < count; number++) {
    if (number >= WAKES_AT_LEAST && Date.now() >= end) break;
    await sleep(BETWEEN_MS);
    const start = new Promise((resolve) => (started = resolve));
    const begun = process.hrtime.bigint();
    await queue.add(NAME, mail(number));
    times.push(Number((await start) - begun) / 1000);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(Math.floor(times.length * share), times.length - 1)];
  done = `done ${at(0.5)} ${at(0.99)}`;
} else if (operation === 'idle') {
  await work(() => {}).waitUntilReady();
  await sleep(SETTLE_MS);
  await go();
  await new Promise(() => {});
} else if (operation === 'hold') {
  // For `kumi-bench node`: says which jobs began, and never ends them.
  await go();
  const hold = (job) => {
    console.log(`+ ${job.data.number}`);
    return new Promise(() => {});
  };
  const worker = new Worker(NAME, hold, { connection: connect(), concurrency });
  await worker.waitUntilReady();
  console.log('working');
  await new Promise(() => {});
} else {
  throw new Error(`no operation is named ${operation}`);
}
console.log(done);
// The bench ends this process.
await new Promise(() => {});
