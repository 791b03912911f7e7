"""Requests that `Application.__call__` serves in place, and the way that serves all others.

What most requests are is checked, routed, answered and logged without a call. 2,000 generated ones
are served twice, the second time with each of these short ways closed: both answers and both lines
are the same, byte for byte.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Exchange

from treefold_http import Application
from treefold_http._wire.request_guard import HEAD_SIZE
from treefold_logging import flush, get_logger

Project = Callable[..., Application]
Outcome = tuple[Any, ...]

HANDLERS = {
    "dict": "return {'id': request.path_params.get('id'), 'null': None}",
    "text": "return 'caf\\u00e9'",
    "bytes": "return b'\\x00\\xff'",
    "nothing": "return None",
    "list": "return [1, 2.5, 'x']",
    "empty": "return ''",
    "created": "return {'made': True}, 201",
    "missing": "return 'gone', 404",
    "no_content": "return 'dropped', 204",
    "wrong_status": "return 'x', 700",
    "float_status": "return 'x', 201.0",
    "named_status": "from http import HTTPStatus\n    return 'x', HTTPStatus.ACCEPTED",
    "fields": "return {'a': 1}, 200, {'X-Own': '1'}",
    "pair_of_objects": "return ({'a': 1}, {'b': 2})",
    "nan": "return {'value': float('nan')}",
    "unknown": "return object()",
    "response": "from treefold_http import Response\n    return Response.json({'a': 1}, 202)",
    "stream": "from treefold_http import Response\n    return Response.stream(iter([b'a', b'b']))",
    "refusal": "from treefold_http import HTTPError\n    raise HTTPError(409, 'taken')",
    "crash": "raise ValueError('secret=1')",
    "json": "return {'got': await request.json()}",
    "body": "return len(await request.body())",
    "form": "return dict((await request.form()).multi_items())",
    "background": "request.background.add(int)\n    return 'later'",
}
FILES = {
    **{f"Api/v1/{name}/Post.py": f"async def handler(request):\n    {code}\n"
       for name, code in HANDLERS.items()},
    **{f"Api/v1/{name}/[id]/Get.py": f"async def handler(request):\n    {code}\n"
       for name, code in HANDLERS.items()},
    "Api/v1/set/Get.py": "status_code = 201\nasync def handler(request):\n    return {'a': 1}\n",
    "Api/v1/none/Get.py": "status_code = 204\nasync def handler(request):\n    return {'a': 1}\n",
    "Api/v1/reset/[token]/Get.py": "async def handler(request):\n    return 'x'\n",
    "Api/v1/file/[...path]/Get.py": "async def handler(request):\n    return request.path\n",
    "Api/v2/wired/Post.py": (
        "async def handler(shelf: int, tags: list[str] = []):\n    return [shelf, tags]\n"
    ),
}  # fmt: skip
NAMES = (*HANDLERS, "set", "none", "reset", "file", "absent")
IDS = (
    "7",
    "a.b",
    "a%20b",
    "%zz",
    "",
    "..",
    "x" * 300,
    "eyJhbGciOiJIUzI1NiJ9.eyJzIjoxfQ.c2ln",
    "a:b",
)
BODIES: tuple[tuple[bytes, ...], ...] = (
    (), (b"",), (b'{"a":1}',), (b'{"password":"x"}',), (b"a=1&b=2",), (b"{", b"}"), (b"\xff",),
)  # fmt: skip
FIELDS = (
    ("host", "example.localhost"), ("host", "other"), ("host", "a b"), ("x-request-id", "mine-1"),
    ("x-request-id", "a b"), ("content-type", "application/json"), ("content-length", "4"),
    ("content-length", "+4"), ("content-length", "9" * 20), ("transfer-encoding", "chunked"),
    ("transfer-encoding", "gzip"), ("upgrade", "h2c"), ("expect", "100-continue"),
    ("cookie", "a=1"),
    ("content-type", "application/x-www-form-urlencoded"), ("accept", "*/*"),
    ("x-big", "v" * 33_000),
    ("x-large", "v" * 32_000), ("authorization", "Bearer abc"), ("content-encoding", "gzip"),
)  # fmt: skip
QUERIES = (*[""] * 8, "?a=1", "?password=x", "?shelf=3&tags=a&tags=b", "?q=" + "x" * 8_200)
MORE: tuple[dict[str, Any], ...] = (
    *[dict[str, Any]()] * 16,
    {"http_version": "1.0"}, {"http_version": "2"}, {"http_version": "3.1"},
    {"root_path": "/api"}, {"raw_path": None}, {HEAD_SIZE: 0},
    {HEAD_SIZE: 50_000},
)  # fmt: skip


def generate_request(draw: random.Random) -> dict[str, Any]:
    name = draw.choice(NAMES)
    target = f"/v{draw.choice('1' * 12 + '23')}/{name}"
    if draw.random() < 0.5:
        target += f"/{draw.choice(IDS)}"
    fitting = "GET" if target.count("/") == 3 else "POST"
    method = (
        fitting if draw.random() < 0.7 else draw.choice(("GET", "POST", "HEAD", "OPTIONS", "get"))
    )
    fields = draw.sample(FIELDS, draw.choice((0, 0, 0, 0, 1, 1, 2)))
    fields += [(f"x-{number}", "v") for number in range(draw.choice((0,) * 12 + (5, 5, 99, 101)))]
    more = dict(draw.choice(MORE))
    if more.get(HEAD_SIZE) == 0:  # what a server says is true: all of the head, in bytes
        more[HEAD_SIZE] = sum(len(name) + len(value) + 4 for name, value in fields) + len(target)
    return {
        "method": method,
        "target": target + draw.choice(QUERIES),
        "headers": fields,
        "chunks": draw.choice(BODIES) if method != "GET" or draw.random() < 0.2 else (),
        "host": not any(name == "host" for name, _ in fields) or draw.random() < 0.1,
        "more": more,
    }


async def exchange(app: Application, request: dict[str, Any]) -> Outcome:
    made = Exchange(**request)
    await made.run(app)
    answer = made.answer
    head = [field for field in answer.messages[0]["headers"] if field[0] != b"x-request-id"]
    given = [value for name, value in answer.messages[0]["headers"] if name == b"x-request-id"]
    ids = [value if len(value) < 28 else b"made" for value in given]
    return (answer.status, sorted(head), ids, without_id(answer.body, given), len(answer.chunks))


def without_id(text: bytes, ids: list[bytes]) -> bytes:
    for value in ids:
        text = text.replace(value, b"ID")
    return text


def read_lines(capture: pytest.CaptureFixture[str]) -> list[str]:
    """Read the lines of the log, without times, made ids, and the frames of tracebacks."""
    flush()
    text = re.sub(r"[0-9.]+ms", "MS", capture.readouterr().err)
    lines = re.sub(r"\b[0-9a-f]{28,}\b", "ID", text).splitlines()
    return [line for line in lines if not line.startswith("    |")]


def close_short_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    application, lines = "treefold_http._application", "treefold_logging._request_line"
    monkeypatch.setattr(f"{application}.MAX_FIELDS", -1)  # no head is checked in place
    monkeypatch.setattr(f"{application}.PLAIN", {})  # each answer is a Response
    monkeypatch.setattr(f"{lines}.LONGEST_PLAIN", -1)  # no line is written in place


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_serve_a_request_alike(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    seed: int,
) -> None:
    app = project(FILES)
    app.boot()
    draw = random.Random(seed)
    requests = [generate_request(draw) for _ in range(500)]

    async def serve_all() -> list[tuple[Outcome, list[str]]]:
        await exchange(app, {"method": "GET", "target": "/v1/set"})  # its host is known from now on
        read_lines(capfd)
        found: list[tuple[Outcome, list[str]]] = []
        for request in requests:
            outcome = await exchange(app, request)
            found.append((outcome, read_lines(capfd)))
        return found

    # as in production: pytest adds handlers of its own, for which records are made
    monkeypatch.setattr(get_logger(), "handlers", get_logger().handlers[:1])
    plain = asyncio.run(serve_all())
    close_short_ways(monkeypatch)
    whole = asyncio.run(serve_all())
    differing = [
        (request, short, long)
        for request, short, long in zip(requests, plain, whole, strict=True)
        if short != long
    ]
    assert not differing, differing[0]
    statuses = [outcome[0] for outcome, _ in plain]
    assert {*statuses} >= {200, 201, 204, 400, 404, 405, 409, 414, 431, 500, 505}
    assert statuses.count(200) > 50
