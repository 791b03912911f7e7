"""Header fields are checked where they are set (RFC 9110, 5.1 and 5.5; S-43)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from http_ids import stable_repr
from hypothesis import example, given, strategies as st

from treefold_http._headers.header_fields import encode_header


@pytest.mark.parametrize(
    "name", ["", "a b", "a:", "a\r\n", "a\n", "a\x00", "ä", "a(b)", "\u212a", "a=", "X-A\n"]
)
def test_a_header_name_that_is_no_token_is_refused(name: str) -> None:
    expected = r"^A header name must consist of letters, digits and - \(RFC 9110\), got "
    expected += re.escape(repr(name)) + "$"
    with pytest.raises(ValueError, match=expected):
        encode_header(name, "1")


@pytest.mark.parametrize(
    "value",
    [
        "a\r\nSet-Cookie: e=1",
        "a\n",
        "\ra",
        "a\x00",
        "\x1b[2J",
        "\x7f",
        "\u010a",
        "\u20ac",
        "\ud800",
        "\x0b",
    ],
)
def test_a_header_value_that_would_split_the_answer_is_refused(value: str) -> None:
    with pytest.raises(
        ValueError, match=r"^The value of header 'x-a' must not contain a control .* encode it"
    ):
        encode_header("x-a", value)


@pytest.mark.parametrize("value", [" a", "a ", "\ta", "a\t"])
def test_blanks_around_a_header_value_never_reach_the_server(value: str) -> None:
    # RFC 9110, 5.5: no blank at either end; h11 drops the connection over one.
    try:
        sent = encode_header("x-a", value)[1]
    except ValueError:
        return
    assert sent == b"a"


@given(st.text(), st.text())
@example("X-Name", "caf\xe9\tx")
def test_what_is_encoded_reads_back_and_holds_no_control_character(name: str, value: str) -> None:
    try:
        key, sent = encode_header(name, value)
    except ValueError:
        return
    assert key.decode("ascii") == name.lower()
    assert sent.decode("latin-1") == value.strip(" \t")
    assert not any((byte < 0x20 and byte != 0x09) or byte == 0x7F for byte in sent)


@pytest.mark.parametrize("value", [5, None, b"x", ["x"]], ids=stable_repr)
def test_a_header_value_that_is_no_text_is_refused_by_name(value: Any) -> None:
    name = type(value).__qualname__
    with pytest.raises(TypeError, match=f"^The value of header 'x-a' must be str, got '{name}'$"):
        encode_header("x-a", value)
