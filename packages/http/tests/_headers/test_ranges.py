"""The `Range` field: what it asks for, what is ignored, and that it never multiplies a body."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, strategies as st

from treefold_http._headers.ranges import MAX_RANGES, Span, parse_range

SIZE = 1000


@pytest.mark.parametrize(
    ("field", "spans"),
    [
        ("bytes=0-499", [(0, 500)]),
        ("bytes=500-999", [(500, 1000)]),
        ("bytes=-500", [(500, 1000)]),
        ("bytes=950-", [(950, 1000)]),
        ("bytes=0-0,-1", [(0, 1), (999, 1000)]),
        ("bytes=0-", [(0, 1000)]),
        ("bytes=0-5000", [(0, 1000)]),
        ("bytes=-5000", [(0, 1000)]),
        ("BYTES=0-1", [(0, 2)]),
        ("bytes= 0-1 , 5-6\t", [(0, 2), (5, 7)]),
        ("bytes=00-01", [(0, 2)]),
        ("bytes=0-" + "9" * 4000, [(0, 1000)]),
    ],
)
def test_ranges_are_cut_to_the_file(field: str, spans: list[tuple[int, int]]) -> None:
    assert parse_range(field, SIZE) == spans


@pytest.mark.parametrize(
    ("field", "spans"),
    [
        ("bytes=0-99,50-149", [(0, 150)]),
        ("bytes=0-99,100-149", [(0, 150)]),
        ("bytes=100-149,0-99", [(0, 150)]),
        ("bytes=0-,0-,0-,0-,0-,0-,0-,0-", [(0, 1000)]),
        ("bytes=0-999,5-6", [(0, 1000)]),
        ("bytes=0-1,3-4", [(0, 2), (3, 5)]),
    ],
)
def test_ranges_that_overlap_or_touch_become_one(field: str, spans: list[tuple[int, int]]) -> None:
    assert parse_range(field, SIZE) == spans


def test_parts_stand_in_the_order_they_were_asked_for() -> None:
    assert parse_range("bytes=900-909,0-9,500-509,5-14", SIZE) == [
        (900, 910),
        (0, 15),
        (500, 510),
    ]


@pytest.mark.parametrize(
    "field", ["bytes=1000-", "bytes=1000-2000,5000-", "bytes=-0", "bytes=-0,1000-"]
)
def test_ranges_that_the_file_does_not_have_are_none(field: str) -> None:
    assert parse_range(field, SIZE) == []


def test_one_range_that_the_file_has_is_enough() -> None:
    assert parse_range("bytes=1000-,5-6,-0", SIZE) == [(5, 7)]


@pytest.mark.parametrize(
    "field",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=5",
        "bytes=5-4",
        "bytes=0-1,5-4",
        "bytes=0-1,x",
        "bytes=--5",
        "bytes=-5-",
        "bytes=0-1-2",
        "bytes=+0-1",
        "bytes=0x0-1",
        "bytes=0 - 1",
        "bytes=0_0-1",
        "bytes=²-5",
        "bytes=\u0661-\u0662",
        "bytes:0-1",
        "bytes 0-1",
        "items=0-1",
        "bytesx=0-1",
        "bytes=0-1;5-6",
        "bytes=0-1\x00",
        "0-1",
        "bytes=0-1,,5-6",
    ],
)
def test_what_is_not_valid_is_ignored(field: str) -> None:
    assert parse_range(field, SIZE) is None


@pytest.mark.parametrize("field", ["bytes=0-", "bytes=0-0", "bytes=-5", "bytes=10-"])
def test_an_empty_file_has_no_range_to_give(field: str) -> None:
    assert parse_range(field, 0) is None


def test_more_ranges_than_eight_are_ignored() -> None:
    assert parse_range("bytes=" + ",".join(f"{n}-{n}" for n in range(0, 16, 2)), SIZE) is not None
    assert parse_range("bytes=" + ",".join(f"{n}-{n}" for n in range(0, 18, 2)), SIZE) is None


@pytest.mark.parametrize(
    "field",
    [
        "bytes=" + "0-," * 5000,
        "bytes=" + "0-1," * 5000,
        "bytes=" + "," * 30_000,
        "bytes=" + "-" * 30_000,
        "bytes=" + '\\";,' * 7500,
        "bytes=" + "9" * 30_000 + "-",
        "=" * 30_000,
    ],
)
def test_a_hostile_field_is_ignored_at_once(field: str) -> None:
    started = time.thread_time()
    assert parse_range(field, SIZE) is None
    assert time.thread_time() - started < 0.02


# The oracle: sets of positions, one range after the other, straight from RFC 9110, 14.1.2.


def asked_for(field: str, size: int) -> list[set[int]] | None:
    found = re.fullmatch(r"bytes=(.*)", field)
    if not found or not size:
        return None
    wanted: list[set[int]] = []
    for spec in found[1].split(","):
        spec = spec.strip()
        if one := re.fullmatch(r"([0-9]+)-([0-9]*)", spec):
            last = int(one[2]) if one[2] else size
            if last < int(one[1]) and one[2]:
                return None
            wanted.append({n for n in range(size) if int(one[1]) <= n <= last})
        elif one := re.fullmatch(r"-([0-9]+)", spec):
            wanted.append({n for n in range(size) if n >= size - int(one[1])})
        else:
            return None
    return wanted if len(wanted) <= MAX_RANGES else None


number = st.integers(0, 40).map(str)
good = st.one_of(
    st.tuples(number, number).map("-".join), number.map("{}-".format), number.map("-{}".format)
)
spec = st.one_of(good, good, good, st.sampled_from(["", "-", "x", "1-2-3", " 3-5\t"]))
fields = st.lists(spec, min_size=1, max_size=10).map(lambda specs: "bytes=" + ",".join(specs))


@given(fields, st.integers(0, 30))
def test_a_slow_reading_of_the_rfc_agrees(field: str, size: int) -> None:
    spans, wanted = parse_range(field, size), asked_for(field, size)
    if wanted is None:
        assert spans is None
        return
    assert spans is not None
    parts = [set(range(span.start, span.stop)) for span in spans]
    assert all(parts)
    assert set[int]().union(*parts) == set[int]().union(*wanted)
    assert sum(len(part) for part in parts) <= size
    first_asked = [next(n for n, want in enumerate(wanted) if want & part) for part in parts]
    assert first_asked == sorted(first_asked)


@given(st.text(max_size=50), st.integers(0, 10**12))
def test_no_text_makes_it_fail(text: str, size: int) -> None:
    for field in (text, f"bytes={text}"):
        spans = parse_range(field, size)
        assert spans is None or all(0 <= s.start < s.stop <= size for s in spans)


def test_a_span_is_a_pair() -> None:
    assert Span(1, 2) == (1, 2)
