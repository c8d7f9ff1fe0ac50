"""What every program here shares.

A program gets the URL of an empty server, does its work through a package as its users do, checks the outcome itself,
and prints what it saw as one line of JSON. Nothing in it depends on time, ids or order that the package does not
promise, so that the lines of two servers can be compared.
"""

import json
import sys
import time

URL = sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379/0"


def until(check, what, limit_s=30.0):
    """Polls until `check` gives something true."""
    end = time.monotonic() + limit_s
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"gave up waiting for {what}")
        time.sleep(0.02)


def report(seen):
    print(json.dumps(seen, sort_keys=True, default=str), flush=True)
