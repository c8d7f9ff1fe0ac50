"""redis-py: pipelines, scripts, locks, pub/sub, streams. Its client-side cache wants Redis 7.4, so node-redis tests that."""

import threading

import redis

from program import URL, report, until

r = redis.Redis.from_url(URL, decode_responses=True)
seen = {}

with r.pipeline(transaction=True) as pipe:
    seen["pipeline"] = pipe.set("a", 1).incr("a").get("a").hset("h", mapping={"x": 1}).hgetall("h").execute()
with r.pipeline(transaction=False) as pipe:
    seen["errors"] = [str(result) for result in pipe.lpush("a", 1).get("a").execute(raise_on_error=False)]


def take(pipe):
    stock = int(pipe.get("stock"))
    pipe.multi()
    if stock > 0:
        pipe.decr("stock")


r.set("stock", 50)
threads = [threading.Thread(target=lambda: [r.transaction(take, "stock") for _ in range(10)]) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
seen["optimistic"] = r.get("stock")

script = r.register_script("local n = redis.call('incrby', KEYS[1], ARGV[1]) return {n, KEYS[1], false, {1, 2}}")
seen["script"] = [script(keys=["n"], args=[2]), script(keys=["n"], args=[3])]
r.script_flush()
seen["reloaded"] = script(keys=["n"], args=[4])
r.function_load("#!lua name=lib\nredis.register_function('twice', function(keys, args) return args[1] * 2 end)")
seen["function"] = r.fcall("twice", 0, 21)
seen["script_error"] = None
try:
    r.eval("return redis.call('lpush', 'a', 1)", 0)
except redis.ResponseError as error:
    seen["script_error"] = str(error).split(" script:")[0]

held, most, runs = 0, 0, 0


def critical():
    global held, most, runs
    client = redis.Redis.from_url(URL)
    for _ in range(10):
        with client.lock("mutex", timeout=10, sleep=0.005):
            held += 1
            most = max(most, held)
            held -= 1
            runs += 1


threads = [threading.Thread(target=critical) for _ in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
seen["lock"] = [most, runs]
assert seen["lock"] == [1, 50]
lock = r.lock("extended", timeout=5)
assert lock.acquire(blocking=False)
seen["not_twice"] = r.lock("extended", timeout=5).acquire(blocking=False)
seen["extended"] = lock.extend(10, replace_ttl=True)
lock.release()
try:
    lock.release()
except redis.exceptions.LockError as error:
    seen["released"] = str(error)

pubsub = r.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
pubsub.psubscribe("n*")
until(lambda: r.publish("news", "ready?") == 2, "subscriptions")
# What was published before both subscriptions were there may have reached one of them.
assert r.publish("news", "now") == 2
heard = []


def hear():
    message = pubsub.get_message(timeout=1)
    if message and message["data"] == "now":
        heard.append(message["type"])
    return len(heard) == 2


until(hear, "messages")
seen["messages"] = sorted(heard)

r.xadd("stream", {"k": "v"}, id="1-1")
r.xgroup_create("stream", "workers", id="0")
seen["stream"] = r.xreadgroup("workers", "one", {"stream": ">"}, count=10)
seen["pending"] = r.xpending("stream", "workers")["pending"]
seen["ack"] = r.xack("stream", "workers", "1-1")

seen["info"] = [r.info("server")["redis_mode"], type(r.info("stats")["tracking_total_keys"]).__name__]
report(seen)
