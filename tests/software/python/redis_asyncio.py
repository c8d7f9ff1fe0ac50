"""redis-py with asyncio: concurrent commands, locks, scripts, pub/sub, blocking reads."""

import asyncio

import redis.asyncio as redis

from program import URL, report


async def main():
    r = redis.Redis.from_url(URL, decode_responses=True)
    seen = {}
    await asyncio.gather(*(r.incr("n") for _ in range(50)))
    seen["n"] = await r.get("n")
    async with r.pipeline(transaction=True) as pipe:
        seen["pipeline"] = await pipe.set("a", 1).incr("a").get("a").execute()
    inside, most, runs = 0, 0, 0

    async def critical():
        nonlocal inside, most, runs
        for _ in range(5):
            async with r.lock("mutex", timeout=10, sleep=0.005):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1
                runs += 1

    await asyncio.gather(*(critical() for _ in range(6)))
    seen["lock"] = [most, runs]
    assert seen["lock"] == [1, 30]
    script = r.register_script("return {KEYS[1], ARGV[1], redis.call('ping')['ok']}")
    seen["script"] = await script(keys=["k"], args=["v"])
    async with r.pubsub() as pubsub:
        await pubsub.subscribe("news")
        heard = []

        async def listen():
            async for message in pubsub.listen():
                heard.append([message["type"], message["data"]])
                if message["data"] == "stop":
                    return

        listener = asyncio.create_task(listen())
        await asyncio.sleep(0)
        while await r.publish("news", "hello") == 0:
            await asyncio.sleep(0.01)
        await r.publish("news", "stop")
        await asyncio.wait_for(listener, 10)
        seen["heard"] = heard
    popped = asyncio.create_task(r.blpop(["jobs"], timeout=10))
    await r.rpush("jobs", "job")
    seen["popped"] = await popped
    await r.mset({f"key:{n}": n for n in range(500)})
    seen["scanned"] = len({key async for key in r.scan_iter(match="key:*", count=50)})
    await r.aclose()
    report(seen)


asyncio.run(main())
