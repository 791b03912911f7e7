"""The payload of the log line: what was read, and what is read ahead of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Request
from treefold_http._requests.log_payload import (
    MAX_RENDERED,
    MAX_UNREAD,
    read_small_unread_body,
    render_masked_payload,
)

RequestOf = Callable[..., Request]

JSON = [("content-type", "application/json")]
FORM = [("content-type", "application/x-www-form-urlencoded")]


def described(request: Request, *, read: bool = True) -> str:
    async def main() -> str:
        if read:
            await request.body()
        return render_masked_payload(request)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("headers", "body", "payload"),
    [
        (JSON, b'{"a": 1, "password": "zz"}', '{"a":1,"password":"***"}'),
        ([("content-type", "application/problem+json")], b'[{"token":"zz"}]', '[{"token":"***"}]'),
        ([("content-type", "Application/JSON; charset=utf-8")], b"[1]", "[1]"),
        (JSON, b"null", "null"),
        (JSON, b'{"password":"zz"', "<application/json 16>"),
        (JSON, b'{"a":1,"a":2}', "<application/json 13>"),
        (JSON, b"\xff", "<application/json 1>"),
        (JSON, b"[" * 5000, "<application/json 5000>"),
        (FORM, b"%ff=zz", "<application/x-www-form-urlencoded 6>"),
        (FORM, b' {"a": [1], "password": "zz"}', '{"a":[1],"password":"***"}'),
        (FORM, b'[{"token":"zz"}]', '[{"token":"***"}]'),
        (FORM, b"[1, 2]", "[1,2]"),
        (FORM, b'{"password":"zz"', "<application/x-www-form-urlencoded 16>"),
        (FORM, b"{a}=1", '{"{a}":"1"}'),
        (FORM, b"a&" * 1001, "<application/x-www-form-urlencoded 2002>"),
        ([("content-type", "image/png")], b"x" * 5120, "<image/png 5120>"),
        ([], b"[1]", "<application/octet-stream 3>"),
        (JSON, b"", "-"),
    ],
)
def test_a_body_that_was_read_is_described(
    request_of: RequestOf, headers: list[tuple[str, str]], body: bytes, payload: str
) -> None:
    assert described(request_of("POST", chunks=[body], headers=headers)) == payload


def test_a_form_is_described_with_its_secrets_masked(request_of: RequestOf) -> None:
    payload = described(request_of("POST", chunks=[b"a=1&b+c=d%26e&new_password=zz"], headers=FORM))

    assert "zz" not in payload
    assert "new_password" in payload
    assert "***" in payload


def test_a_large_body_is_summarised(request_of: RequestOf) -> None:
    exactly = b'"' + b"a" * (MAX_RENDERED - 2) + b'"'

    assert described(request_of("POST", chunks=[exactly], headers=JSON)).startswith('"aaa')
    assert (
        described(request_of("POST", chunks=[exactly + b" "], headers=JSON))
        == "<application/json 65537>"
    )


def test_a_body_that_nobody_read_is_described_by_its_declared_size(request_of: RequestOf) -> None:
    request = request_of("POST", chunks=[b"x" * 100], headers=[("content-type", "image/png")])

    assert described(request, read=False) == "<image/png 100>"


def test_a_body_of_unknown_size_that_nobody_read_is_nothing(request_of: RequestOf) -> None:
    assert described(request_of("POST", chunks=[b"a", b"b"]), read=False) == "-"


def test_a_stream_is_described_by_the_size_that_was_taken(request_of: RequestOf) -> None:
    async def main() -> str:
        request = request_of("POST", chunks=[b"abc", b"de"], headers=[("content-type", "text/csv")])
        async for _ in request.stream():
            pass
        return render_masked_payload(request)

    assert asyncio.run(main()) == "<text/csv 5>"


@pytest.mark.parametrize(
    "kind",
    ["text/\x1b[2J", "a b c", 'x"y', "a\x85b", "x" * 5000, "id=forged payload={}", "<a> <b>"],
)
def test_a_hostile_content_type_cannot_forge_a_line(request_of: RequestOf, kind: str) -> None:
    request = request_of("POST", chunks=[b"x"], headers=[("content-type", kind)])
    payload = described(request)

    assert payload.isprintable()
    assert payload.isascii()
    assert len(payload) < 4096
    assert " id=" not in payload


def ahead(request: Request) -> bytes | None:
    async def main() -> bytes | None:
        async with asyncio.timeout(5):
            await read_small_unread_body(request)
        return request.reader.buffered_body

    return asyncio.run(main())


@pytest.mark.parametrize("headers", [JSON, FORM])
@pytest.mark.parametrize("chunks", [[b"[1]"], [b"[", b"1", b"]"]], ids=["declared", "chunked"])
def test_a_small_body_that_was_left_is_read_ahead(
    request_of: RequestOf, headers: list[tuple[str, str]], chunks: list[bytes]
) -> None:
    assert ahead(request_of("POST", chunks=chunks, headers=headers)) == b"[1]"


@pytest.mark.parametrize(
    ("headers", "chunks"),
    [
        ([("content-type", "image/png")], [b"x"]),
        ([("content-type", "multipart/form-data; boundary=x")], [b"x"]),
        ([], [b"x"]),
        (JSON, [b" " * (MAX_UNREAD + 1)]),
        (JSON, [b" " * MAX_UNREAD, b" "]),
        ([*JSON, ("expect", "100-continue")], [b"[1]"]),
    ],
    ids=["image", "multipart", "no type", "large", "large chunked", "expect"],
)
def test_any_other_body_is_left_alone(
    request_of: RequestOf, headers: list[tuple[str, str]], chunks: list[bytes]
) -> None:
    assert ahead(request_of("POST", chunks=chunks, headers=headers)) is None


def test_a_body_that_was_begun_is_left_alone(request_of: RequestOf) -> None:
    async def main() -> None:
        request = request_of("POST", chunks=[b"[", b"1]"], headers=JSON)
        stream = request.stream()
        assert await anext(stream) == b"["
        await read_small_unread_body(request)
        assert [chunk async for chunk in stream] == [b"1]"]

    asyncio.run(main())


def test_a_body_that_does_not_arrive_is_not_waited_for(request_of: RequestOf) -> None:
    async def never() -> Any:
        await asyncio.Event().wait()

    request = request_of("POST", chunks=[b"[1]"], headers=JSON)
    request.reader.receive = never

    assert ahead(request) is None


def test_a_client_that_leaves_while_it_is_read_ahead_is_no_error(request_of: RequestOf) -> None:
    request = request_of("POST", chunks=[b"["], cut=True, headers=[*JSON, ("content-length", "5")])

    assert ahead(request) is None
    assert render_masked_payload(request) == "<application/json 5>"
