// BullMQ: bulk and single jobs, delays, retries, failures, priorities, flows, schedulers, rate limits, stalled jobs.

import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { assert, report, sleep, until, url } from './program.mjs';

const connect = () => new Redis(url, { maxRetriesPerRequest: null });
const connection = connect();
const seen = {};

// Two thousand jobs, processed once each.
{
  const queue = new Queue('mail', { connection });
  const ran = new Map();
  const jobs = Array.from({ length: 1900 }, (_, n) => ({ name: 'send', data: { n }, opts: { removeOnComplete: 100 } }));
  await queue.addBulk(jobs);
  for (let n = 1900; n < 2000; n++) await queue.add('send', { n }, { removeOnComplete: 100 });
  const worker = new Worker('mail', async (job) => { ran.set(job.data.n, (ran.get(job.data.n) ?? 0) + 1); return job.data.n * 2; }, { connection: connect(), concurrency: 50 });
  await until(async () => ran.size === 2000 && (await queue.getActiveCount()) === 0, 'all jobs');
  seen.once = [...ran.values()].every((times) => times === 1);
  seen.kept = await queue.getCompletedCount();
  seen.counts = await queue.getJobCounts('waiting', 'active', 'failed', 'delayed');
  await worker.close();
}

// Retries with backoff, and jobs that fail for good.
{
  const queue = new Queue('flaky', { connection });
  const events = new QueueEvents('flaky', { connection: connect() });
  await events.waitUntilReady();
  const job = await queue.add('third time', {}, { attempts: 5, backoff: { type: 'exponential', delay: 10 } });
  const bad = await queue.add('never', {}, { attempts: 2 });
  const fatal = await queue.add('fatal', {}, { attempts: 5 });
  const worker = new Worker('flaky', async (job) => {
    if (job.name === 'fatal') throw new UnrecoverableError('no use');
    if (job.name === 'never' || job.attemptsMade < 2) throw new Error(`attempt ${job.attemptsMade}`);
    return 'at last';
  }, { connection: connect() });
  seen.retried = await job.waitUntilFinished(events, 20000);
  await until(async () => (await bad.getState()) === 'failed' && (await fatal.getState()) === 'failed', 'failures');
  const again = async (id) => { const found = await queue.getJob(id); return [found.attemptsMade, found.failedReason]; };
  seen.failures = [(await again(job.id))[0], await again(bad.id), await again(fatal.id)];
  await worker.close();
  await (await queue.getJob(bad.id)).retry();
  seen.retriedByHand = await queue.getWaitingCount();
  await events.close();
}

// Delays and priorities.
{
  const queue = new Queue('order', { connection });
  const order = [];
  await queue.add('late', {}, { delay: 300 });
  for (const priority of [5, 1, 3, 2, 4]) await queue.add(`p${priority}`, {}, { priority });
  await queue.add('none', {});
  seen.delayed = await queue.getDelayedCount();
  const worker = new Worker('order', async (job) => { order.push(job.name); }, { connection: connect() });
  await until(() => order.length === 7, 'delayed and prioritised jobs');
  seen.order = order;
  await worker.close();
}

// A flow: the parent runs when its children have, and sees their results.
{
  const flow = new FlowProducer({ connection: connect() });
  let total;
  const worker = new Worker('flow', async (job) => {
    if (job.name !== 'sum') return job.data.value;
    total = Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
    return total;
  }, { connection: connect(), concurrency: 4 });
  await flow.add({ name: 'sum', queueName: 'flow', children: [1, 2, 3].map((value) => ({ name: 'part', queueName: 'flow', data: { value } })) });
  await until(() => total !== undefined, 'the parent of a flow');
  seen.flow = total;
  await worker.close();
  await flow.close();
}

// A job that repeats.
{
  const queue = new Queue('repeat', { connection });
  let runs = 0;
  const worker = new Worker('repeat', async () => { runs++; }, { connection: connect() });
  await queue.upsertJobScheduler('tick', { every: 50, limit: 3 }, { name: 'tick' });
  await until(() => runs >= 3, 'repeated jobs');
  await sleep(200);
  seen.repeated = runs;
  await worker.close();
}

// A rate limit: no more than five jobs in a window.
{
  const queue = new Queue('limited', { connection });
  await queue.addBulk(Array.from({ length: 12 }, () => ({ name: 'call', data: {} })));
  const times = [];
  const worker = new Worker('limited', async () => { times.push(Date.now()); }, { connection: connect(), limiter: { max: 5, duration: 400 } });
  await until(() => times.length === 12, 'limited jobs');
  seen.limited = times[11] - times[0] >= 700;
  await worker.close();
}

// A worker that dies: its job is stalled, and another worker runs it.
{
  const queue = new Queue('stalled', { connection });
  await queue.add('work', {});
  const dying = new Worker('stalled', () => new Promise(() => {}), { connection: connect(), lockDuration: 300, skipLockRenewal: true, skipStalledCheck: true });
  await until(async () => (await queue.getActiveCount()) === 1, 'the first worker');
  let recovered = 0;
  const rescuer = new Worker('stalled', async () => { recovered++; }, { connection: connect(), stalledInterval: 200, lockDuration: 1000 });
  await until(() => recovered === 1, 'the stalled job', 20000);
  seen.recovered = recovered;
  await rescuer.close();
  await dying.close(true);
}

// Pausing, draining, obliterating.
{
  const queue = new Queue('admin', { connection });
  await queue.addBulk(Array.from({ length: 10 }, (_, n) => ({ name: 'job', data: { n } })));
  await queue.pause();
  seen.paused = [await queue.isPaused(), (await queue.getJobCounts('paused', 'waiting'))];
  await queue.resume();
  await queue.drain();
  seen.drained = await queue.count();
  await queue.obliterate({ force: true });
  seen.left = (await connection.keys('bull:admin:*')).length;
}

assert.equal(seen.once, true);
assert.equal(seen.retried, 'at last');
assert.equal(seen.flow, 6);
assert.equal(seen.limited, true);
report(seen);
