#!/usr/bin/env python3
"""Answers all requests: a line of JSON for each one, and a line for each answer."""
import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "words.count":
        answer = {"payload": str(len(request["payload"].split()))}
    else:
        answer = {"error": f"no method {request['method']}"}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
