"""Urlencoded forms and what needs no extra: S-39, and `form()` / `files()` in the rulings."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest
from hypothesis import given, strategies as st

from treefold_http import HTTPError, TreefoldError
from treefold_http._bodies.forms import URLENCODED, FormData, ParsedForm, parse_form
from treefold_http._bodies.multipart import MissingExtra
from treefold_http._wire.limits import Limits


async def chunked(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def parsed(
    body: bytes, content_type: str = URLENCODED, *, limits: Limits | None = None, size: int = 7
) -> ParsedForm:
    return asyncio.run(parse_form(content_type, chunked(body, size), limits=limits or Limits()))


def refusal(
    body: bytes, content_type: str = URLENCODED, *, limits: Limits | None = None
) -> tuple[int, str]:
    with pytest.raises(HTTPError) as refused:
        parsed(body, content_type, limits=limits)
    return refused.value.status, refused.value.message


@pytest.mark.parametrize(
    ("body", "pairs"),
    [
        (b"", []),
        (b"a=1", [("a", "1")]),
        (b"a=1&b=2&a=3", [("a", "1"), ("b", "2"), ("a", "3")]),
        (b"a=1;b=2", [("a", "1;b=2")]),
        (b"a+b=%C3%A9+%2B", [("a b", "é +")]),
        (b"a", [("a", "")]),
        (b"_charset_=latin-1&a=%C3%A9", [("_charset_", "latin-1"), ("a", "é")]),
    ],
)
def test_an_urlencoded_body_gives_its_fields(body: bytes, pairs: list[tuple[str, str]]) -> None:
    form = parsed(body)
    assert isinstance(form.fields, FormData)
    assert form.fields.multi_items() == pairs
    assert len(form.files) == 0


@pytest.mark.parametrize(
    "content_type", [URLENCODED, "Application/X-WWW-Form-Urlencoded ; charset=utf-8"]
)
def test_the_media_type_is_read_in_any_case_and_without_parameters(content_type: str) -> None:
    assert parsed(b"a=1", content_type).fields["a"] == "1"


@given(
    pairs=st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])),
            st.text(st.characters(exclude_categories=["Cs"])),
        )
    )
)
def test_what_is_encoded_comes_back(pairs: list[tuple[str, str]]) -> None:
    assert parsed(urlencode(pairs).encode()).fields.multi_items() == pairs


@pytest.mark.parametrize(
    ("content_type", "message"),
    [
        (
            "",
            "Content-Type is missing;"
            " send application/x-www-form-urlencoded or multipart/form-data",
        ),
        (
            "Application/JSON; charset=utf-8",
            "Content-Type is 'application/json';"
            " send application/x-www-form-urlencoded or multipart/form-data",
        ),
    ],
)
def test_a_body_that_is_no_form_is_415(content_type: str, message: str) -> None:
    assert refusal(b"{}", content_type) == (415, message)


@pytest.mark.parametrize("body", [b"a=%FF", b"a=\xff", b"%C3=1"])
def test_text_that_is_not_utf_8_is_400(body: bytes) -> None:
    assert refusal(body) == (400, "A name or value is not UTF-8 text")


@pytest.mark.parametrize(
    ("limits", "body", "answer"),
    [
        (Limits(parts=2), b"a=1&b=2&c=3", (400, "More than 2 name=value pairs")),
        (Limits(field=3), b"b=123&a=%C3%A91%31", (413, "Field 'a' is larger than 3 bytes")),
        (
            Limits(urlencoded=10),
            b"a=123456789",
            (413, "The form must have at most 10 bytes"),
        ),
    ],
)
def test_s39_a_form_above_a_limit_is_refused(
    limits: Limits, body: bytes, answer: tuple[int, str]
) -> None:
    assert refusal(body, limits=limits) == answer


@pytest.mark.parametrize(
    ("limits", "body"),
    [
        (Limits(parts=2), b"a=1&b=2"),
        (Limits(field=3), b"a=%C3%A91"),
        (Limits(urlencoded=11), b"a=123456789"),
    ],
)
def test_a_form_at_a_limit_is_taken(limits: Limits, body: bytes) -> None:
    assert "a" in parsed(body, limits=limits).fields


def test_s39_a_hundred_thousand_fields_are_refused_at_once() -> None:
    body = b"a=1&" * 100_000
    started = time.process_time()
    status, _ = refusal(body)
    assert status == 400
    assert time.process_time() - started < 1.0


def test_a_multipart_form_without_its_extra_names_the_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "python_multipart", None)
    monkeypatch.setitem(sys.modules, "python_multipart.exceptions", None)
    monkeypatch.setitem(sys.modules, "python_multipart.multipart", None)
    with pytest.raises(MissingExtra) as missing:
        parsed(b"", "multipart/form-data; boundary=x")
    assert isinstance(missing.value, TreefoldError)
    assert str(missing.value) == (
        'A multipart form needs python-multipart; run pip install "treefold[files]"'
    )


_BAD_BOUNDARY = (
    "Content-Type has no boundary of 1 to 70 characters"
    " that RFC 2046 allows; send letters and digits"
)


@pytest.mark.parametrize(
    ("content_type", "message"),
    [
        ("multipart/form-data", _BAD_BOUNDARY),
        ("multipart/form-data; boundary=", _BAD_BOUNDARY),
        ("multipart/form-data; boundary=" + "x" * 71, _BAD_BOUNDARY),
        ("multipart/form-data; boundary=" + "x" * 300, _BAD_BOUNDARY),
        ('multipart/form-data; boundary="x "', _BAD_BOUNDARY),
        ("multipart/form-data; boundary=é", _BAD_BOUNDARY),
        ('multipart/form-data; boundary="<>"', _BAD_BOUNDARY),
        (
            "multipart/form-data; boundary=a; boundary=b",
            "Content-Type repeats the parameter 'boundary'",
        ),
        (
            "multipart/form-data; boundary",
            "Content-Type has a parameter that is not a name=value pair",
        ),
        ("multipart/form-data;" + " " * 5000, "Content-Type is longer than 4096 characters"),
    ],
)
def test_s37_a_bad_boundary_is_400(content_type: str, message: str) -> None:
    assert refusal(b"", content_type) == (400, message)
