"""The `Cookie` field to values, and values to a `Set-Cookie` field that nobody can add to."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from hypothesis import example, given, strategies as st

from treefold_http._headers.cookies import SameSite, format_cookie, parse_cookies

TOKEN = st.text("abcXYZ019!#$%&'*+-.^_`|~", min_size=1)
VALUE = st.text([chr(n) for n in range(0x21, 0x7F) if chr(n) not in '",;\\'])


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("", []),
        (";;; ;", []),
        ("a=1", [("a", "1")]),
        ("a=1; b=2", [("a", "1"), ("b", "2")]),
        ("a=1;b=2", [("a", "1"), ("b", "2")]),
        ("\ta = 1 ;\tb =2", [("a", "1"), ("b", "2")]),
        ("a=", [("a", "")]),
        ("a==b=", [("a", "=b=")]),
        ("a=1; a=2", [("a", "1"), ("a", "2")]),
        ('a="x y"', [("a", "x y")]),
        ('a=""', [("a", "")]),
        ('a="', [("a", '"')]),
        ('a=x"y', [("a", 'x"y')]),
        ("a=%41", [("a", "%41")]),
        ("a=é", [("a", "é")]),
        ("A=1", [("A", "1")]),
    ],
)
def test_pairs_are_split_and_values_kept_as_sent(field: str, found: list[tuple[str, str]]) -> None:
    assert parse_cookies(field) == found


@pytest.mark.parametrize(
    "field",
    ["alone", "=__Host-s=bad", " =x", "na me=x", "n\u00e4me=x", 'a"b=x', "a(b)=x", "\x00=x"],
)
def test_a_pair_whose_name_is_no_token_is_dropped(field: str) -> None:
    assert parse_cookies(f"{field}; good=1") == [("good", "1")]


def test_a_percent_encoded_name_never_becomes_a_prefixed_one() -> None:
    assert parse_cookies("__%48ost-s=bad") == [("__%48ost-s", "bad")]


def test_at_most_a_hundred_cookies_are_taken() -> None:
    found = parse_cookies("; ".join(f"c{n}={n}" for n in range(500)))

    assert found == [(f"c{n}", str(n)) for n in range(100)]


@pytest.mark.parametrize("noise", ['\\"', ";", "=", " ", '"', "a=;", "\\", "; ="])
def test_thirty_kilobytes_of_noise_are_read_in_linear_time(noise: str) -> None:
    field = noise * (30_000 // len(noise))
    started = time.thread_time()
    parse_cookies(field)

    assert time.thread_time() - started < 0.2


@given(st.text())
@example("a=1;\x00=;=\ud800")
def test_parsing_never_raises_and_gives_token_names(field: str) -> None:
    for name, _ in parse_cookies(field):
        assert name
        assert not set(name) & set(' \t;="(),/:<>?@[\\]{}')


@given(st.lists(st.tuples(TOKEN, VALUE), max_size=20))
def test_what_is_formatted_is_parsed_back(pairs: list[tuple[str, str]]) -> None:
    sent = [
        format_cookie(name, value, path=None, secure=False)
        for name, value in pairs
        if not _prefixed(name)
    ]
    field = "; ".join(cookie.split(";")[0] for cookie in sent)

    assert parse_cookies(field) == [pair for pair in pairs if not _prefixed(pair[0])]


def _prefixed(name: str) -> bool:
    return name.lower().startswith(("__host-", "__secure-"))


def test_a_cookie_is_secure_http_only_and_lax_unless_said_otherwise() -> None:
    assert format_cookie("s", "1") == "s=1; Path=/; Secure; HttpOnly; SameSite=Lax"


def test_every_attribute_has_its_place() -> None:
    cookie = format_cookie(
        "s",
        "1",
        max_age=60,
        expires=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        path="/v1",
        domain="example.localhost",
        httponly=False,
        samesite="none",
        partitioned=True,
    )

    assert cookie == (
        "s=1; Max-Age=60; Expires=Wed, 02 Jan 2030 03:04:05 GMT; Domain=example.localhost;"
        " Path=/v1; Secure; SameSite=None; Partitioned"
    )


def test_attributes_that_are_none_are_left_out() -> None:
    assert format_cookie("s", "", path=None, secure=False, httponly=False, samesite=None) == "s="


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2030, 1, 2, 3, 4, 5),
        datetime(2030, 1, 2, 5, 4, 5, tzinfo=timezone(timedelta(hours=2))),
    ],
    ids=["naive is UTC", "aware is converted"],
)
def test_the_end_of_life_is_written_in_gmt(moment: datetime) -> None:
    assert "Expires=Wed, 02 Jan 2030 03:04:05 GMT" in format_cookie("s", "1", expires=moment)


@pytest.mark.parametrize("samesite", get_args(SameSite))
def test_each_samesite_is_written_with_a_capital(samesite: SameSite) -> None:
    assert f"SameSite={samesite.capitalize()}" in format_cookie("s", "1", samesite=samesite)


@pytest.mark.parametrize(
    "name", ["", "a b", "a=b", "a;b", "a,b", "ä", "a\r\nb", "a\x00", 'a"', "a\n"]
)
def test_a_name_that_is_no_token_is_refused(name: str) -> None:
    expected = r"^A cookie name must consist of letters, digits, - or _ \(RFC 6265\), got "
    expected += re.escape(repr(name)) + "$"
    with pytest.raises(ValueError, match=expected):
        format_cookie(name, "1")


@pytest.mark.parametrize(
    "value",
    [
        "a; Domain=evil",
        "a,b",
        "a b",
        'a"b',
        "a\\b",
        "a\r\nSet-Cookie: e=1",
        "a\x00",
        "é",
        "\x7f",
        "a\n",
        "\u010a",
    ],
)
def test_a_value_that_would_end_the_cookie_is_refused(value: str) -> None:
    expected = r"^The value of cookie 's' must not contain a space, .*; encode it first$"
    with pytest.raises(ValueError, match=expected):
        format_cookie("s", value)


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("path", "/; HttpOnly="),
        ("path", "/\r\nSet-Cookie: e=1"),
        ("path", "/\x00"),
        ("path", "/é"),
        ("domain", "evil.example; Path=/"),
        ("domain", "a\r\nb"),
        ("domain", "a\n"),
    ],
)
def test_an_attribute_that_would_add_another_is_refused(label: str, text: str) -> None:
    attributes: dict[str, Any] = {label: text}
    expected = f"^Cookie {label} must not contain a semicolon or a control character, got "
    expected += re.escape(repr(text)) + "$"
    with pytest.raises(ValueError, match=expected):
        format_cookie("s", "1", **attributes)


@pytest.mark.parametrize("samesite", ["Lax; x", "LAX", "", "lax\n"])
def test_a_samesite_of_another_word_is_refused(samesite: Any) -> None:
    expected = (
        f"^Cookie samesite must be 'lax', 'strict' or 'none', got {re.escape(repr(samesite))}$"
    )
    with pytest.raises(ValueError, match=expected):
        format_cookie("s", "1", samesite=samesite)


@pytest.mark.parametrize("options", [{"samesite": "none"}, {"partitioned": True}])
def test_cross_site_cookies_need_secure(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^Cookie 's' with samesite='none' or partitioned needs"):
        format_cookie("s", "1", secure=False, **options)


@pytest.mark.parametrize("name", ["__Secure-s", "__secure-s", "__SECURE-s"])
def test_a_secure_prefix_needs_secure(name: str) -> None:
    expected = "must be secure because of its prefix; set secure=True or rename it$"
    with pytest.raises(ValueError, match=expected):
        format_cookie(name, "1", secure=False)


@pytest.mark.parametrize(
    "options", [{"secure": False}, {"path": "/v1"}, {"path": None}, {"domain": "example.localhost"}]
)
@pytest.mark.parametrize("name", ["__Host-s", "__hOsT-s"])
def test_a_host_prefix_needs_what_it_promises(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must have secure=True, path='/' and no domain because"):
        format_cookie(name, "1", **options)


def test_a_host_cookie_with_the_defaults_is_written() -> None:
    assert format_cookie("__Host-s", "1").startswith("__Host-s=1; Path=/; Secure")


@given(st.text(), st.text(), st.none() | st.text(), st.none() | st.text())
@example("s", "1", "/\x85", None)
def test_what_is_written_is_one_printable_line_with_the_attributes_given(
    name: str, value: str, path: str | None, domain: str | None
) -> None:
    try:
        cookie = format_cookie(name, value, path=path, domain=domain, samesite=None)
    except ValueError:
        return
    parts = cookie.split("; ")

    assert cookie.isascii()
    assert cookie.isprintable()
    assert [part.partition("=")[0] for part in parts[1:]] == [
        *(["Domain"] if domain is not None else []),
        *(["Path"] if path is not None else []),
        "Secure",
        "HttpOnly",
    ]
