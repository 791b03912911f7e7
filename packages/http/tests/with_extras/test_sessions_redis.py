"""Sessions in a real Redis: several workers, races, and a server that goes away (S-65, R-05)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from http_redis import Server, connected, started

from treefold_http import Application, Settings
from treefold_http._redis import RedisUnavailable, close_redis
from treefold_http._sessions.stores import RedisSessions
from treefold_http.testing import AsyncTestClient

if TYPE_CHECKING:
    from packages.http.tests.conftest import Lines

SITE = {"Origin": "http://testserver"}
Work = Callable[[AsyncTestClient], Awaitable[None]]


@pytest.fixture
def own_server() -> Iterator[Server]:
    with started() as made:
        yield made


@pytest.fixture
def run(write: Callable[..., Path]) -> Callable[..., None]:
    """Do something with clients of as many workers as wanted, over one Redis."""
    files = {
        "Api/v1/Ok/Get.py": "async def handler(request): return 'ok'",
        "Api/v1/Show/Get.py": dedent("""
            async def handler(request):
                return {"data": dict(request.session), "user": request.session.user}
            """),
        "Api/v1/Set/Post.py": dedent("""
            async def handler(request):
                request.session["v"] = 1
            """),
        "Api/v1/Login/Post.py": dedent("""
            from treefold_http.auth import login
            def handler(request):
                login(request, "ann")
            """),
        "Api/v1/Logout/Post.py": dedent("""
            from treefold_http.auth import logout
            async def handler(request):
                logout(request)
            """),
        "Middleware/__init__.py": dedent("""
            from treefold_http.middleware import Sessions
            middlewares = [Sessions(store="redis")]
            """),
    }

    def start(url: str, *works: Work) -> None:
        settings = Settings(secret_key="0123456789abcdef" * 2, redis_url=url)

        async def main() -> None:
            root = write(files)
            async with asyncio.timeout(60):
                cookies: dict[str, str] = {}
                for work in works:
                    app = Application(root, settings=settings)
                    async with AsyncTestClient(app, headers=SITE, cookies=cookies) as client:
                        await work(client)
                        cookies = dict(client.cookies)

        asyncio.run(main())

    return start


async def shown(client: AsyncTestClient) -> Any:
    answer = await client.get("/v1/show")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_session_of_one_worker_is_known_to_another(
    redis_url: str, run: Callable[..., None]
) -> None:
    async def first(client: AsyncTestClient) -> None:
        await client.post("/v1/set")
        await client.post("/v1/login")

    async def second(client: AsyncTestClient) -> None:
        assert await shown(client) == {"data": {"v": 1}, "user": "ann"}
        kept = f"__Host-session={client.cookies['__Host-session']}"
        answer = await client.post("/v1/logout")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        again = await client.get("/v1/show", headers={"Cookie": kept})
        assert again.json() == {"data": {}, "user": None}

    run(redis_url, first, second)


def test_s65_a_save_after_the_logout_revives_nothing(redis_url: str) -> None:
    async def main() -> None:
        app = Application("shop")
        store = RedisSessions(redis_url, app)
        key = f"test-{time.time_ns()}"
        await store.set(key, b"a", seconds=60)
        assert await store.replace(key, b"b", seconds=60) is True
        assert await store.get(key) == b"b"
        assert await store.touch(key, seconds=60) is True
        assert await store.delete(key) is True
        assert await store.replace(key, b"c", seconds=60) is False
        assert await store.touch(key, seconds=60) is False
        assert await store.get(key) is None
        assert await store.delete(key) is False
        await store.set(key, b"a", seconds=0.05)
        await asyncio.sleep(0.06)
        assert await store.get(key) is None
        await close_redis()

    asyncio.run(main())


def test_s54_what_somebody_else_wrote_is_no_session(
    own_server: Server, run: Callable[..., None]
) -> None:
    async def work(client: AsyncTestClient) -> None:
        await client.post("/v1/login")
        with connected(own_server.url) as redis:
            (key,) = redis.keys("treefold:*:session:*")
            for garbage in (
                b"cos\nsystem\n(S'echo hacked'\ntR.",
                b"\x80\x04\x95",
                b"[]",
                b'{"created":"x"}',
            ):
                redis.set(key, garbage)
                assert await shown(client) == {"data": {}, "user": None}

    run(own_server.url, work)


def test_r05_without_redis_a_session_is_503_and_nothing_else_is(
    own_server: Server, run: Callable[..., None], lines: Lines
) -> None:
    async def work(client: AsyncTestClient) -> None:
        await client.post("/v1/login")
        own_server.stop()
        for _ in range(5):
            answer = await asyncio.wait_for(client.get("/v1/show"), 10)
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert (await client.get("/v1/ok")).status_code == 200
            assert (await client.post("/v1/set")).status_code == 503
        nothing_kept = await client.get("/v1/show", headers={"Cookie": ""})
        assert nothing_kept.status_code == 200
        own_server.start()
        await asyncio.sleep(1.1)  # the pause of the client
        assert (await client.get("/v1/show")).json() == {"data": {}, "user": None}

    run(own_server.url, work)
    told = [text for text in lines.texts(30) if "redis" in text]
    assert len(told) == 1
    assert "sessions answer 503" in told[0]


def test_r05_a_login_that_cannot_be_kept_is_503(
    own_server: Server, run: Callable[..., None]
) -> None:
    async def work(client: AsyncTestClient) -> None:
        own_server.stop()
        answer = await client.post("/v1/login")
        assert (answer.status_code, dict(client.cookies)) == (503, {})

    run(own_server.url, work)


def test_the_store_says_that_it_cannot_be_asked() -> None:
    async def main() -> None:
        app = Application("shop")
        store = RedisSessions("redis://127.0.0.1:1", app)
        with pytest.raises(RedisUnavailable, match="Redis is unavailable"):
            await store.get("a")

    asyncio.run(main())
