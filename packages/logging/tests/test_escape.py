"""Text that cannot break a line (S-77, S-78)."""

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, strategies as st

from treefold_logging._escape import (
    CUT,
    escape_log_field,
    escape_unprintable,
    percent_encode_unprintable,
    shorten_text,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET", "GET"),
        ("", "-"),
        ("a b", "a%20b"),
        ("a\r\nb\x7f", "a%0D%0Ab%7F"),
        ("é\u202e", "%C3%A9%E2%80%AE"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_a_field_is_one_word(text: str, shown: str) -> None:
    assert escape_log_field(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 text", "plain é 日本 text"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31m\x00\x7f\x85", "\\x1b[31m\\x00\\x7f\\x85"),
        ("\u2028\u2029\u202e\u200b\ufeff", "\\u2028\\u2029\\u202e\\u200b\\ufeff"),
        ("\ud800\U000e0001", "\\ud800\\U000e0001"),
    ],
)
def test_s77_controls_and_marks_are_escaped(text: str, shown: str) -> None:
    assert escape_unprintable(text) == shown


def test_a_long_text_is_cut_visibly() -> None:
    assert shorten_text("abc", 3) == "abc"
    assert shorten_text("a" * 99, 20) == "a" * (20 - len(CUT)) + CUT


@given(st.text(), st.integers(20, 60))
def test_a_field_is_printable_ascii_within_its_limit(text: str, limit: int) -> None:
    shown = escape_log_field(text, limit)
    assert 0 < len(shown) <= limit
    assert all("!" <= char <= "~" for char in shown)


@given(st.binary())
def test_bytes_can_be_read_back_from_a_field(data: bytes) -> None:
    assert unquote_to_bytes(percent_encode_unprintable(data)) == unquote_to_bytes(data)


@given(st.text())
def test_one_line_is_printable(text: str) -> None:
    assert escape_unprintable(text).isprintable()
