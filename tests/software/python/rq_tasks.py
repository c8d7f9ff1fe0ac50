"""The tasks of rq_jobs.py, which RQ imports by name."""

import redis


def double(number):
    return number * 2


def fail():
    raise ValueError("broken")


def flaky(url):
    attempts = redis.Redis.from_url(url).incr("attempts")
    if attempts < 3:
        raise ValueError("not yet")
    return attempts
