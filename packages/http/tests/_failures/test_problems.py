"""Errors as problem documents: what a client may read (RFC 9457; S-56)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application, BadRequest, HTTPError, Request, Response, UnprocessableEntity
from treefold_http._failures.problems import render_crash_problem, render_problem

RequestOf = Callable[..., Request]

MARKUP = "<script>alert('s3cret')</script>&amp;"


def document(response: Response) -> Any:
    assert response.headers.multi_items()[0] == ("content-type", "application/problem+json")
    return json.loads(response.body)


def test_a_problem_has_every_member(request_of: RequestOf) -> None:
    request = request_of(target="/v1/a%20b?token=zz")

    assert document(render_problem(BadRequest("why"), request)) == {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": "why",
        "instance": "/v1/a%20b",
        "request_id": "id-1",
    }


def test_the_errors_of_a_validation_are_shown(request_of: RequestOf) -> None:
    errors = [{"loc": ["query", "a"], "msg": "a is required", "type": "missing"}]
    shown = document(render_problem(UnprocessableEntity("no", errors=errors), request_of()))

    assert shown["errors"] == errors
    assert shown["status"] == 422


@pytest.mark.parametrize(
    ("error", "title", "detail"),
    [
        (HTTPError(404), "Not Found", "Not Found"),
        (HTTPError(418, "tea"), "I'm a Teapot", "tea"),
        (HTTPError(499), "Error", "Error"),
        (HTTPError(503, "later"), "Service Unavailable", "later"),
    ],
)
def test_title_and_detail(request_of: RequestOf, error: HTTPError, title: str, detail: str) -> None:
    shown = document(render_problem(error, request_of()))

    assert (shown["title"], shown["detail"]) == (title, detail)


def test_the_headers_of_the_error_are_sent(request_of: RequestOf) -> None:
    error = HTTPError(405, "no", headers={"Allow": "GET", "X-A": "1"})
    response = render_problem(error, request_of())

    assert response.headers["allow"] == "GET"
    assert response.headers["x-a"] == "1"
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "error", [HTTPError(400, MARKUP), HTTPError(422, "x", errors=[{"msg": MARKUP}])]
)
def test_markup_is_escaped_and_reads_back(request_of: RequestOf, error: HTTPError) -> None:
    response = render_problem(error, request_of())

    assert not set(response.body) & set(b"<>&")
    assert MARKUP in json.dumps(json.loads(response.body), ensure_ascii=False)


@pytest.mark.parametrize("target", ["/v1/\xff", "/v1/<b>"])
def test_the_instance_is_printable_whatever_was_sent(request_of: RequestOf, target: str) -> None:
    shown = document(render_problem(HTTPError(404), request_of(target=target)))

    assert shown["instance"].isascii()
    assert shown["instance"].isprintable()


class Evil(Exception):
    def __str__(self) -> str:
        raise ValueError("cannot be shown")


ERRORS = [
    ValueError(MARKUP),
    KeyError("s3cret"),
    SystemExit("s3cret"),
    ExceptionGroup("s3cret", [ValueError("s3cret")]),
    UnicodeDecodeError("utf-8", b"s3cret", 0, 1, "s3cret"),
    RuntimeError("s3cret \ud800"),
    Evil("s3cret"),
    BaseException("s3cret"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_crash_says_nothing_of_the_exception(request_of: RequestOf, error: BaseException) -> None:
    response = render_crash_problem(error, request_of())

    assert document(response) == {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "detail": "The server failed to answer this request",
        "instance": "/v1/x",
        "request_id": "id-1",
    }


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_with_dev_a_crash_shows_the_exception_escaped(
    tmp_path: Any, request_of: RequestOf, error: BaseException
) -> None:
    request = request_of()
    request.app = Application(tmp_path, dev=True)
    response = render_crash_problem(error, request)
    shown = document(response)

    assert response.status == 500
    assert type(error).__name__ in shown["detail"]
    assert type(error).__name__ in "".join(shown["traceback"])
    assert not set(response.body) & set(b"<>&")
