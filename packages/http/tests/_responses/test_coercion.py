"""The table from a handler's return value to a response (interface, 'Return coercion')."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import math
import re
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

import pytest
from http_ids import stable_repr

from treefold_http import Response, StreamingResponse
from treefold_http._responses.coercion import to_response
from treefold_http._responses.response_model import apply_response_model
from treefold_http._types.outputs import read_declared_outputs


@dataclasses.dataclass
class Point:
    x: int


class Dictionary(dict[str, int]):
    pass


class Words(str):
    __slots__ = ()


class Pair(NamedTuple):
    content: str
    status: int


class Modelled:
    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"mode": mode}


async def letters() -> AsyncIterator[str]:
    yield "a"


def digits() -> Iterator[bytes]:
    yield b"1"


JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"


ROWS: list[tuple[Any, bytes, str | None, int]] = [
    ({"a": 1}, b'{"a":1}', JSON, 200),
    ({}, b"{}", JSON, 200),
    ([], b"[]", JSON, 200),
    ([1, None], b"[1,null]", JSON, 200),
    ("", b"", TEXT, 200),
    ("<html>", b"<html>", TEXT, 200),
    ("é", "é".encode(), TEXT, 200),
    (None, b"", None, 204),
    (b"\x00", b"\x00", BYTES, 200),
    (bytearray(b"a"), b"a", BYTES, 200),
    (memoryview(b"a"), b"a", BYTES, 200),
    (Point(1), b'{"x":1}', JSON, 200),
    ([Point(1), Point(2)], b'[{"x":1},{"x":2}]', JSON, 200),
    (Modelled(), b'{"mode":"json"}', JSON, 200),
    (Dictionary(a=1), b'{"a":1}', JSON, 200),
    (collections.OrderedDict(a=1), b'{"a":1}', JSON, 200),
    (Words("w"), b"w", TEXT, 200),
    (({"a": 1}, 201), b'{"a":1}', JSON, 201),
    (("text", 202), b"text", TEXT, 202),
    (([1], HTTPStatus.ACCEPTED), b"[1]", JSON, 202),
    ((None, 404), b"", None, 404),
    ((b"x", 200), b"x", BYTES, 200),
    ((Point(1), 201), b'{"x":1}', JSON, 201),
    (("x", 200, {}), b"x", TEXT, 200),
]


@pytest.mark.parametrize(("result", "body", "kind", "status"), ROWS, ids=stable_repr)
def test_each_row_of_the_table(result: Any, body: bytes, kind: str | None, status: int) -> None:
    response = to_response(result)

    assert (response.body, response.status) == (body, status)
    assert type(response.status) is int
    assert response.headers.get("content-type") == kind


@pytest.mark.parametrize(
    "response", [Response("x", 418), StreamingResponse(digits()), Response.json({})]
)
def test_a_response_is_used_as_it_is(response: Response) -> None:
    assert to_response(response) is response
    assert to_response(response, 201) is response


@pytest.mark.parametrize("make", [letters, digits, lambda: iter([b"1"])])
def test_a_generator_is_a_stream(make: Any) -> None:
    response = to_response(make())

    assert isinstance(response, StreamingResponse)
    assert response.status == 200
    assert response.headers["content-type"] == BYTES


@pytest.mark.parametrize(
    ("result", "status"),
    [({"a": 1}, 201), ([], 201), ("x", 201), (None, 201), (b"x", 201), (Point(1), 201)],
    ids=stable_repr,
)
def test_the_status_of_the_module_goes_to_plain_values(result: Any, status: int) -> None:
    assert to_response(result, status).status == status


def test_the_status_of_a_tuple_wins_over_that_of_the_module() -> None:
    assert to_response(("x", 202), 201).status == 202


def test_headers_of_a_tuple_are_added() -> None:
    response = to_response(({"a": 1}, 201, {"X-A": "1", "Location": "/v1/a"}))

    assert response.headers["x-a"] == "1"
    assert response.headers["location"] == "/v1/a"
    assert response.headers.getlist("content-type") == [JSON]


def test_headers_of_a_tuple_may_name_the_content_type() -> None:
    response = to_response(("<p>", 200, {"Content-Type": "text/html"}))

    assert response.headers.getlist("content-type") == ["text/html"]


@pytest.mark.parametrize(
    "result",
    [
        1,
        0,
        True,
        1.5,
        {1},
        frozenset[int](),
        object(),
        1j,
        Point,
        Modelled,
        range(3),
        {"a": 1}.keys(),
        Exception("no"),
        letters,
        Pair("x", 200),
        Ellipsis,
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused_by_the_name_of_its_type(result: Any) -> None:
    name = type(result).__qualname__
    with pytest.raises(
        TypeError,
        match=f"^A handler must return a dict, .* or a Response, got '{name}';"
        " set response_model to send its members$",
    ):
        to_response(result)


def test_a_value_without_a_form_is_never_shown() -> None:
    class Secret:
        def __repr__(self) -> str:
            return "s3cret"

        __str__ = __repr__

    for result in (Secret(), [Secret()], {"a": Secret()}, (Secret(), 200)):
        with pytest.raises(TypeError) as caught:
            to_response(result)
        assert "s3cret" not in str(caught.value)
        assert "Secret" in str(caught.value)


@pytest.mark.parametrize("result", [(), ("x",), ("x", 200, {}, None)], ids=stable_repr)
def test_a_tuple_of_another_length_is_refused(result: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"^A handler returned a tuple of {len(result)}; return \("
    ):
        to_response(result)


@pytest.mark.parametrize(
    "first", [Response("x"), ("x", 200), (), StreamingResponse([])], ids=stable_repr
)
def test_a_tuple_around_a_response_or_a_tuple_is_refused(first: Any) -> None:
    name = type(first).__qualname__
    with pytest.raises(TypeError, match=f"a tuple that starts with '{name}'; set the status on"):
        to_response((first, 201))


@pytest.mark.parametrize("status", ["200", 200.0, True, [], object()], ids=stable_repr)
def test_a_status_that_is_no_int_is_refused(status: Any) -> None:
    with pytest.raises(
        ValueError, match=f"^A status must be an int such as 200, got {re.escape(repr(status))}$"
    ):
        to_response(("x", status))


def test_a_tuple_whose_status_is_none_is_refused() -> None:
    with pytest.raises((TypeError, ValueError), match="None"):
        to_response(("x", None))


@pytest.mark.parametrize("status", [0, 100, 101, 199, 600, -1, 2**40])
def test_a_status_out_of_range_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match=f"^A status must be from 200 to 599, got {status}$"):
        to_response(("x", status))
    with pytest.raises(ValueError, match="must be from 200 to 599"):
        to_response({}, status)


@pytest.mark.parametrize("headers", [None, [("a", "1")], "a: 1", 5], ids=stable_repr)
def test_headers_that_are_no_mapping_are_refused(headers: Any) -> None:
    with pytest.raises(
        TypeError, match=f"headers of type '{type(headers).__qualname__}'; return a mapping"
    ):
        to_response(("x", 200, headers))


@pytest.mark.parametrize("headers", [{"x": "a\r\nb"}, {"x y": "1"}, {"x": "\x00"}], ids=stable_repr)
def test_headers_that_would_split_the_answer_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="eader"):
        to_response(("x", 200, headers))


@pytest.mark.parametrize(
    "result", [{"a": math.nan}, [math.inf], ({"a": math.nan}, 200)], ids=stable_repr
)
def test_a_number_that_json_has_not_is_refused(result: Any) -> None:
    with pytest.raises(ValueError, match=r"(?i)float"):
        to_response(result)


@pytest.mark.parametrize("result", ["\ud800", ("\ud800", 200), {"a": "\ud800"}], ids=ascii)
def test_text_that_is_no_unicode_is_refused(result: Any) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        to_response(result)


class Query:
    """A query, which is sent when it is awaited."""

    def __await__(self) -> Iterator[None]:
        yield None


async def save() -> int:
    return 1


@pytest.mark.parametrize(
    ("make", "name"), [(save, "save"), (Query, "Query"), (lambda: (save(), 201), "save")]
)
def test_a_forgotten_await_is_named(make: Any, name: str) -> None:
    hold = apply_response_model(
        _return_argument, read_declared_outputs(int, None), None, "v1/X/Get.py"
    )

    async def answer(result: Any) -> Any:
        return await hold(result)

    message = f"^A handler must return the result of '{name}', which has not been awaited; write"
    with pytest.raises(TypeError, match=message):
        to_response(make())
    with pytest.raises(TypeError, match=message):
        asyncio.run(answer(make()))


async def _return_argument(connection: Any) -> Any:
    return connection
