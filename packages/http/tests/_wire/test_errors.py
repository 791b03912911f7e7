"""Exceptions that answer with a status."""

from __future__ import annotations

import copy
import pickle

import pytest

from treefold_http import (
    BadRequest,
    BootError,
    Conflict,
    Forbidden,
    HTTPError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    ServiceUnavailable,
    SettingsError,
    TooManyRequests,
    TreefoldError,
    Unauthorized,
    UnprocessableEntity,
    UnsupportedMediaType,
)

CLASSES = [
    (BadRequest, 400, "Bad Request"),
    (Unauthorized, 401, "Unauthorized"),
    (Forbidden, 403, "Forbidden"),
    (NotFound, 404, "Not Found"),
    (MethodNotAllowed, 405, "Method Not Allowed"),
    (Conflict, 409, "Conflict"),
    (PayloadTooLarge, 413, "Content Too Large"),
    (UnsupportedMediaType, 415, "Unsupported Media Type"),
    (UnprocessableEntity, 422, "Unprocessable Content"),
    (TooManyRequests, 429, "Too Many Requests"),
    (ServiceUnavailable, 503, "Service Unavailable"),
]


@pytest.mark.parametrize(("kind", "status", "title"), CLASSES)
def test_each_class_is_an_http_error_of_its_status(
    kind: type[BadRequest], status: int, title: str
) -> None:
    error = kind("why", headers={"x-a": "1"}, errors=[{"loc": []}])

    assert isinstance(error, HTTPError)
    assert (error.status, error.message) == (status, "why")
    assert error.headers == {"x-a": "1"}
    assert error.errors == [{"loc": []}]
    assert str(error) == f"{status} why"


@pytest.mark.parametrize("status", [400, 418, 499, 500, 599])
def test_any_error_status_is_taken(status: int) -> None:
    assert HTTPError(status, "x").status == status


def test_without_a_message_the_phrase_of_the_status_stands_in() -> None:
    assert str(HTTPError(404)) == "404 Not Found"
    assert HTTPError(404).title == "Not Found"
    assert HTTPError(499).title == "Error"


@pytest.mark.parametrize("status", [0, 99, 200, 302, 399, 600, -404])
def test_a_status_that_is_no_error_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match=f"from 400 to 599, got {status}; return a Response"):
        HTTPError(status, "x")


@pytest.mark.parametrize("headers", [{"x-a": "a\r\nb"}, {"x a": "1"}, {"x-a": "\u010a"}])
def test_a_header_that_would_split_the_answer_is_refused_where_it_is_set(
    headers: dict[str, str],
) -> None:
    with pytest.raises(ValueError, match=r"header|Header"):
        HTTPError(400, "x", headers=headers)


def test_the_headers_given_are_copied() -> None:
    headers = {"x-a": "1"}
    error = HTTPError(400, headers=headers)
    headers["x-a"] = "2"

    assert error.headers == {"x-a": "1"}


@pytest.mark.parametrize("error", [HTTPError(404, "why"), BadRequest("why"), Forbidden()])
def test_an_error_crosses_a_process_boundary(error: HTTPError) -> None:
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is type(error)
        assert (twin.status, twin.message) == (error.status, error.message)


@pytest.mark.parametrize("kind", [BootError, SettingsError])
def test_what_stops_a_boot_has_one_base(kind: type[TreefoldError]) -> None:
    assert issubclass(kind, TreefoldError)
    assert str(kind("one line")) == "one line"
