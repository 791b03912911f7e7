"""Multi-valued mappings, query strings, header fields, the URL, state."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote_plus, unquote_plus

import pytest
from hypothesis import example, given, strategies as st

from treefold_http import (
    URL,
    BadRequest,
    Headers,
    MultiMapping,
    MutableHeaders,
    QueryParams,
    State,
)
from treefold_http._wire.datastructures import parse_urlencoded

PAIRS = st.lists(st.tuples(st.text(), st.text()), max_size=30)


@given(PAIRS)
@example([("a&b", "=&;+% %2B\x00é")])
def test_pairs_survive_the_encoding_that_browsers_use(pairs: list[tuple[str, str]]) -> None:
    pairs = [pair for pair in pairs if _encodable(pair)]
    sent = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)

    assert parse_urlencoded(sent.encode(), limit=1000) == pairs


@given(PAIRS)
def test_text_that_is_sent_as_raw_utf8_is_taken_too(pairs: list[tuple[str, str]]) -> None:
    kept = [pair for pair in pairs if _encodable(pair) and not set("".join(pair)) & set("&=+%")]
    sent = "&".join(f"{name}={value}" for name, value in kept)

    assert parse_urlencoded(sent.encode(), limit=1000) == kept


@given(st.binary())
def test_any_bytes_give_pairs_or_a_bad_request(data: bytes) -> None:
    try:
        pairs = parse_urlencoded(data, limit=20)
    except BadRequest:
        return
    expected = [part.decode() for part in data.split(b"&") if part]
    assert pairs == [
        (unquote_plus(part.partition("=")[0]), unquote_plus(part.partition("=")[2]))
        for part in expected
    ]


def _encodable(pair: tuple[str, str]) -> bool:
    return max("".join(pair), default="") <= "\ud7ff" or not any(
        "\ud800" <= char <= "\udfff" for char in "".join(pair)
    )


@pytest.mark.parametrize(
    ("sent", "pairs"),
    [
        (b"", []),
        (b"&&&", []),
        (b"a", [("a", "")]),
        (b"a=", [("a", "")]),
        (b"=v", [("", "v")]),
        (b"a=1&a=2&b=3", [("a", "1"), ("a", "2"), ("b", "3")]),
        (b"a=1;b=2", [("a", "1;b=2")]),
        (b"a=b=c", [("a", "b=c")]),
        (b"a+b=c+d", [("a b", "c d")]),
        (b"a=%2B%26%3D", [("a", "+&=")]),
        (b"a=%2541", [("a", "%41")]),
        (b"a=%ZZ%4", [("a", "%ZZ%4")]),
        (b"user[name]=x", [("user[name]", "x")]),
        ("é=ü".encode(), [("é", "ü")]),
        (b"%C3%A9=%c3%bc", [("é", "ü")]),
    ],
)
def test_urlencoded_text_is_split_at_ampersands_and_decoded_once(
    sent: bytes, pairs: list[tuple[str, str]]
) -> None:
    assert parse_urlencoded(sent, limit=1000) == pairs


@pytest.mark.parametrize(
    "sent",
    [b"a=%ff", b"a=\xff", b"%fe=1", b"a=%c0%af", b"a=%ed%a0%80", b"a=\xc3", b"\xc3=%A9", b"a=%c3"],
)
def test_text_that_is_not_utf8_is_a_bad_request(sent: bytes) -> None:
    with pytest.raises(BadRequest, match=r"^400 A name or value is not UTF-8 text$"):
        QueryParams.parse(sent)


def test_a_thousand_pairs_are_taken_and_one_more_is_refused() -> None:
    assert len(QueryParams.parse(b"a=1&" * 999 + b"a=1").getlist("a")) == 1000
    with pytest.raises(BadRequest, match=r"^400 More than 1000 name=value pairs$"):
        QueryParams.parse(b"a=1&" * 1000 + b"a=1")


def test_a_flood_of_pairs_is_refused_quickly() -> None:
    started = time.thread_time()
    with pytest.raises(BadRequest):
        parse_urlencoded(b"a=1&" * 100_000, limit=1000)

    assert time.thread_time() - started < 0.2


def test_a_mapping_gives_the_first_value_and_keeps_the_others() -> None:
    mapping = MultiMapping([("a", 1), ("b", 2), ("a", 3)])

    assert mapping["a"] == 1
    assert mapping.get("a") == 1
    assert mapping.getlist("a") == [1, 3]
    assert mapping.multi_items() == [("a", 1), ("b", 2), ("a", 3)]
    assert list(mapping) == ["a", "b"]
    assert len(mapping) == 2


def test_a_name_that_was_not_sent_is_missing() -> None:
    mapping = MultiMapping([("a", 1)])

    assert mapping.get("b") is None
    assert mapping.getlist("b") == []
    assert "b" not in mapping
    with pytest.raises(KeyError, match="b"):
        mapping["b"]


def test_the_pairs_given_out_are_a_copy() -> None:
    mapping = MultiMapping([("a", 1)])
    mapping.multi_items().clear()
    mapping.getlist("a").clear()

    assert mapping.getlist("a") == [1]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (MultiMapping([("token", "zz"), ("b", "zz")]), "MultiMapping(token, b)"),
        (QueryParams.parse(b"token=zz"), "QueryParams(token)"),
        (Headers([(b"authorization", b"zz")]), "Headers(authorization)"),
        (MutableHeaders([(b"set-cookie", b"zz")]), "MutableHeaders(set-cookie)"),
    ],
)
def test_a_repr_shows_names_and_no_value(shown: object, text: str) -> None:
    assert repr(shown) == text


RAW = [(b"accept", b"a"), (b"x-a", b"1"), (b"accept", b"b"), (b"x-b", b"\xe9")]


def test_header_names_are_found_in_any_case() -> None:
    headers = Headers(list(RAW))

    assert headers["Accept"] == headers["ACCEPT"] == headers.get("accept") == "a"
    assert "X-A" in headers
    assert headers["x-b"] == "é"


def test_repeated_header_fields_are_kept() -> None:
    headers = Headers(list(RAW))

    assert headers.getlist("Accept") == ["a", "b"]
    assert headers.multi_items() == [("accept", "a"), ("x-a", "1"), ("accept", "b"), ("x-b", "é")]
    assert list(headers) == ["accept", "x-a", "x-b"]
    assert len(headers) == 3


@pytest.mark.parametrize("name", ["x_a", "x-a ", "", "é", "\u20ac", "\u212aey"])
def test_a_name_is_never_taken_for_another(name: str) -> None:
    headers = Headers([(b"x-a", b"1"), (b"\xe8", b"3")])

    assert name not in headers
    assert headers.getlist(name) == []


def test_setting_a_header_replaces_all_of_its_name() -> None:
    headers = MutableHeaders(list(RAW))
    headers["ACCEPT"] = "c"

    assert headers.getlist("accept") == ["c"]
    assert headers["x-a"] == "1"


def test_appending_a_header_keeps_the_others() -> None:
    headers = MutableHeaders([])
    headers.append("Link", "a")
    headers.append("link", "b")

    assert headers.raw == [(b"link", b"a"), (b"link", b"b")]


def test_deleting_a_header_removes_all_of_its_name() -> None:
    headers = MutableHeaders(list(RAW))
    del headers["Accept"]

    assert "accept" not in headers
    with pytest.raises(KeyError, match="Accept"):
        del headers["Accept"]


def test_headers_change_in_the_list_that_the_response_sends() -> None:
    raw = [(b"a", b"1")]
    headers = MutableHeaders(raw)
    headers["a"] = "2"
    headers.update({"b": "3"})
    del headers["a"]

    assert raw == [(b"b", b"3")]


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        ([], "Origin", ["Origin"]),
        (["Accept"], "Origin", ["Accept, Origin"]),
        (["Accept, ORIGIN"], "Origin", ["Accept, ORIGIN"]),
        (["Accept", "Cookie"], "Origin", ["Accept, Cookie, Origin"]),
        (["*"], "Origin", ["*"]),
        ([""], "Origin", ["Origin"]),
        (["Accept,"], "Origin", ["Accept, Origin"]),
    ],
)
def test_vary_names_each_field_once(before: list[str], added: str, after: list[str]) -> None:
    headers = MutableHeaders([(b"vary", value.encode()) for value in before])
    headers.add_vary(added)

    assert headers.getlist("vary") == after


def test_a_url_is_kept_in_parts() -> None:
    url = URL("https", "a.example:8443", path="/v1/a%2Fb", query="x=1")

    assert str(url) == "https://a.example:8443/v1/a%2Fb?x=1"
    assert url.origin == "https://a.example:8443"
    assert (url.scheme, url.host, url.path, url.query) == (
        "https",
        "a.example:8443",
        "/v1/a%2Fb",
        "x=1",
    )


def test_a_url_without_a_query_has_no_question_mark() -> None:
    assert str(URL("http", "a", path="/", query="")) == "http://a/"


def test_the_host_never_comes_from_the_path() -> None:
    assert URL("http", "a.example", path="@evil.example/v1", query="").host == "a.example"


def test_urls_compare_with_urls_and_text() -> None:
    url = URL("http", "a", path="/", query="q")

    assert url == URL("http", "a", path="/", query="q") == "http://a/?q"
    assert url != URL("http", "b", path="/", query="q")
    assert url != 5
    assert hash(url) == hash(URL("http", "a", path="/", query="q"))


def test_the_repr_of_a_url_leaves_the_query_out() -> None:
    assert repr(URL("http", "a", path="/", query="token=zz")) == "URL('http', 'a', path='/')"


def test_state_holds_attributes_of_ones_own() -> None:
    state = State({"a": 1})
    state.b = 2

    assert (state.a, state.b) == (1, 2)
    assert "b" in state
    del state.a
    assert "a" not in state
    assert vars(state) == {"b": 2}


def test_state_does_not_write_into_what_it_started_with() -> None:
    start: dict[str, Any] = {"a": 1}
    State(start).a = 2

    assert start == {"a": 1}


def test_a_missing_attribute_of_state_is_named() -> None:
    with pytest.raises(AttributeError, match=r"^State has no attribute 'user'; set it first$"):
        _ = State().user
    with pytest.raises(AttributeError, match=r"^State has no attribute 'user'$"):
        del State().user
