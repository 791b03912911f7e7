"""The answer of a process that has enough to do: complete, cheap, one line in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

import pytest

from treefold_http import Application, Settings, refuse_overload
from treefold_http._runtime.server_lines import _mask

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines


@pytest.fixture(autouse=True)
def without_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the applications of other tests, which would mask segments of theirs as well."""
    monkeypatch.setattr(_mask, "apps", WeakSet[Application]())


def refuse(
    exchange: type[Exchange], method: str, target: str = "/v1/x?token=s3cret", root_path: str = ""
) -> Answer:
    one = exchange(method, target, headers=[("x-request-id", "given-1")])
    one.scope["root_path"] = root_path
    asyncio.run(refuse_overload(one.scope, one.receive, one.send))
    return one.answer


def test_d07_it_is_a_503_that_says_when_to_come_back(exchange: type[Exchange]) -> None:
    answer = refuse(exchange, "GET")

    assert answer.status == 503
    assert answer.json() == {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "The server has too much to do; try again",
        "instance": "/v1/x",
        "request_id": "given-1",
    }
    assert dict(answer.headers) == {
        "content-type": "application/problem+json",
        "content-length": str(len(answer.body)),
        "retry-after": "1",
        "connection": "close",
        "x-content-type-options": "nosniff",
        "x-request-id": "given-1",
    }


def test_d07_it_is_one_line_without_secrets(exchange: type[Exchange], lines: Lines) -> None:
    refuse(exchange, "GET")

    (text,) = lines.texts()
    assert text.startswith("GET /v1/x?token=*** 503 ")
    assert " id=given-1 " in text


def test_d07_it_has_no_body_for_head(exchange: type[Exchange]) -> None:
    answer = refuse(exchange, "HEAD")

    assert (answer.status, answer.body) == (503, b"")


@pytest.mark.parametrize(
    ("target", "setting", "root_path"),
    [
        ("/v1/reset/S3cret", "", ""),
        ("/v1/reset/S3cret/more?a=1", "", ""),
        ("/api/v1/reset/S3cret", "/api", ""),
        ("/v1/reset/S3cret", "/api", ""),
        ("/api/v1/reset/S3cret", "", "/api"),
        ("/out/api/v1/reset/S3cret", "/api", "/out"),
    ],
)
def test_s81_its_line_masks_the_path_as_that_of_any_other_request(
    project: Callable[..., Application],
    exchange: type[Exchange],
    lines: Lines,
    target: str,
    setting: str,
    root_path: str,
) -> None:
    tree = {"Api/v1/Reset/[token]/Get.py": "async def handler(request):\n    return {}\n"}
    app = project(tree, settings=Settings(root_path=setting))
    app.boot()
    lines.records.clear()

    answer = refuse(exchange, "GET", target, root_path)

    (text,) = lines.texts()
    assert text.startswith(f"GET {target.replace('S3cret', '***')} 503 ")
    assert answer.json()["instance"] == target.partition("?")[0]  # the client's own, as elsewhere
