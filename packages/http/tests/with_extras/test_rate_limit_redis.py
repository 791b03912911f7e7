"""RateLimit on a real Redis: one script, its own clock, and a Redis that is away (S-96, S-98)."""

from __future__ import annotations

import asyncio
import secrets
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import http_redis
import pytest

from treefold_http import Application, BootError, Settings
from treefold_http._redis import client as redis_client, close_redis
from treefold_http.middleware._gcra import SCRIPT
from treefold_http.openapi import openapi_document

if TYPE_CHECKING:
    from packages.http.tests.conftest import Exchange, Lines, Socket

Project = Callable[..., Application]

TREE = {
    "Api/v1/Get.py": "async def handler(request):\n    return 'ok'\n",
    "Api/v1/Ws.py": "async def handler(websocket):\n    await websocket.accept()\n",
}


def application(project: Project, url: str, options: str, root: str = "project") -> Application:
    code = "from treefold_http.middleware import RateLimit\n"
    code += f"middlewares = [RateLimit(redis={url!r}, {options})]\n"
    tree = {**TREE, "Middleware/__init__.py": code, "treefold.toml": "name = 'shop'\n"}
    return project(tree, root=root)


@pytest.fixture
def name() -> str:
    """A name that no other test has counted under."""
    return f"test-{secrets.token_hex(6)}"


def statuses(
    exchange: type[Exchange], *apps: Application, count: int = 1
) -> list[tuple[int, float]]:
    """Status and seconds of requests that are sent at once, to the applications in turn."""

    async def one(app: Application) -> tuple[int, float]:
        began = time.perf_counter()
        answer = await exchange("GET", "/v1").run(app)
        return answer.status, time.perf_counter() - began

    async def main() -> list[tuple[int, float]]:
        chosen = [apps[number % len(apps)] for number in range(count)]
        found = await asyncio.gather(*map(one, chosen))
        await close_redis()
        return found

    return asyncio.run(main())


def test_s96_two_processes_share_a_limit_exactly(
    project: Project, exchange: type[Exchange], redis_url: str, name: str
) -> None:
    options = f"rate='100/hour', burst=100, name={name!r}"
    apps = [application(project, redis_url, options, root) for root in ("one", "two")]
    found = [status for status, _ in statuses(exchange, *apps, count=500)]

    assert (found.count(200), found.count(429)) == (100, 400)


def test_s99_fields_and_wait_are_those_of_memory(
    project: Project, exchange: type[Exchange], redis_url: str, name: str
) -> None:
    app = application(project, redis_url, f"rate='2/min', name={name!r}")

    async def main() -> None:
        answers = [await exchange("GET", "/v1").run(app) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert [answer.fields("ratelimit") for answer in answers] == [
            [f'"{name}";r=1;t=30'],
            [f'"{name}";r=0;t=60'],
            [f'"{name}";r=0;t=60'],
        ]
        assert answers[2].fields("retry-after") == ["30"]
        assert answers[0].fields("ratelimit-policy") == [f'"{name}";q=2;w=60']

    asyncio.run(main())


def test_s71_handshakes_count_on_redis(
    project: Project, socket: type[Socket], redis_url: str, name: str
) -> None:
    app = application(project, redis_url, f"rate='2/min', name={name!r}")

    async def main() -> list[str]:
        return [(await socket("/v1").run(app)).kinds[0] for _ in range(3)]

    assert asyncio.run(main()) == ["accept", "accept", "http.response.start"]


@pytest.mark.parametrize(
    ("stored", "waits"),
    [("junk", False), ("", False), ("1", False), ("99999999999999999", True), ("-5", False)],
)
def test_s99_a_time_that_cannot_be_locks_nobody_out(
    redis_url: str, name: str, stored: str, waits: bool
) -> None:
    key = f"treefold:shop:test:limit:{name}"
    with http_redis.connected(redis_url) as client:
        client.set(key, stored)
        ((wait, used),) = client.eval(SCRIPT, 1, key, 1_000_000, 5_000_000)
        left = client.pttl(key)
        client.delete(key)

    assert (wait > 0) is waits
    assert wait <= 1_000_000
    assert used <= 5_000_000
    assert waits or 0 < left <= 5_000


def test_s99_redis_forgets_a_key_when_its_use_is_over(redis_url: str, name: str) -> None:
    key = f"treefold:shop:test:limit:{name}"
    with http_redis.connected(redis_url) as client:
        both = client.eval(SCRIPT, 3, key, key, key, *[200_000, 400_000] * 3)
        assert both == [[0, 200_000], [0, 400_000], [200_000, 400_000]]
        time.sleep(0.45)
        assert client.get(key) is None
        assert client.eval(SCRIPT, 1, key, 200_000, 400_000) == [[0, 200_000]]


@pytest.mark.parametrize(("option", "status"), [("pass", 200), ("refuse", 503)])
@pytest.mark.parametrize("loss", ["stop", "freeze"])
def test_s98_without_redis_requests_pass_or_are_refused_in_time(
    project: Project,
    exchange: type[Exchange],
    lines: Lines,
    name: str,
    option: str,
    status: int,
    loss: str,
) -> None:
    with http_redis.started() as server:
        options = f"rate='1000/s', name={name!r}, without_redis={option!r}"
        app = application(project, server.url, options)
        before = [statuses(exchange, app)[0] for _ in range(20)]
        assert {each for each, _ in before} == {200}
        getattr(server, loss)()
        found = [statuses(exchange, app)[0] for _ in range(20)]

    assert {each for each, _ in found} == {status}
    assert max(seconds for _, seconds in found) < 10
    usual = statistics.median(seconds for _, seconds in before)  # on this machine, as busy as it is
    assert statistics.median(seconds for _, seconds in found) < usual + redis_client.TIMEOUT
    warnings = [text for text in lines.texts(30) if "redis" in text]
    assert len(warnings) == 1
    effect = "rate limits pass" if option == "pass" else "rate limits answer 503"
    assert effect in warnings[0]
    assert lines.errors() == []


def test_readiness_asks_redis_with_a_short_limit(
    project: Project, exchange: type[Exchange], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treefold_http._built_in.health.KEPT", 0.0)
    with http_redis.started() as server:
        files = {
            **TREE,
            "Middleware/__init__.py": "from treefold_http.middleware import RateLimit\n"
            f"middlewares = [RateLimit('1/s', redis=True, name={name!r})]\n",
        }
        app = project(files, settings=Settings(health=True, redis_url=server.url))

        async def probe() -> Any:
            answer = await exchange("GET", "/readyz").run(app)
            await close_redis()
            return answer

        assert asyncio.run(probe()).json() == {"status": "ready"}
        server.freeze()
        answer = asyncio.run(probe())
        server.resume()
        assert answer.json() == {"status": "unavailable", "failed": ["redis"]}
        assert asyncio.run(probe()).json() == {"status": "ready"}


def test_the_redis_of_the_settings_must_be_there(project: Project) -> None:
    code = "from treefold_http.middleware import RateLimit\n"
    code += "middlewares = [RateLimit('1/s', redis=True)]\n"

    with pytest.raises(
        BootError, match=r"RateLimit\(redis=True\) needs an address; set TREEFOLD_R"
    ):
        project({**TREE, "Middleware/__init__.py": code}, settings=Settings()).boot()


def test_s98_a_refusal_says_when_to_come_back(
    project: Project, exchange: type[Exchange], name: str
) -> None:
    url = f"redis://127.0.0.1:{http_redis.free_port()}"
    app = application(project, url, f"rate='1/s', name={name!r}, without_redis='refuse'")

    async def main() -> Any:
        return await exchange("GET", "/v1").run(app)

    answer = asyncio.run(main())
    assert (answer.status, answer.fields("retry-after")) == (503, ["1"])


@pytest.mark.parametrize(("without", "refusals"), [("pass", ["429"]), ("refuse", ["429", "503"])])
def test_the_document_names_the_refusals(
    project: Project, redis_url: str, without: str, refusals: list[str]
) -> None:
    app = application(project, redis_url, f"rate='5/min', without_redis={without!r}")
    responses = openapi_document(app)["paths"]["/v1"]["get"]["responses"]
    assert [status for status in responses if "Retry-After" in responses[status]["headers"]] == (
        refusals
    )
