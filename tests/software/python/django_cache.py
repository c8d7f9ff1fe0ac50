"""django-redis as Django's cache, and Django's own Redis backend beside it."""

import django
from django.conf import settings

from program import URL, report

settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": URL,
            "KEY_PREFIX": "dj",
            "OPTIONS": {
                "CLIENT_CLASS": "django_redis.client.DefaultClient",
                "COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor",
            },
        },
        "own": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": URL},
    }
)
django.setup()

from django.core.cache import cache, caches  # noqa: E402

seen = {}
cache.set("a", {"list": [1, 2, 3]}, timeout=100)
seen["get"] = cache.get("a")
seen["ttl"] = 0 < cache.ttl("a") <= 100
seen["missing"] = cache.get("missing", "default")
seen["add"] = [cache.add("new", 1), cache.add("new", 2)]
seen["many"] = [cache.set_many({f"key:{n}": n for n in range(50)}), cache.get_many(["key:1", "key:2", "nothing"])]
cache.set("n", 5)
seen["incr"] = [cache.incr("n", 3), cache.decr("n")]
seen["get_or_set"] = [cache.get_or_set("computed", lambda: 42), cache.get_or_set("computed", lambda: 43)]
seen["keys"] = len(cache.keys("key:*"))
seen["iter"] = sum(1 for _ in cache.iter_keys("key:*"))
seen["deleted"] = cache.delete_pattern("key:*")
seen["touch"] = [cache.touch("a", 50), cache.ttl("a") <= 50]
seen["persist"] = [cache.persist("a"), cache.ttl("a")]
seen["long"] = len(cache.get_or_set("long", lambda: "x" * 100000))
with cache.lock("lock", timeout=5):
    seen["locked"] = cache.lock("lock", timeout=5).acquire(blocking=False)
seen["version"] = [cache.set("v", 1), cache.incr_version("v"), cache.get("v"), cache.get("v", version=2)]
own = caches["own"]
own.set_many({"x": 1, "y": [2]}, timeout=60)
seen["own"] = [own.get_many(["x", "y"]), own.incr("x"), own.touch("y", 10), own.delete_many(["x", "y"])]
cache.clear()
seen["cleared"] = cache.get("a")
report(seen)
