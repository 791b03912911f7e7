"""`Content-Disposition`: one safe value for any name (S-46)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, strategies as st

from treefold_http import Response
from treefold_http._headers.content_disposition import format_content_disposition

GRAMMAR = re.compile(
    r"""(attachment|inline); filename="([A-Za-z0-9 ._()-]+)"(?:; filename\*=UTF-8''([^ ;"]+))?"""
).fullmatch


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("report.pdf", 'attachment; filename="report.pdf"'),
        ("my report (1).pdf", 'attachment; filename="my report (1).pdf"'),
        ("é.pdf", "attachment; filename=\"_.pdf\"; filename*=UTF-8''%C3%A9.pdf"),
        (
            "€ rates.txt",
            "attachment; filename=\"_ rates.txt\"; filename*=UTF-8''%E2%82%AC%20rates.txt",
        ),
        ("100%.txt", "attachment; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt"),
        ("%41.txt", "attachment; filename=\"_41.txt\"; filename*=UTF-8''%2541.txt"),
        (
            'a".bat;x="\r\n',
            "attachment; filename=\"a_.bat_x____\"; filename*=UTF-8''a%22.bat%3Bx%3D%22__",
        ),
        ("../../etc/passwd", 'attachment; filename=".._.._etc_passwd"'),
        ("..\\x", 'attachment; filename=".._x"'),
        ("a\x00b", 'attachment; filename="a_b"'),
        ("exe.\u202egpj", 'attachment; filename="exe._gpj"'),
        ("a\udcffb", "attachment; filename=\"a_b\"; filename*=UTF-8''a%3Fb"),
        ("a'b*c", "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%27b%2Ac"),
    ],
)
def test_a_name_becomes_one_quoted_value(name: str, value: str) -> None:
    assert format_content_disposition("attachment", name) == value


@pytest.mark.parametrize("name", [None, ""])
def test_without_a_name_the_kind_stands_alone(name: str | None) -> None:
    assert format_content_disposition("inline", name) == "inline"


def test_an_unknown_kind_is_refused() -> None:
    kind: Any = "form-data; x"
    expected = r"^A disposition must be 'attachment' or 'inline', got 'form-data; x'$"
    with pytest.raises(ValueError, match=expected):
        format_content_disposition(kind, "x")


@pytest.mark.parametrize(
    ("name", "end"),
    [("x" * 5000 + ".tar.gz", "xx.gz"), ("x" * 5000, "xx"), ("é" * 5000 + ".pdf", "__.pdf")],
)
def test_a_long_name_is_cut_and_keeps_its_suffix(name: str, end: str) -> None:
    value = format_content_disposition("attachment", name)
    match = GRAMMAR(value)
    assert match
    assert len(match[2]) == 255
    assert match[2].endswith(end)
    assert len(value) < 3000


@given(st.text(min_size=1, max_size=300))
def test_any_name_is_safe_and_comes_back_cleaned(name: str) -> None:
    value = format_content_disposition("attachment", name)
    match = GRAMMAR(value)
    assert match
    Response(headers={"Content-Disposition": value})  # stands in a header
    saved = unquote(match[3], errors="strict") if match[3] else match[2]
    assert not set(saved) & set("/\\\r\n\0\u202e")
    assert len(saved) == min(len(name), 255)
