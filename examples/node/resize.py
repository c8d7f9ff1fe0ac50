#!/usr/bin/env python3
"""Runs one task: the payload comes on standard input, what is printed is the result."""
import json
import os
import sys
import time

task = json.load(sys.stdin)
time.sleep(task.get("seconds", 0))
name = os.environ["KUMI_NODE"].split("~")[0]
print(json.dumps({"resized": task["file"], "by": name, "attempt": int(os.environ["KUMI_ATTEMPT"])}))
