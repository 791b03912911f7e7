"""What a request line and header may be: S-13, S-21, S-23."""

from __future__ import annotations

import time
from typing import Any

import pytest

from treefold_http import HTTPError
from treefold_http._wire.request_guard import SINGLE_FIELDS, require_valid_head

Raw = list[tuple[bytes, bytes]]

TOO_LARGE = "The header is larger than 32768 bytes or 100 fields"


def verdict(raw: Raw, *, path: bytes = b"/v1/x", query: bytes = b"") -> HTTPError | None:
    scope: dict[str, Any] = {"headers": raw, "query_string": query}
    try:
        require_valid_head(scope, dict(raw), path)
    except HTTPError as refusal:
        return refusal
    return None


def host(value: bytes) -> Raw:
    return [(b"host", value)]


@pytest.mark.parametrize(
    "value",
    [
        b"localhost",
        b"example.localhost",
        b"EXAMPLE.local",
        b"a_b.example.localhost",
        b"example.localhost.",
        b"127.0.0.1:8000",
        b"[::1]",
        b"[::1]:8000",
        b"[::ffff:1.2.3.4]",
        b"xn--bcher-kva.example:443",
    ],
)
def test_a_host_with_an_optional_port_is_taken(value: bytes) -> None:
    assert verdict(host(value)) is None
    assert verdict(host(value)) is None  # the second time it is remembered


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"localhost/?",
        b"a@evil",
        b"a b",
        b"a\x00",
        b"a\n",
        b"a#b",
        b"a?b",
        b"a\\b",
        b"a,b",
        b"user:pw@host",
        b"a:8000:9000",
        b"a:port",
        b"a:123456",
        b"[::1",
        b"::1",
        b"[evil]",
        b"[::1]x",
        b"\xc3\xa4",
        b"%65vil",
        b"http://a",
        b"a" * 256,
        b":8000",
    ],
)
def test_a_host_that_is_malformed_is_400(value: bytes) -> None:
    refusal = verdict(host(value))

    assert refusal is not None
    assert (refusal.status, refusal.message) == (
        400,
        "A request must have a Host field of the form host[:port]",
    )


def test_a_missing_host_is_400() -> None:
    refusal = verdict([(b"accept", b"*/*")])

    assert refusal is not None
    assert refusal.status == 400


@pytest.mark.parametrize("second", [b"a.example", b"b.example", b""])
def test_two_host_fields_are_400_even_when_equal(second: bytes) -> None:
    refusal = verdict([(b"host", b"a.example"), (b"host", second)])

    assert refusal is not None
    assert (refusal.status, refusal.message) == (400, "More than one Host field")


def test_repeats_of_other_fields_are_taken() -> None:
    assert verdict([*host(b"a"), (b"cookie", b"a=1"), (b"cookie", b"b=2")]) is None


def test_a_hundred_fields_are_taken_and_one_more_is_431() -> None:
    fields = [*host(b"a"), *((b"x-%d" % n, b"1") for n in range(99))]
    refusal = verdict([*fields, (b"x-more", b"1")])

    assert verdict(fields) is None
    assert refusal is not None
    assert (refusal.status, refusal.message) == (431, TOO_LARGE)


@pytest.mark.parametrize("name", [b"x-a", b"host"], ids=["distinct", "repeated"])
def test_thirty_two_kilobytes_of_header_are_taken_and_one_byte_more_is_431(name: bytes) -> None:
    repeated = [(b"y", b""), (b"y", b"")] if name == b"host" else []
    used = len(b"host") + 1 + 2 * (name == b"host")
    room = 32 * 1024 - used - 1
    exact = [*host(b"a"), *repeated, (b"x", b"v" * room)]
    refusal = verdict([*exact[:-1], (b"x", b"v" * (room + 1))])

    assert verdict(exact) is None
    assert refusal is not None
    assert (refusal.status, refusal.message) == (431, TOO_LARGE)


def test_a_target_of_eight_kilobytes_is_taken_and_one_byte_more_is_414() -> None:
    path = b"/" + b"a" * 4095
    refusal = verdict(host(b"a"), path=path, query=b"q" * 4097)

    assert verdict(host(b"a"), path=path, query=b"q" * 4096) is None
    assert refusal is not None
    assert (refusal.status, refusal.message) == (
        414,
        "The request target is longer than 8192 bytes",
    )


@pytest.mark.parametrize(
    "raw",
    [
        [(b"x-%d" % n, b"1") for n in range(10_000)],
        [*host(b"a"), (b"x", b"v" * 1024 * 1024)],
        [(b"x", b"v" * 1000)] * 5_000,
    ],
    ids=["10,000 fields", "one megabyte", "5,000 repeats"],
)
def test_a_flood_is_refused_quickly(raw: Raw) -> None:
    started = time.thread_time()
    refusal = verdict(raw)

    assert refusal is not None
    assert refusal.status == 431
    assert time.thread_time() - started < 0.2


def test_a_host_is_checked_again_after_thousands_of_others() -> None:
    for number in range(3_000):
        assert verdict(host(b"h%d.example" % number)) is None
    refusal = verdict(host(b"still/bad"))

    assert refusal is not None
    assert refusal.status == 400


def test_a_server_without_raw_path_is_served() -> None:
    scope: dict[str, Any] = {"headers": host(b"a"), "query_string": b""}
    require_valid_head(scope, dict(host(b"a")), "/v1/decoded path")
    with pytest.raises(HTTPError):
        require_valid_head(scope, dict(host(b"a")), "/" * (8 * 1024 + 1))


@pytest.mark.parametrize("values", [[b"0"], [b"5"], [b"005"], [b"9" * 19]])
def test_a_content_length_of_one_decimal_number_is_taken(values: list[bytes]) -> None:
    assert verdict([*host(b"a"), *((b"content-length", value) for value in values)]) is None


@pytest.mark.parametrize(
    "values",
    [
        [b""],
        [b"+2"],
        [b"-1"],
        [b"2 "],
        [b" 2"],
        [b"0x5"],
        [b"5_0"],
        [b"5.0"],
        [b"2,2"],
        [b"\xb2"],
        [b"\xd9\xa3"],
        [b"2", b"3"],
        [b"2", b""],
        [b"", b"2"],
        [b"5", b"05"],
        [b"9" * 20],
        [b"9" * 5000],
    ],
)
def test_any_other_content_length_is_400(values: list[bytes]) -> None:
    # RFC 9112, 6.3: two readings of it are two requests.
    refusal = verdict([*host(b"a"), *((b"content-length", value) for value in values)])

    assert refusal is not None
    assert (refusal.status, refusal.message) == (400, "Content-Length must be one decimal number")


@pytest.mark.parametrize("version", ["0.9", "2.0", "3.0"])
def test_s130_another_version_of_http_is_505(version: str) -> None:
    raw = host(b"a")
    scope: dict[str, Any] = {"headers": raw, "query_string": b"", "http_version": version}

    with pytest.raises(HTTPError) as refused:
        require_valid_head(scope, dict(raw), b"/")
    assert refused.value.status == 505


@pytest.mark.parametrize("name", sorted(SINGLE_FIELDS))
def test_s129_a_repeated_field_that_may_stand_once_is_refused(name: bytes) -> None:
    refusal = verdict([*([] if name == b"host" else host(b"a")), (name, b"a"), (name, b"a")])

    assert refusal is not None
    assert refusal.status == (415 if name == b"content-encoding" else 400)
