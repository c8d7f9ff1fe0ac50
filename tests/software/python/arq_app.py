"""arq: jobs, retries, deferral, unique ids, cron, in a burst worker. It needs an older redis-py than the others."""

import asyncio
from datetime import timedelta

from arq import Retry, create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from program import URL, report


async def double(ctx, number):
    return number * 2


async def flaky(ctx):
    if ctx["job_try"] < 3:
        raise Retry(defer=timedelta(milliseconds=20))
    return ctx["job_try"]


async def fails(ctx):
    raise ValueError("broken")


async def main():
    settings = RedisSettings.from_dsn(URL)
    pool = await create_pool(settings)
    jobs = [await pool.enqueue_job("double", n) for n in range(200)]
    retried = await pool.enqueue_job("flaky")
    failed = await pool.enqueue_job("fails")
    first = await pool.enqueue_job("double", 1, _job_id="unique")
    second = await pool.enqueue_job("double", 2, _job_id="unique")
    late = await pool.enqueue_job("double", 50, _defer_by=timedelta(milliseconds=300))
    seen = {"unique": [first is not None, second is None], "queued": await pool.zcard("arq:queue")}
    worker = Worker(functions=[func(double), func(flaky, max_tries=5), func(fails, max_tries=1)], redis_settings=settings,
                    burst=True, poll_delay=0.05, max_jobs=20, handle_signals=False)
    await worker.main()
    seen["worker"] = [worker.jobs_complete, worker.jobs_failed]
    seen["sum"] = sum([await job.result(timeout=10) for job in jobs])
    seen["retried"] = await retried.result(timeout=10)
    seen["late"] = await late.result(timeout=10)
    try:
        await failed.result(timeout=10)
    except ValueError as error:
        seen["failed"] = str(error)
    seen["left"] = await pool.zcard("arq:queue")
    await worker.close()
    report(seen)


asyncio.run(main())
