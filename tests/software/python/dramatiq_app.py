"""Dramatiq: actors, results, retries, delays, pipelines."""

import threading

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from program import URL, report

broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)
lock, attempts = threading.Lock(), []


@dramatiq.actor(store_results=True)
def double(number):
    return number * 2


@dramatiq.actor(store_results=True, max_retries=5, min_backoff=20, max_backoff=50)
def flaky():
    with lock:
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError("not yet")
    return len(attempts)


@dramatiq.actor(max_retries=0)
def fails():
    raise ValueError("broken")


worker = dramatiq.Worker(broker, worker_threads=4, worker_timeout=100)
worker.start()
seen = {}
messages = [double.send(n) for n in range(200)]
seen["sum"] = sum(message.get_result(block=True, timeout=30000) for message in messages)
seen["retried"] = flaky.send().get_result(block=True, timeout=30000)
seen["pipeline"] = (double.message(1) | double.message() | double.message()).run().get_result(block=True, timeout=30000)
seen["delayed"] = double.send_with_options(args=(5,), delay=200).get_result(block=True, timeout=30000)
fails.send()
broker.join(fails.queue_name)
worker.join()
seen["dead"] = broker.client.zcard(f"dramatiq:{fails.queue_name}.XQ")
worker.stop()
report(seen)
