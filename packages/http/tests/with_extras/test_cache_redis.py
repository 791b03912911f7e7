"""Caches in a real Redis: shared, invalidated everywhere, and away without harm (S-54, S-98)."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest
from http_redis import Server, connected, started

from treefold_http import Application
from treefold_http._redis import close_redis
from treefold_http._runtime.current_application import enter_application
from treefold_http.cache import Cache
from treefold_http.cache._cache import CacheState
from treefold_http.cache._memory import MemoryBackend
from treefold_http.cache._redis import RedisBackend

if TYPE_CHECKING:
    from packages.http.tests.conftest import Lines

Work = Callable[..., Awaitable[None]]


@pytest.fixture
def own_server() -> Iterator[Server]:
    with started() as made:
        yield made


def run(url: str, work: Work, alias: str | None = None, *, backend: str = "redis") -> None:
    """Do something with two caches of one alias: those of two workers."""
    name = alias or f"test-{secrets.token_hex(8)}"

    def worker() -> Cache:
        make = {"redis": RedisBackend, "late redis": LateRedis}.get(backend)
        kept = LateMemory() if make is None else make(url, name, app)
        place = CacheState(kept)
        return Cache(name, lambda alias, app: place)

    app = Application("shop")

    async def main() -> None:
        async with asyncio.timeout(30):
            try:
                await work(worker(), worker())
            finally:
                await close_redis()

    with enter_application(app):
        asyncio.run(main())


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "ä\0\n", [], {"a": [1, None]}, 10**30])
def test_a_value_of_one_worker_is_read_by_another(redis_url: str, value: Any) -> None:
    async def work(here: Cache, there: Cache) -> None:
        await here.set("k", value, ttl=60, tags=["t", "ä b=;c\n"])
        missing = object()
        found = await there.get("k", missing)
        assert (type(found), found) == (type(value), value)
        assert await asyncio.to_thread(there.sync.get, "k", missing) == value
        assert await there.delete("k") is True
        assert await here.delete("k") is False
        assert await here.get("k", missing) is missing

    run(redis_url, work)


def test_tags_and_clear_reach_every_worker(redis_url: str) -> None:
    async def work(here: Cache, there: Cache) -> None:
        await here.set("a", 1, ttl=60, tags=["x"])
        await here.set("b", 2, ttl=60, tags=["x", "y"])
        await here.set("c", 3, ttl=60)
        assert await there.invalidate("y") is True
        assert await there.invalidate() is True  # no tag, and nothing to tell
        assert [await here.get(k) for k in "abc"] == [1, None, 3]
        await asyncio.to_thread(there.sync.invalidate, "x")
        assert [await here.get(k) for k in "abc"] == [None, None, 3]
        assert await asyncio.to_thread(there.sync.clear) is True
        assert await here.get("c") is None

    run(redis_url, work)


def test_two_caches_of_one_server_do_not_see_each_other(redis_url: str) -> None:
    async def work(here: Cache, _: Cache) -> None:
        await here.set("k", 1, ttl=60)
        place = CacheState(RedisBackend(redis_url, f"{here.alias}x", None))
        other = Cache(f"{here.alias}x", lambda alias, app: place)
        assert await other.get("k") is None
        await other.clear()
        assert await here.get("k") == 1

    run(redis_url, work)


def test_a_value_expires(redis_url: str) -> None:
    async def work(here: Cache, _: Cache) -> None:
        await here.set("k", 1, ttl=0.05)
        await asyncio.sleep(0.06)
        assert await here.get("k") is None

    run(redis_url, work)


def test_a_value_of_before_an_invalidation_elsewhere_is_not_found_after_it(redis_url: str) -> None:
    async def work(here: Cache, there: Cache) -> None:
        async def old() -> str:
            await there.invalidate("t")
            return "old"

        async def new() -> str:
            return "new"

        assert await here.get_or_set("k", old, ttl=60, tags=["t"]) == "old"
        assert await here.get_or_set("k", new, ttl=60, tags=["t"]) == "new"
        assert await there.get("k") == "new"

    run(redis_url, work)


class Stop:
    """A computation of "old", sync or async, that waits until it may end."""

    def __init__(self) -> None:
        self.begun, self.finish = threading.Event(), threading.Event()

    def make(self) -> str:
        self.begun.set()
        assert self.finish.wait(10)
        return "old"

    async def amake(self) -> str:
        return await asyncio.to_thread(self.make)

    async def compute(self, cache: Cache, half: str, key: str = "k") -> Any:
        if half == "async":
            return await cache.get_or_set(key, self.amake, ttl=60, tags=["t"])
        return await asyncio.to_thread(cache.sync.get_or_set, key, self.make, ttl=60, tags=["t"])


ENDS: dict[str, Callable[[Any], Any]] = {
    "delete": lambda cache: cache.delete("k"),
    "invalidate": lambda cache: cache.invalidate("t"),
    "clear": lambda cache: cache.clear(),
}
halves = pytest.mark.parametrize("half", ["sync", "async"])
ends = pytest.mark.parametrize("end", ENDS)
ends_halves = pytest.mark.parametrize("end_half", ["sync", "async"])
backends = pytest.mark.parametrize("backend", ["memory", "redis"])


async def end_computation(cache: Cache, half: str, end: str) -> None:
    if half == "async":
        await ENDS[end](cache)
    else:
        await asyncio.to_thread(ENDS[end], cache.sync)


@backends
@halves
@ends
@ends_halves
def test_a_value_of_before_its_end_is_not_kept_after_it(
    redis_url: str, backend: str, half: str, end: str, end_half: str
) -> None:
    async def work(here: Cache, _: Cache) -> None:
        stop = Stop()
        computing = asyncio.ensure_future(stop.compute(here, half))
        await asyncio.to_thread(stop.begun.wait, 10)
        await end_computation(here, end_half, end)
        stop.finish.set()
        assert await computing == "old"
        assert await here.get("k") is None
        assert here.state.turns == here.state.flights == {}

        async def new() -> str:
            return "new"

        assert await here.get_or_set("k", new, ttl=60, tags=["t"]) == "new"
        assert await here.get("k") == "new"

    run(redis_url, work, backend=backend)


@backends
@halves
@ends_halves
def test_a_deletion_stops_no_computation_of_another_key(
    redis_url: str, backend: str, half: str, end_half: str
) -> None:
    async def work(here: Cache, _: Cache) -> None:
        stop = Stop()
        computing = asyncio.ensure_future(stop.compute(here, half, "other"))
        await asyncio.to_thread(stop.begun.wait, 10)
        await end_computation(here, end_half, "delete")
        stop.finish.set()
        await computing
        assert await here.get("other") == "old"

    run(redis_url, work, backend=backend)


@backends
@halves
@ends_halves
def test_a_value_that_is_set_after_a_deletion_stays(
    redis_url: str, backend: str, half: str, end_half: str
) -> None:
    async def work(here: Cache, _: Cache) -> None:
        stop = Stop()
        computing = asyncio.ensure_future(stop.compute(here, half))
        await asyncio.to_thread(stop.begun.wait, 10)
        await end_computation(here, end_half, "delete")
        await here.set("k", "new", ttl=60)
        stop.finish.set()
        assert await computing == "old"
        assert await here.get("k") == "new"

    run(redis_url, work, backend=backend)


@backends
@ends_halves
def test_a_thread_that_waited_for_a_deleted_computation_keeps_its_own(
    redis_url: str, backend: str, end_half: str
) -> None:
    async def work(here: Cache, _: Cache) -> None:
        stop = Stop()
        computing = asyncio.ensure_future(stop.compute(here, "sync"))
        await asyncio.to_thread(stop.begun.wait, 10)
        waiting = asyncio.ensure_future(
            asyncio.to_thread(here.sync.get_or_set, "k", lambda: "new", ttl=60)
        )
        while here.state.turns["k"].users < 2:  # noqa: ASYNC110 - a thread counts
            await asyncio.sleep(0.001)
        await end_computation(here, end_half, "delete")
        stop.finish.set()
        assert [await computing, await waiting] == ["old", "new"]
        assert await here.get("k") == "new"

    run(redis_url, work, backend=backend)


class Late:
    """Calls a function before the next value is written, once the computation has looked."""

    before_write: Callable[[], Any] | None = None

    def call_before(self) -> None:
        if (before := self.before_write) is not None:
            self.before_write = None
            before()

    def write_entry(self, *args: Any, **kwargs: Any) -> None:
        self.call_before()
        cast("Any", super()).write_entry(*args, **kwargs)

    async def awrite_entry(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.to_thread(self.call_before)
        await cast("Any", super()).awrite_entry(*args, **kwargs)


class LateMemory(Late, MemoryBackend):
    pass


class LateRedis(Late, RedisBackend):
    pass


@backends
@halves
@ends
def test_an_end_just_before_the_value_is_written_removes_it(
    redis_url: str, backend: str, half: str, end: str
) -> None:
    async def work(here: Cache, _: Cache) -> None:
        stop = Stop()
        late: Any = here.state.backend
        late.before_write = lambda: ENDS[end](here.sync)
        stop.finish.set()
        assert await stop.compute(here, half) == "old"
        assert late.before_write is None
        assert await here.get("k") is None

    run(redis_url, work, backend=f"late {backend}")


def test_s55_two_hundred_misses_of_one_key_are_one_call(redis_url: str) -> None:
    async def work(here: Cache, _: Cache) -> None:
        calls = 0

        async def make() -> int:
            nonlocal calls
            calls += 1
            return calls

        found = await asyncio.gather(*(here.get_or_set("k", make, ttl=60) for _ in range(200)))
        assert (found, calls) == ([1] * 200, 1)
        assert await asyncio.to_thread(here.sync.get_or_set, "k", lambda: 5, ttl=60) == 1
        assert await asyncio.to_thread(here.sync.get_or_set, "l", lambda: 5, ttl=60) == 5
        assert await here.get("l") == 5

    run(redis_url, work)


def test_s54_what_somebody_else_wrote_is_a_miss(own_server: Server, lines: Lines) -> None:
    async def work(here: Cache, _: Cache) -> None:
        await here.set("k", 1, ttl=60)
        with connected(own_server.url) as redis:
            (key,) = redis.keys("treefold:*:cache:*value*")
            for garbage in (
                b"cos\nsystem\n(S'x'\ntR.",
                b"\x80\x04\x95.",
                b"",
                b"\n",
                b"\n{",
                b"=;\n1",
            ):
                redis.set(key, garbage)
                assert await here.get("k", "miss") in ("miss", 1 if garbage == b"=;\n1" else "miss")
            redis.delete(key)
            redis.lpush(key, b"1")
        assert await here.get("k", "miss") == "miss"

    run(own_server.url, work)


def test_a_value_above_a_megabyte_is_not_kept(redis_url: str) -> None:
    async def work(here: Cache, _: Cache) -> None:
        await here.set("k", "x" * 2_000_000, ttl=60)
        assert await here.get("k") is None

    run(redis_url, work)


def test_without_redis_every_read_is_a_miss_in_bounded_time(
    own_server: Server, lines: Lines
) -> None:
    async def work(here: Cache, there: Cache) -> None:
        del there
        await here.set("k", 1, ttl=60)
        own_server.freeze()

        async def make() -> int:
            return 2

        for _ in range(8):
            assert await asyncio.wait_for(here.get_or_set("k", make, ttl=60), 10) == 2
        await here.set("k", 3, ttl=60)
        assert await here.delete("k") is False
        own_server.resume()

    run(own_server.url, work)
    (line,) = [text for text in lines.texts(30) if "redis" in text]
    assert "caches miss" in line


def test_an_invalidation_that_redis_did_not_hear_is_sent_before_the_next_read(
    own_server: Server,
) -> None:
    async def work(here: Cache, there: Cache) -> None:
        await here.set("k", 1, ttl=60, tags=["t"])
        await here.set("l", 2, ttl=60)
        own_server.freeze()
        assert await here.invalidate("t") is False
        assert await here.delete("l") is False
        own_server.resume()
        await asyncio.sleep(1.1)  # the pause of the client
        assert await here.get("k") is None
        assert [await there.get("k"), await there.get("l")] == [None, None]
        assert await here.invalidate("t") is True

    run(own_server.url, work)
