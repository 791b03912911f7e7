"""The id and the line of a request: the same id everywhere, no secret anywhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application, Settings
from treefold_logging import get_logger, request_id

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

# -- the request id


def test_an_inbound_request_id_is_honoured_everywhere(
    serving: Project, ask: Ask, lines: Lines
) -> None:
    app = serving(
        "async def handler(request):\n    get = __import__('treefold_logging').get_logger\n"
        "    get().info('inside')\n    return request.id",
    )
    app.boot()
    lines.records.clear()
    answer = ask(app, "GET", "/v1/x", headers=[("x-request-id", "mine-1")])

    assert answer.body == b"mine-1"
    assert answer.fields("x-request-id") == ["mine-1"]
    assert [getattr(record, "request_id", None) for record in lines.records] == ["mine-1"] * 2


def test_a_request_id_that_is_not_safe_is_replaced_everywhere(serving: Project, ask: Ask) -> None:
    app = serving("async def handler(request):\n    return request.id")
    answer = ask(app, "GET", "/v1/x", headers=[("x-request-id", "a b")])

    assert answer.fields("x-request-id") == [answer.body.decode()]
    assert answer.body != b"a b"


def test_a_handler_cannot_send_a_second_request_id_or_nosniff(serving: Project, ask: Ask) -> None:
    app = serving(
        "async def handler(request):\n"
        "    return 'x', 200, {'X-Request-ID': 'other', 'X-Content-Type-Options': 'other'}",
    )
    answer = ask(app, "GET", "/v1/x", headers=[("x-request-id", "mine-1")])

    assert answer.fields("x-request-id") == ["mine-1"]
    assert answer.fields("x-content-type-options") == ["nosniff"]


@pytest.mark.parametrize(
    "text", ["return 'ok'", "raise ValueError", "raise SystemExit", "raise HTTPError(404)"]
)
def test_the_request_id_is_reset_when_the_request_is_over(
    serving: Project, exchange: type[Exchange], text: str
) -> None:
    app = serving(f"async def handler(request):\n    {text}")

    async def main() -> None:
        assert request_id.get() == "-"
        await exchange("POST", "/v1/x").run(app)
        await exchange("GET", "/v1/x", headers=[("content-length", "x")]).run(app)
        await exchange("GET", "/v1/x").run(app)
        assert request_id.get() == "-"

    asyncio.run(main())


def test_two_hundred_requests_at_once_keep_their_ids_apart(
    serving: Project, exchange: type[Exchange], lines: Lines
) -> None:
    app = serving(
        """
import asyncio
from treefold_logging import get_logger

def after():
    get_logger().info("after")

def plain(request):
    get_logger().info("thread")

async def handler(request, p=Depends(plain)):
    await asyncio.sleep(0)
    get_logger().info("handler")
    return Response(request.id, background=after)
""",
    )
    app.boot()
    lines.records.clear()

    async def main() -> None:
        requests = [
            exchange("GET", "/v1/x", headers=[("x-request-id", f"r{n}")]) for n in range(200)
        ]
        answers = await asyncio.gather(*(asyncio.create_task(r.run(app)) for r in requests))
        assert [answer.body.decode() for answer in answers] == [f"r{n}" for n in range(200)]
        await app.background.drain_tasks(10)

    asyncio.run(main())
    ids = [getattr(record, "request_id", None) for record in lines.records]
    assert sorted(ids, key=str) == sorted([f"r{n}" for n in range(200)] * 4)


# -- the line


def line(lines: Lines) -> str:
    (record,) = lines.records
    return record.getMessage()


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("/v1/reset/xyz123", "/v1/reset/***"),
        ("//v1//reset/xyz123/", "***"),
        ("/reset/xyz123", "/reset/***"),
        ("/v1/reset/xyz123?token=zz&x=1&api%5Fkey=zz", "x=1"),
        ("/v1/reset/xyz%31%32%33", "/v1/reset/***"),
    ],
)
def test_no_secret_of_the_target_is_in_any_line(
    serving: Project, ask: Ask, lines: Lines, target: str, shown: str
) -> None:
    app = serving(
        "async def handler(request):\n    return 'ok'",
        "Api/v1/Reset/[token]/Get.py",
        default_version="latest",
    )
    app.boot()
    lines.records.clear()
    assert ask(app, "GET", target).status == 200

    texts = lines.texts()
    assert not any("xyz" in text or "zz" in text for text in texts)
    assert shown in texts[-1]


@pytest.mark.parametrize("prefix", ["/v1", "", "/sub/v1"])
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", [], 405),
        ("HEAD", [], 405),
        ("OPTIONS", [], 204),
        ("GET", [("cookie", "a" * 40_000)], 431),
    ],
)
def test_no_secret_of_the_target_is_in_the_line_of_what_no_route_serves(
    serving: Project,
    ask: Ask,
    lines: Lines,
    method: str,
    headers: list[tuple[str, str]],
    status: int,
    prefix: str,
) -> None:
    app = serving(
        "async def handler(request):\n    return 'ok'",
        "Api/v1/Reset/[token]/Get.py",
        settings=Settings(auto_options=True, default_version="latest"),
    )
    app.boot()
    lines.records.clear()
    target, more = f"{prefix}/reset/xyz123", {"root_path": "/sub"}
    assert ask(app, method, target, headers=headers, more=more).status == status

    assert f"{prefix}/reset/*** {status} " in line(lines)


@pytest.mark.parametrize(
    ("headers", "body", "payload"),
    [
        (
            [("content-type", "application/json")],
            b'{"a": 1, "password": "zz"}',
            'payload={"a":1,"password":"***"}',
        ),
        ([("content-type", "image/png")], b"x" * 10, "payload=<image/png 10>"),
        ([("content-type", "application/json")], b"{", "payload=<application/json 1>"),
    ],
)
@pytest.mark.parametrize(
    "read", ["await request.body()", "pass", "raise ValueError", "raise HTTPError(422, 'no')"]
)
def test_the_payload_is_in_the_line_whether_it_was_read_or_not(
    serving: Project,
    ask: Ask,
    lines: Lines,
    read: str,
    headers: list[tuple[str, str]],
    body: bytes,
    payload: str,
) -> None:
    app = serving(f"async def handler(request):\n    {read}", "Api/v1/X/Post.py")
    app.boot()
    lines.records.clear()
    ask(app, "POST", "/v1/x", chunks=[body], headers=headers)

    assert payload in line(lines).splitlines()[0]


@pytest.mark.parametrize("target", ["/v1/nowhere", "/v1/x"])
def test_the_payload_of_what_no_file_serves_is_masked_too(
    serving: Project, ask: Ask, lines: Lines, target: str
) -> None:
    app = serving("async def handler(request):\n    return 'ok'")
    app.boot()
    lines.records.clear()
    ask(
        app,
        "POST",
        target,
        chunks=[b'{"secret":"zz"}'],
        headers=[("content-type", "application/json")],
    )

    assert 'payload={"secret":"***"}' in line(lines)


def test_a_module_may_keep_its_payload_out_of_the_line(
    serving: Project, ask: Ask, lines: Lines
) -> None:
    app = serving(
        "log_payload = False\nasync def handler(request):\n    return await request.json()",
        "Api/v1/X/Post.py",
    )
    app.boot()
    lines.records.clear()
    ask(app, "POST", "/v1/x", chunks=[b'{"a":1}'], headers=[("content-type", "application/json")])

    assert line(lines).endswith("payload=-")


def test_a_level_that_is_off_costs_no_line_and_changes_no_answer(
    project: Project, ask: Ask, lines: Lines
) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": "async def handler(request):\n    return 'ok'",
            "treefold.toml": "log_level = 'WARNING'",
        }
    )
    app.boot()
    lines.records.clear()

    assert ask(app, "GET", "/v1/x").body == b"ok"
    assert lines.records == []
    assert get_logger().level == logging.WARNING
