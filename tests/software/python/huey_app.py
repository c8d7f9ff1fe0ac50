"""Huey: tasks, retries, schedules, locks, pipelines, in a consumer with threads."""

import logging
import threading

from huey import RedisHuey, crontab
from huey.consumer import Consumer
from huey.exceptions import TaskException

from program import URL, report, until

logging.disable(logging.CRITICAL)
huey = RedisHuey("work", url=URL, results=True)
attempts = []


@huey.task()
def double(number):
    return number * 2


@huey.task(retries=3, retry_delay=0)
def flaky():
    attempts.append(1)
    if len(attempts) < 3:
        raise ValueError("not yet")
    return len(attempts)


@huey.task()
def plus(a, b):
    return a + b


@huey.task()
def fails():
    raise ValueError("broken")


seen = {}
results = [double(n) for n in range(200)]
seen["pending"] = huey.pending_count()
consumer = Consumer(huey, workers=4, periodic=False, check_worker_health=False, scheduler_interval=1, initial_delay=0.01,
                    max_delay=0.05, backoff=1.1)
consumer.start()
seen["sum"] = sum(result.get(blocking=True, timeout=30) for result in results)
# The error of an attempt is the result until the next attempt ends, so that up to two errors come first.
retried = flaky()
while "retried" not in seen:
    try:
        seen["retried"] = retried.get(blocking=True, timeout=30)
    except TaskException:
        assert len(attempts) <= 3
        retried.reset()
piped = huey.enqueue(plus.s(1, 2).then(plus, 10).then(plus, 100))
seen["pipeline"] = piped.get(blocking=True, timeout=30)
seen["scheduled"] = double.schedule((4,), delay=1).get(blocking=True, timeout=30)
failed = fails()
try:
    failed.get(blocking=True, timeout=30)
except Exception as error:
    seen["failed"] = type(error).__name__
with huey.lock_task("exclusive"):
    seen["locked"] = huey.is_locked("exclusive")
seen["unlocked"] = huey.is_locked("exclusive")
huey.put("value", {"k": 1})
seen["value"] = [huey.get("value"), huey.get("value")]
consumer.stop(graceful=True)
until(lambda: not any(thread.is_alive() for _, thread in consumer.worker_threads), "the workers' end")
report(seen)
