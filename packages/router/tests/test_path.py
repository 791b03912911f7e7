"""Splitting and decoding of request paths (rule 8)."""

import pytest
from hypothesis import given, strategies as st

from treefold_router import MalformedPath
from treefold_router._path import (
    decode_and_compact_segments,
    encode_segment,
    find_defect,
    is_utf8_encodable,
)


@pytest.mark.parametrize(
    ("segment", "decoded"),
    [
        (b"a%20b", b"a b"),
        (b"x%2Fsecret", b"x/secret"),
        (b"x%2fsecret", b"x/secret"),
        (b"a%252Fb", b"a%2Fb"),
        (b"100%", b"100%"),
        (b"%zz%4", b"%zz%4"),
        (b"%%41", b"%A"),
        (b"%u0041", b"%u0041"),
        (b"a+b", b"a+b"),
    ],
)
def test_s02_escapes_are_decoded_exactly_once(segment: bytes, decoded: bytes) -> None:
    assert decode_and_compact_segments([b"", segment]) == [b"", decoded]


def test_s01_an_escaped_slash_stays_in_its_segment() -> None:
    assert decode_and_compact_segments([b"", b"a%2Fb", b"c"]) == [b"", b"a/b", b"c"]


def test_s18_only_the_segments_that_can_matter_are_decoded() -> None:
    assert decode_and_compact_segments([b"", *[b"%41"] * 10_000]) == [b"", *[b"A"] * 65]


@pytest.mark.parametrize(
    ("segments", "reason"),
    [
        ([b"v1", b"user"], "Path does not start with '/'"),
        ([b""], "Path does not start with '/'"),
        ([b"", b"\xff\xfe"], "Path is not valid UTF-8 once it is percent-decoded"),
        ([b"", b"a\x00b"], "Path holds a control character"),
    ],
)
def test_the_fault_of_a_path_is_named(segments: list[bytes], reason: str) -> None:
    assert find_defect(segments) == MalformedPath(reason)


@pytest.mark.parametrize("segments", [[b"", b""], [b"", b"a", b".."], [b"", b"\xc2\x85"]])
def test_a_sound_path_has_no_fault(segments: list[bytes]) -> None:
    assert find_defect(segments) is None


@pytest.mark.parametrize(
    ("segment", "spelled"),
    [
        ("user", b"user"),
        ("a b", b"a%20b"),
        ("\u00e9", b"%C3%A9"),
        ("a:b@c+d", b"a:b@c+d"),
        ("%", b"%25"),
    ],
)
def test_a_segment_is_spelled_as_clients_do(segment: str, spelled: bytes) -> None:
    assert encode_segment(segment) == spelled


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_segment_survives_the_round_trip(segment: str) -> None:
    assert decode_and_compact_segments([b"", encode_segment(segment)]) == [b"", segment.encode()]


@pytest.mark.parametrize(("text", "sound"), [("\u00e9", True), ("", True), ("a\udcff", False)])
def test_lone_surrogates_are_no_unicode(text: str, sound: bool) -> None:
    assert is_utf8_encodable(text) is sound
