"""RQ: jobs, failures, retries, dependencies, delays, in a burst worker."""

import redis
from rq import Queue, Retry, SimpleWorker
from rq.registry import FailedJobRegistry, FinishedJobRegistry

import rq_tasks
from program import URL, report

connection = redis.Redis.from_url(URL)
queue = Queue("work", connection=connection)
jobs = [queue.enqueue(rq_tasks.double, n, result_ttl=500) for n in range(100)]
first = queue.enqueue(rq_tasks.double, 21, result_ttl=500)
second = queue.enqueue(rq_tasks.double, 1, depends_on=first, result_ttl=500)
bad = queue.enqueue(rq_tasks.fail)
retried = queue.enqueue(rq_tasks.flaky, URL, retry=Retry(max=3))
seen = {"queued": len(queue)}
SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
seen["results"] = sum(job.return_value() for job in jobs)
seen["dependent"] = [second.get_status().value, second.return_value()]
seen["failed"] = [bad.get_status().value, len(FailedJobRegistry(queue=queue))]
seen["retried"] = [retried.get_status().value, retried.return_value()]
seen["finished"] = len(FinishedJobRegistry(queue=queue))
seen["left"] = len(queue)
report(seen)
