"""Paths outside the route table: decoded once, and every way to read one for a comparison."""

from __future__ import annotations

import pytest

from treefold_http._wire.path_segments import (
    Segments,
    decode_segments,
    has_dot_segment,
    list_possible_readings,
)


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        (b"/a/b", ("a", "b")),
        (b"//a//b/", ("a", "b")),
        (b"/a%2Fb", ("a/b",)),
        (b"/%252e", ("%2e",)),
        (b"/a%20b/%C3%A4", ("a b", "ä")),
        ("/a%20b/ä", ("a%20b", "ä")),
        (b"/", ()),
    ],
)
def test_segments_are_decoded_once(path: bytes | str, segments: Segments) -> None:
    assert decode_segments(path) == segments


@pytest.mark.parametrize(
    ("segments", "found"),
    [
        (("a", "b.css"), False),
        (("a", "..b", "b..", "...", "a.b"), False),
        (("a", "."), True),
        (("..",), True),
        (("a/../b",), True),
        (("a\\..\\b",), True),
        (("%2e%2e",), False),
    ],
)
def test_dot_segments_are_found_behind_encoded_separators(segments: Segments, found: bool) -> None:
    assert has_dot_segment(segments) is found


PRIVATE = [
    "private",
    "PRIVATE",
    "private%2Fx",
    "private%5Cx",
    "private;a=1",
    "private%3Ba",
    "private.",
    "private%20",
    "%70rivate",
    "%2570rivate",
    "%252570rivate",
    "%EF%BD%90rivate",
    "%EF%BC%8570rivate",
    "priv%E2%80%8Bate",
    "private%2500",
    "a%252F..%252Fprivate",
    "%252e%252e/private",
    "%252e/private",
    "private/%252e%252e/open",
    "%2570rivate/%252e%252e/open",
]


@pytest.mark.parametrize("below", PRIVATE)
def test_every_spelling_of_a_segment_is_read(below: str) -> None:
    spellings = list_possible_readings(decode_segments(f"/legacy/{below}/y".encode()), 1)

    assert ("legacy", "private") in [spelling[:2] for spelling in spellings]


@pytest.mark.parametrize("below", ["privat", "private-x", "xprivate", "%2e%2eprivate", "open"])
def test_another_name_is_not_read_as_the_segment(below: str) -> None:
    spellings = list_possible_readings(decode_segments(f"/legacy/{below}".encode()), 1)

    assert ("legacy", "private") not in [spelling[:2] for spelling in spellings]


def test_a_plain_path_is_read_in_one_way() -> None:
    assert list_possible_readings(("Static", "a-b", "c.min.css"), 1) == (
        ("static", "a-b", "c.min.css"),
    )
