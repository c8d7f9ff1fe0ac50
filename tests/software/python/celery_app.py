"""Celery: broker and result backend, retries, chords, groups, countdowns, revoking."""

import sys
import threading

from celery import Celery, chain, chord, group
from celery.contrib.testing.worker import start_worker

from program import URL, report

app = Celery("work", broker=URL, backend=URL)
app.conf.update(task_always_eager=False, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True,
                result_expires=100, worker_prefetch_multiplier=4)
runs = {"flaky": 0, "lock": threading.Lock()}


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=5)
def flaky(self):
    runs["flaky"] += 1
    if runs["flaky"] < 3:
        raise self.retry(countdown=0.05, exc=ValueError("not yet"))
    return "at last"


@app.task
def fails():
    raise KeyError("broken")


seen = {}
with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, shutdown_timeout=20):
    results = [add.delay(n, n) for n in range(200)]
    seen["sum"] = sum(result.get(timeout=30) for result in results)
    seen["group"] = group(add.s(n, 1) for n in range(5))().get(timeout=30)
    seen["chain"] = chain(add.s(1, 2), add.s(10), add.s(100))().get(timeout=30)
    seen["chord"] = chord((add.s(n, n) for n in range(10)), total.s())().get(timeout=30)
    seen["retried"] = [flaky.delay().get(timeout=30), runs["flaky"]]
    failed = fails.delay()
    try:
        failed.get(timeout=30)
    except KeyError as error:
        seen["failed"] = str(error)
    seen["state"] = failed.state
    seen["later"] = add.apply_async((3, 4), countdown=0.3).get(timeout=30)
report(seen)
sys.stdout.flush()
