"""Caches in memory: values, times, tags, bounds, and one computation for many (S-54, S-55)."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import treefold_http
from treefold_http import Application, BootError, Settings, SettingsError
from treefold_http.cache import Cache, _memory, cached, configure_cache, get_cache
from treefold_http.cache._memory import _TAG_BYTES, MemoryBackend


@pytest.fixture
def cache() -> Cache:
    return get_cache()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await work()

    asyncio.run(main())


# -- values


VALUES: list[Any] = [None, True, 0, 1.5, "ä\0", "", [], {}, [1, [None, {"a": []}]], {"": 1}, 10**30]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_comes_back_as_it_was(cache: Cache, value: Any) -> None:
    async def work() -> None:
        await cache.set("k", value, ttl=60)
        missing = object()
        found = await cache.get("k", missing)
        assert found is not missing
        assert (type(found), found) == (type(value), value)
        assert cache.sync.get("k", missing) == value
        assert await cache.delete("k") is True
        assert await cache.delete("k") is False
        assert await cache.get("k", missing) is missing

    run(work)


@pytest.mark.parametrize("value", [(1, 2), {1: 2}, b"x", object(), {"a": {"b": {1, 2}}}])
def test_a_value_that_json_cannot_give_back_is_refused(cache: Cache, value: Any) -> None:
    async def work() -> None:
        with pytest.raises(
            TypeError, match=r"^The value of cache key 'k' must (consist of text|have text keys)"
        ):
            await cache.set("k", value, ttl=60)
        assert await cache.get("k") is None

    run(work)


def test_readers_share_no_list(cache: Cache) -> None:
    async def work() -> None:
        made = [1]
        await cache.set("k", made, ttl=60)
        made.append(2)
        (await cache.get("k")).append(3)
        assert await cache.get("k") == [1]

        async def make() -> list[int]:
            return [1]

        first = await cache.get_or_set("l", make, ttl=60)
        first.append(2)
        assert await cache.get_or_set("l", make, ttl=60) == [1]

    run(work)


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), "60", None])
def test_a_time_that_is_none_is_refused(cache: Cache, ttl: Any) -> None:
    with pytest.raises(ValueError, match="ttl must be a number of seconds above 0"):
        cache.sync.set("k", 1, ttl=ttl)
    with pytest.raises(ValueError, match="ttl must be a number of seconds above 0"):
        cached(ttl)


def test_a_value_expires(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.sync.set("k", 1, ttl=60)
    clock = _memory.monotonic
    monkeypatch.setattr(_memory, "monotonic", lambda: clock() + 59)
    assert cache.sync.get("k") == 1
    monkeypatch.setattr(_memory, "monotonic", lambda: clock() + 61)
    assert cache.sync.get("k") is None


def test_s54_bytes_that_are_not_json_are_a_miss(cache: Cache) -> None:
    for garbage in (b"cos\nsystem\n(S'x'\ntR.", b"\x80\x04\x95", b"", b"{", b"NaN", b"\xff"):
        cache.state.backend.write_entry("k", garbage, 60, ())
        assert cache.sync.get("k", "miss") == "miss"


def test_s54_no_module_of_the_package_unpickles() -> None:
    folder = Path(treefold_http.__file__).parent
    forbidden = ("import pickle", "import marshal", "import shelve", "yaml.load", "from pickle")
    found = [
        (path.name, word)
        for path in folder.rglob("*.py")
        for word in forbidden
        if word in path.read_text(encoding="utf-8")
    ]
    assert found == []


# -- tags


def test_tags_remove_what_has_one_of_them(cache: Cache) -> None:
    async def work() -> None:
        await cache.set("a", 1, ttl=60, tags=["x"])
        await cache.set("b", 2, ttl=60, tags=["x", "y"])
        await cache.set("c", 3, ttl=60, tags=["z"])
        await cache.set("d", 4, ttl=60)
        assert await cache.invalidate("y", "none") is True
        assert [await cache.get(k) for k in "abcd"] == [1, None, 3, 4]
        await cache.invalidate("x")
        assert [await cache.get(k) for k in "abcd"] == [None, None, 3, 4]
        await cache.clear()
        assert [await cache.get(k) for k in "abcd"] == [None] * 4

    run(work)


@pytest.mark.parametrize("end", ["invalidate", "delete", "clear"])
def test_a_value_of_before_an_invalidation_is_not_kept_after_it(cache: Cache, end: str) -> None:
    async def work() -> None:
        begun, finish = asyncio.Event(), asyncio.Event()

        async def old() -> str:
            begun.set()
            await finish.wait()
            return "old"

        async def new() -> str:
            return "new"

        slow = asyncio.ensure_future(cache.get_or_set("k", old, ttl=60, tags=["t"]))
        await begun.wait()
        if end == "invalidate":
            await cache.invalidate("t")
        elif end == "delete":
            await cache.delete("k")
        else:
            await cache.clear()
        assert await cache.get_or_set("k", new, ttl=60, tags=["t"]) == "new"
        finish.set()
        assert await slow == "old"
        assert await cache.get("k") == "new"

    run(work)


@pytest.mark.parametrize("tags", ["text", [""], ["a\0b"]])
def test_tags_are_a_list_of_names(cache: Cache, tags: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"tags must be a list|A tag must be a name"):
        cache.sync.set("k", 1, ttl=60, tags=tags)


def test_a_tag_that_is_named_twice_is_one(cache: Cache) -> None:
    cache.sync.set("k", 1, ttl=60, tags=["t", "t"])
    assert cache.sync.get("k") == 1
    assert cache.sync.delete("k")
    cache.sync.set("k", 2, ttl=60, tags=["t", "t"])
    assert cache.sync.invalidate("t")
    assert cache.sync.get("k") is None


# -- bounds


def test_s55_many_keys_stay_within_the_bytes_and_the_used_ones_stay() -> None:
    backend = MemoryBackend(max_bytes=200_000)
    backend.write_entry("used", b"1", 60, ("t",))
    for number in range(20_000):
        backend.write_entry(f"key-{number}", b"x" * 50, 60, (f"tag-{number}",))
        assert backend.read_entry("used", ())[0] == b"1"
    assert backend._bytes <= 200_000
    assert len(backend._entries) == len(backend._keys_by_tag) < 700
    sizes = [entry.size for entry in backend._entries.values()]
    assert sum(sizes) + len(backend._keys_by_tag) * _TAG_BYTES == backend._bytes
    for number in range(20_000):
        backend.invalidate_tags([f"other-{number}"])
    assert len(backend._invalidations) <= 10_000


@pytest.mark.parametrize(
    ("size", "tags", "shared"),
    [(20, 0, 1), (60, 1, 1), (20, 2, 1), (60, 2, 100), (450, 3, 100), (3000, 1, 1)],
)
def test_s55_the_bytes_that_are_counted_are_those_of_the_process(
    size: int, tags: int, shared: int
) -> None:
    import tracemalloc

    gc.collect()
    tracemalloc.start()
    backend = MemoryBackend(max_bytes=4_000_000)
    count = 4_000_000 // (size + 200)
    for number in range(count):
        named = [f"tag-{tag}-{number // shared}" for tag in range(tags)]
        backend.write_entry(f"key-{number}", b"x" * size, 60, named)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(backend._entries) < count, "The bound was not reached"
    assert taken < 1.1 * 4_000_000


def test_s55_an_entry_that_leaves_takes_its_tags_with_it() -> None:
    backend = MemoryBackend(max_bytes=100_000)
    backend.write_entry("a", b"x", 60, ("one", "two"))
    backend.write_entry("b", b"x", 60, ("two",))
    backend.invalidate_tags(["one"])
    assert list(backend._keys_by_tag) == ["two"]
    backend.delete_entry("b")
    assert (backend._bytes, backend._keys_by_tag) == (0, {})


def test_a_value_too_large_for_the_cache_is_not_kept() -> None:
    backend = MemoryBackend(max_bytes=8000)
    backend.write_entry("small", b"x", 60, ())
    backend.write_entry("large", b"x" * 1000, 60, ())
    assert backend.read_entry("large", ())[0] is None
    assert backend.read_entry("small", ())[0] == b"x"


# -- one call


def test_s55_two_hundred_misses_of_one_key_are_one_call(cache: Cache) -> None:
    async def work() -> None:
        calls = 0

        async def make() -> int:
            nonlocal calls
            calls += 1
            await asyncio.sleep(0.01)
            return calls

        found = await asyncio.gather(*(cache.get_or_set("k", make, ttl=60) for _ in range(200)))
        assert (found, calls) == ([1] * 200, 1)

    run(work)


def test_s55_threads_make_a_value_once(cache: Cache) -> None:
    calls: list[int] = []
    together = threading.Barrier(8)

    def make() -> int:
        calls.append(1)
        time.sleep(0.05)
        return len(calls)

    def ask(_: int) -> Any:
        together.wait()
        return cache.sync.get_or_set("k", make, ttl=60)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [1] * 8
    assert cache.state.turns == {}


def test_a_caller_that_leaves_takes_the_value_from_no_other(cache: Cache) -> None:
    async def work() -> None:
        finish = asyncio.Event()

        async def make() -> str:
            await finish.wait()
            return "made"

        callers = [asyncio.ensure_future(cache.get_or_set("k", make, ttl=60)) for _ in range(3)]
        await asyncio.sleep(0)
        callers[0].cancel()
        callers[1].cancel()
        finish.set()
        await asyncio.wait(callers)
        assert await callers[2] == "made"
        assert await cache.get("k") == "made"

    run(work)


def test_what_fails_is_raised_to_all_and_not_kept(cache: Cache) -> None:
    async def work() -> None:
        async def fail() -> Any:
            await asyncio.sleep(0)
            raise LookupError("no")

        found = await asyncio.gather(
            *(cache.get_or_set("k", fail, ttl=60) for _ in range(5)), return_exceptions=True
        )
        assert [str(error) for error in found] == ["no"] * 5

        async def make() -> int:
            return 1

        assert await cache.get_or_set("k", make, ttl=60) == 1

    run(work)


def test_a_cache_lives_in_one_loop_after_another(cache: Cache) -> None:
    async def work() -> None:
        async def make() -> int:
            return 1

        assert await cache.get_or_set("k", make, ttl=60) == 1

    run(work)
    run(work)


# -- functions


calls: list[Any] = []


@cached(60)
async def double(x: int, *more: int, by: int = 2, **named: Any) -> int:
    calls.append((x, by))
    return x * by


@cached(60)
def plain(x: int) -> int:
    calls.append(x)
    return x


def test_a_function_is_called_once_for_the_same_arguments() -> None:
    calls.clear()

    async def work() -> None:
        assert [await double(1), await double(x=1), await double(1, by=2)] == [2, 2, 2]
        assert len(calls) == 1
        different: list[Any] = [
            await double(2),
            await double(1, by=3),
            await double(1, 0),
            await double(1, a=0),
            await double("1"),  # pyright: ignore[reportArgumentType] - hostile
            await double(True),
            await double(1.0),  # pyright: ignore[reportArgumentType] - hostile
        ]
        assert len(calls) == 1 + len(different)
        assert [plain(1), plain(1), plain(x=1)] == [1, 1, 1]
        assert len(calls) == 2 + len(different)

    run(work)


def test_an_argument_that_cannot_be_a_key_needs_one() -> None:
    def everything(shop: object) -> str:
        return "all"

    def of_the_shop(shop: object) -> list[str]:
        return ["shop"]

    def nothing(shop: object) -> None:
        return None

    class Shop:
        @cached(60)
        def slow(self) -> int:
            return 1

        @cached(60, key=everything, tags=of_the_shop)
        def keyed(self) -> int:
            calls.append(1)
            return len(calls)

        @cached(60, key=nothing)
        def never(self) -> int:
            calls.append(1)
            return len(calls)

    calls: list[int] = []
    with pytest.raises(TypeError, match=r"Shop', which .*; change it, or pass key= to @cached$"):
        Shop().slow()
    assert [Shop().keyed(), Shop().keyed()] == [1, 1]
    get_cache().sync.invalidate("shop")
    assert [Shop().keyed(), Shop().never(), Shop().never()] == [2, 3, 4]


# -- which cache


def test_an_alias_is_configured_by_the_settings(tmp_path: Path) -> None:
    (tmp_path / "Api").mkdir()
    cache = get_cache("small")
    with pytest.raises(
        SettingsError, match=r"Cache 'small' is not configured; add it to .* aliases are"
    ):
        cache.sync.get("k")
    Application(tmp_path, settings=Settings(caches={"small": "memory://?max_bytes=2048"})).boot()
    cache.sync.set("k", "x" * 100, ttl=60)
    assert cache.sync.get("k") is None  # above an eighth of it
    assert get_cache("small") is cache
    configure_cache("small", "memory://")
    cache.sync.set("k", "x" * 100, ttl=60)
    assert cache.sync.get("k") is not None


@pytest.mark.parametrize(
    "address",
    [
        "",
        "disk://x",
        "http://:s3cret@h",
        "memory://?max_bytes=5",
        "memory://?x=1",
        "memory://?max_bytes=",
    ],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="ache 'a' ") as caught:
        configure_cache("a", address)
    assert "s3cret" not in str(caught.value)


def test_the_memory_ends_with_the_application(project: Callable[..., Application]) -> None:
    app = project({"Api/v1/Get.py": "async def handler(): return 1"})

    async def work() -> None:
        await app.lifespan.run_startup()
        await get_cache().set("k", 1, ttl=60)
        await app.lifespan.run_shutdown()
        assert await get_cache().get("k") is None

    run(work)


def test_a_handler_with_an_unknown_cache_does_not_load(project: Callable[..., Application]) -> None:
    text = (
        "from treefold_http.cache import cached\n"
        "@cached(60, alias='none')\nasync def handler(request): return 1"
    )
    app = project({"Api/v1/Get.py": text})
    app.boot()
    (broken,) = app.report.broken
    assert "Cache 'none' is not configured" in broken.error
    files = {
        "Middleware/__init__.py": "from treefold_http.cache import cached\n"
        "middlewares = [cached(60, alias='none')]"
    }
    with pytest.raises(BootError, match="Cache 'none' is not configured"):
        project(files, root="other").boot()


def test_a_function_with_variables_of_another_function_needs_a_key() -> None:
    def made_for(user: str) -> Callable[[], str]:
        @cached(60)
        def cart() -> str:
            return user

        return cart

    with pytest.raises(TypeError, match=r"cannot see the variable 'user' of the function around"):
        made_for("ann")


def test_with_a_key_or_without_such_variables_a_function_may_stand_inside() -> None:
    def made_for(user: str) -> Callable[[], str]:
        @cached(60, key=lambda: user)
        def cart() -> str:
            return user

        return cart

    assert [made_for(user)() for user in ("ann", "bob", "ann")] == ["ann", "bob", "ann"]

    def passed_on(function: Callable[[int], int]) -> Callable[[int], int]:
        @functools.wraps(function)
        def call(number: int) -> int:
            return function(number)

        return call

    @cached(60)
    @passed_on
    def twice(number: int) -> int:
        return 2 * number

    @cached(60)
    def factorial(number: int) -> int:
        return number * factorial(number - 1) if number else 1

    assert (twice(2), factorial(5)) == (4, 120)


def test_threads_that_wait_for_a_computation_get_its_exception(cache: Cache) -> None:
    calls: list[int] = []
    begun, finish = threading.Event(), threading.Event()

    def make() -> int:
        calls.append(1)
        begun.set()
        finish.wait(10)
        raise LookupError("the database is away")

    def ask(_: int) -> str:
        try:
            return cache.sync.get_or_set("k", make, ttl=60)
        except LookupError as error:
            return str(error)

    with ThreadPoolExecutor(40) as threads:
        asked = [threads.submit(ask, n) for n in range(40)]
        begun.wait(10)
        while cache.state.turns["k"].users < 40:
            time.sleep(0.001)
        finish.set()
        assert {one.result() for one in asked} == {"the database is away"}
    assert len(calls) == 1
    assert cache.state.turns == {}
    assert cache.sync.get_or_set("k", lambda: 1, ttl=60) == 1
