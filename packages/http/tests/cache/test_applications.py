"""Applications of one process share no cache in memory: values, results, answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings
from treefold_http.cache import configure_cache, get_cache

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

FILES = {
    "Services/figures.py": """
from treefold_http.cache import cached

calls = []

@cached(60)
async def figure(name):
    calls.append(1)
    return f"{name} of WORD, {len(calls)}"

@cached(60)
def plain_figure(name):
    return f"{name} of WORD"
""",
    "Api/v1/Page/Get.py": """
from treefold_http.cache import cached

@cached(60, tags=["page"])
async def handler(request):
    return "page of WORD"
""",
    "Api/v1/Result/Get.py": """
from Services.figures import figure, plain_figure

async def handler(request):
    return [await figure("sum"), plain_figure("sum")]
""",
    "Api/v1/Value/Get.py": """
from treefold_http.cache import get_cache

async def handler(request):
    return [await get_cache().get("k"), get_cache().sync.get("k")]
""",
    "Api/v1/Value/Post.py": """
from treefold_http.cache import get_cache

async def handler(request):
    await get_cache().set("k", "WORD", ttl=60)
    return "ok"
""",
    "Api/v1/Clear/Post.py": """
from treefold_http.cache import get_cache

async def handler(request):
    await get_cache().invalidate("page")
    await get_cache().clear()
""",
    "Api/v1/Get.py": """
from treefold_http.cache import get_cache

def handler(request):
    get_cache().sync.set("k", "thread of WORD", ttl=60)
    return get_cache().sync.get("k")
""",
}


@pytest.fixture
def two(project: Project) -> tuple[Application, Application]:
    made: list[Application] = []
    for word in ("one", "two"):
        files = {name: text.replace("WORD", word) for name, text in FILES.items()}
        made.append(project(files, root=word))
    return made[0], made[1]


def ask_in_turn(exchange: type[Exchange], *asked: tuple[Application, str, str]) -> list[str]:
    async def main() -> list[str]:
        answers: list[str] = []
        for app, method, target in asked:
            answers.append((await exchange(method, target).run(app)).body.decode())
        return answers

    return asyncio.run(main())


def test_two_applications_beside_each_other_share_nothing(
    two: tuple[Application, Application], exchange: type[Exchange]
) -> None:
    one, other = two
    answers = ask_in_turn(
        exchange,
        (one, "GET", "/v1/page"),
        (other, "GET", "/v1/page"),
        (one, "GET", "/v1/result"),
        (other, "GET", "/v1/result"),
        (one, "POST", "/v1/value"),
        (other, "GET", "/v1/value"),
        (other, "POST", "/v1/value"),
        (one, "GET", "/v1/value"),
        (other, "GET", "/v1"),
        (one, "GET", "/v1/value"),
    )
    assert answers == [
        "page of one",
        "page of two",
        '["sum of one, 1","sum of one"]',
        '["sum of two, 1","sum of two"]',
        "ok",
        "[null,null]",
        "ok",
        '["one","one"]',
        "thread of two",
        '["one","one"]',
    ]


def test_clearing_the_cache_of_one_application_leaves_the_other(
    two: tuple[Application, Application], exchange: type[Exchange]
) -> None:
    one, other = two
    answers = ask_in_turn(
        exchange,
        (one, "GET", "/v1/result"),
        (one, "POST", "/v1/value"),
        (other, "POST", "/v1/clear"),
        (one, "GET", "/v1/result"),
        (one, "GET", "/v1/value"),
        (one, "POST", "/v1/clear"),
        (one, "GET", "/v1/result"),
    )
    first = '["sum of one, 1","sum of one"]'
    assert answers == [first, "ok", "", first, '["one","one"]', "", first.replace("1", "2")]


def test_a_mounted_application_shares_nothing_with_the_outer_one(
    two: tuple[Application, Application], exchange: type[Exchange]
) -> None:
    outer, inner = two
    outer.mount("/inner", inner)
    answers = ask_in_turn(
        exchange,
        (outer, "GET", "/v1/page"),
        (outer, "GET", "/inner/v1/page"),
        (outer, "GET", "/v1/result"),
        (outer, "GET", "/inner/v1/result"),
        (outer, "POST", "/v1/value"),
        (outer, "GET", "/inner/v1/value"),
    )
    assert answers == [
        "page of one",
        "page of two",
        '["sum of one, 1","sum of one"]',
        '["sum of two, 1","sum of two"]',
        "ok",
        "[null,null]",
    ]


def test_an_application_that_stops_empties_its_own_cache_only(
    two: tuple[Application, Application], exchange: type[Exchange]
) -> None:
    one, other = two

    async def main() -> list[Any]:
        for app in two:
            await exchange("POST", "/v1/value").run(app)
        await one.lifespan.run_shutdown()
        return [(await exchange("GET", "/v1/value").run(app)).json() for app in (one, other)]

    assert asyncio.run(main()) == [[None, None], ["two", "two"]]


def test_each_application_has_the_addresses_of_its_settings(project: Project) -> None:
    small = project({}, root="a", settings=Settings(caches={"default": "memory://?max_bytes=2048"}))
    usual = project({}, root="b")
    for app in (small, usual):
        app.boot()
    cache = get_cache()

    async def keep() -> Any:
        await cache.set("k", "x" * 1000, ttl=60)
        return await cache.get("k")

    async def main() -> list[Any]:
        found: list[Any] = []
        for app in (small, usual):
            async with app.scope() as scope:
                found.append(await scope.call(keep))
        return found

    assert asyncio.run(main()) == [None, "x" * 1000]
    configure_cache("default", "memory://?max_bytes=1000000")
    assert asyncio.run(main()) == ["x" * 1000] * 2
