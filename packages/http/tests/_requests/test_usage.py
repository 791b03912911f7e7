"""The setting `usage`: who calls which route with which query names, in bounded memory."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http._requests import usage as usage_module
from treefold_http._requests.usage import MAX_CALLERS, MAX_ENTRIES, Usage
from treefold_logging import scrub
from treefold_router import Route

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines, Socket

Ask = Callable[..., "Answer"]
Project = Callable[..., Application]
Talk = Callable[..., "Socket"]

ON = {"treefold.toml": "usage = true"}
BOOK = "def handler(page: int = 1, sort: str = ''):\n    return page\n"
AGENT = ("user-agent", "shelf-app/2.1 (linux; x)")


def read_lines(app: Application, lines: Lines) -> list[Any]:
    assert app.usage is not None
    app.usage.write_line()
    found = [text for text in lines.texts() if text.startswith("usage ")]
    assert all(text == scrub(text) for text in found)
    return [json.loads(text.removeprefix("usage ")) for text in found]


def read_routes(app: Application, lines: Lines) -> list[Any]:
    return [route for record in read_lines(app, lines) for route in record["routes"]]


def test_requests_are_counted_by_caller_and_declared_name(
    project: Project, ask: Ask, lines: Lines
) -> None:
    app = project({**ON, "Api/v1/Book/Get.py": BOOK, "Api/v1/Pen/Get.py": BOOK})
    for target in ("/v1/book", "/v1/book?page=2&token=s3cret", "/v1/book?page=x"):
        ask(app, "GET", target, headers=[AGENT])
    ask(app, "GET", "/v1/book?sort=a", headers=[("user-agent", "curl/8.5.0")])
    ask(app, "GET", "/v1/book")
    ask(app, "GET", "/v1/nothing")
    assert read_routes(app, lines) == [
        [
            "GET /v1/book",
            5,
            [
                ["shelf-app/2.1 127.0.0.0/24", 3],
                ["- 127.0.0.0/24", 1],
                ["curl/8.5.0 127.0.0.0/24", 1],
            ],
            [["page", 2], ["sort", 1]],
        ]
    ]
    assert read_lines(app, lines) == read_lines(app, lines)[:1]


def test_the_principal_of_a_credential_is_the_caller(
    project: Project, ask: Ask, lines: Lines
) -> None:
    source = (
        "from treefold_http import Depends, NotFound\nfrom treefold_http.auth import api_key\n"
        f"key = api_key({{'ann': '{'k' * 20}'}})\n"
        "def handler(user=Depends(key)):\n    raise NotFound('x')\n"
    )
    app = project({**ON, "Api/v1/X/Get.py": source})
    assert ask(app, "GET", "/v1/x", headers=[("x-api-key", "k" * 20)]).status == 404
    assert ask(app, "GET", "/v1/x", headers=[AGENT]).status == 401
    ((_, count, callers, _),) = read_routes(app, lines)
    assert count == 2
    assert [name for name, _ in callers if "ann" in name] == [
        name for name, _ in callers if "shelf" not in name
    ]
    assert len(callers) == 2
    assert "k" * 20 not in str(callers)


def test_sockets_broken_files_and_cached_answers_are_counted(
    project: Project, ask: Ask, talk: Talk, lines: Lines
) -> None:
    app = project(
        {
            **ON,
            "Api/v1/Chat/Socket.py": "async def handler(websocket):\n"
            "    await websocket.accept()\n",
            "Api/v1/Bad/Get.py": "raise ValueError",
            "Api/v1/Kept/Get.py": "from treefold_http.cache import cached\n"
            "@cached(60)\nasync def handler(request):\n    return 1\n",
        }
    )
    talk(app, "/v1/chat")
    ask(app, "GET", "/v1/bad")
    for _ in range(3):
        ask(app, "GET", "/v1/kept")
    counts = {title: count for title, count, _, _ in read_routes(app, lines)}
    assert counts == {"WEBSOCKET /v1/chat": 1, "GET /v1/bad": 1, "GET /v1/kept": 3}


def test_nothing_is_counted_without_the_setting(project: Project, ask: Ask, lines: Lines) -> None:
    app = project({"Api/v1/Book/Get.py": "async def handler(request):\n    return 1\n"})
    ask(app, "GET", "/v1/book")
    assert app.usage is None
    route = app.table.routes[0]
    assert app.project.plans[route].run is app.project.modules[route].handler  # type: ignore[union-attr]


def test_the_line_is_written_when_the_hour_is_over(
    project: Project, ask: Ask, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [7200.0 * 1000]
    monkeypatch.setattr(usage_module.time, "time", lambda: clock[0])
    app = project({**ON, "Api/v1/Book/Get.py": BOOK})
    for minutes in (10, 20, 70, 80, 200):
        clock[0] = 7200.0 * 1000 + minutes * 60
        ask(app, "GET", "/v1/book")
    found = [text for text in lines.texts() if text.startswith("usage ")]
    counts = [json.loads(text[6:])["routes"][0][1] for text in found]
    # a request that ends the hour is the last one of it
    assert counts == [3, 2]
    assert json.loads(found[1][6:])["from"] == json.loads(found[0][6:])["to"]


def test_the_shutdown_writes_the_line_of_its_hour(
    project: Project, exchange: type[Exchange], lines: Lines
) -> None:
    app = project({**ON, "Api/v1/Book/Get.py": BOOK})

    async def main() -> None:
        await app.lifespan.run_startup()
        sent = exchange("GET", "/v1/book")
        await app(sent.scope, sent.receive, sent.send)
        await app.lifespan.run_shutdown()

    asyncio.run(main())
    (text,) = [text for text in lines.texts() if text.startswith("usage ")]
    assert json.loads(text[6:])["routes"][0][:2] == ["GET /v1/book", 1]


def test_a_reload_goes_on_counting(live: Callable[..., Any], lines: Lines) -> None:
    served = live({**ON, "Api/v1/X/Get.py": BOOK})
    served.answer("/v1/x?page=1")
    served.edit({"Api/v1/X/Get.py": BOOK.replace("sort", "order")})
    served.answer("/v1/x?page=1&order=1&sort=1")
    ((title, count, _, query),) = read_routes(served.app, lines)
    assert (title, count, query) == ("GET /v1/x", 2, [["order", 1], ["page", 2]])


class _Caller:
    """A connection as far as usage reads it: so many real ones take a minute."""

    def __init__(self, agent: bytes, host: str) -> None:
        self.fields = {b"user-agent": agent}
        self.scope = {"client": (host, 1), "query_string": b""}


def test_any_number_of_callers_takes_four_mebibytes() -> None:
    routes = [Route("GET", "v1", f"/v1/r{n}", f"v1/R{n}/Get.py", ()) for n in range(100)]
    tracemalloc.start()
    try:
        usage = Usage()
        counts = [usage.get_route(route, ()) for route in routes]
        before = tracemalloc.get_traced_memory()[0]
        for n in range(200_000):
            agent, host = b"agent-%d/1.0 (some words)" % n, f"10.{n >> 16 & 255}.{n >> 8 & 255}.1"
            counts[n % 100].count(_Caller(agent, host))  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024
    assert sum(sum(route.callers.values()) for route in counts) == 200_000
    assert len({name for route in counts for name in route.callers}) == MAX_CALLERS // 2 + 1
    assert usage.entries <= MAX_ENTRIES


def test_a_long_report_is_several_lines(lines: Lines) -> None:
    usage = Usage()
    for n in range(400):
        route = Route("GET", "v1", f"/v1/route{n}", f"v1/Route{n}/Get.py", ())
        found = usage.get_route(route, ())
        found.callers = {f"bearer:{caller}": 7 for caller in range(30)}
    usage.write_line()
    texts = [text for text in lines.texts() if text.startswith("usage ")]
    assert len(texts) > 10
    assert max(map(len, texts)) < 9_000
    routes = [route for text in texts for route in json.loads(text[6:])["routes"]]
    assert len(routes) == 400
    assert routes[0][1] == 210
    assert len(routes[0][2]) == 21
    assert routes[0][2][-1] == ["other", 70]


@pytest.mark.parametrize(
    ("agent", "host", "name"),
    [
        ("a/1 b", "192.0.2.77", "a/1 192.0.2.0/24"),
        ("a/1", "2001:db8:1:2::7", "a/1 2001:db8:1::/48"),
        ("", "192.0.2.7", "- 192.0.2.0/24"),
        ("x" * 90, "unix", f"{'x' * 40} unix"),
        ("p\xe4\u2028".encode().decode("latin-1"), "192.0.2.7", None),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOjF9.abc", "192.0.2.7", "*** 192.0.2.0/24"),
    ],
)
def test_callers_without_a_principal_have_a_short_printable_name(
    project: Project, ask: Ask, lines: Lines, agent: str, host: str, name: str | None
) -> None:
    app = project({**ON, "Api/v1/X/Get.py": BOOK})
    ask(app, "GET", "/v1/x", headers=[("user-agent", agent)], more={"client": (host, 1)})
    (((shown, _),),) = [callers for _, _, callers, _ in read_routes(app, lines)]
    assert shown.isascii()
    assert shown.isprintable()
    assert name in (None, shown)
