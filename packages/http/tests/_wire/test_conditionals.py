"""Preconditions: the order of RFC 9110, 13.2.2, row by row, and against a slow reading of it."""

from __future__ import annotations

import re
import time
from email.utils import formatdate, parsedate_to_datetime

import pytest
from hypothesis import given, strategies as st

from treefold_http import Headers
from treefold_http._wire.conditionals import (
    EntityTag,
    Outcome,
    evaluate_preconditions,
    parse_entity_tags,
)

NOW = 1_700_000_000
ETAG = '"a"'
BEFORE, AT, AFTER = (formatdate(NOW + n, usegmt=True) for n in (-1, 0, 1))

WHOLE, PARTIAL, NOT_MODIFIED, FAILED = Outcome


def ask(
    *fields: tuple[str, str],
    method: str = "GET",
    etag: str | None = ETAG,
    modified: int | None = NOW,
) -> Outcome:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields]
    return evaluate_preconditions(method, Headers(raw), etag=etag, modified=modified)


RANGE = ("Range", "bytes=0-1")


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ([], WHOLE),
        # step 1: If-Match, by strong comparison
        ([("If-Match", '"a"')], WHOLE),
        ([("If-Match", '"b", "a"')], WHOLE),
        ([("If-Match", '"b"'), ("If-Match", '"a"')], WHOLE),
        ([("If-Match", "*")], WHOLE),
        ([("If-Match", '"b"')], FAILED),
        ([("If-Match", 'W/"a"')], FAILED),
        ([("If-Match", "a")], FAILED),
        ([("If-Match", "")], FAILED),
        ([("If-Match", '"b", *')], FAILED),
        # step 2: If-Unmodified-Since, only without If-Match
        ([("If-Unmodified-Since", AT)], WHOLE),
        ([("If-Unmodified-Since", AFTER)], WHOLE),
        ([("If-Unmodified-Since", BEFORE)], FAILED),
        ([("If-Unmodified-Since", "never")], WHOLE),
        ([("If-Unmodified-Since", BEFORE), ("If-Unmodified-Since", BEFORE)], WHOLE),
        ([("If-Match", '"a"'), ("If-Unmodified-Since", BEFORE)], WHOLE),
        ([("If-Match", '"b"'), ("If-Unmodified-Since", AFTER)], FAILED),
        # step 3: If-None-Match, by weak comparison
        ([("If-None-Match", '"a"')], NOT_MODIFIED),
        ([("If-None-Match", 'W/"a"')], NOT_MODIFIED),
        ([("If-None-Match", '"b" ,, W/"a"')], NOT_MODIFIED),
        ([("If-None-Match", "*")], NOT_MODIFIED),
        ([("If-None-Match", '"b"')], WHOLE),
        ([("If-None-Match", "a")], WHOLE),
        ([("If-None-Match", "")], WHOLE),
        # step 4: If-Modified-Since, only without If-None-Match
        ([("If-Modified-Since", AT)], NOT_MODIFIED),
        ([("If-Modified-Since", AFTER)], NOT_MODIFIED),
        ([("If-Modified-Since", BEFORE)], WHOLE),
        ([("If-Modified-Since", "never")], WHOLE),
        ([("If-Modified-Since", f"{AT}, {AT}")], WHOLE),
        ([("If-Modified-Since", AT), ("If-Modified-Since", AT)], WHOLE),
        ([("If-None-Match", '"b"'), ("If-Modified-Since", AFTER)], WHOLE),
        ([("If-None-Match", ""), ("If-Modified-Since", AFTER)], WHOLE),
        ([("If-None-Match", '"a"'), ("If-Modified-Since", BEFORE)], NOT_MODIFIED),
        # both questions
        ([("If-Match", '"b"'), ("If-None-Match", '"a"')], FAILED),
        ([("If-Match", '"a"'), ("If-None-Match", '"a"')], NOT_MODIFIED),
        ([("If-Unmodified-Since", BEFORE), ("If-None-Match", '"a"')], FAILED),
        # step 5: Range and If-Range
        ([RANGE], PARTIAL),
        ([RANGE, RANGE], WHOLE),
        ([RANGE, ("If-Range", '"a"')], PARTIAL),
        ([RANGE, ("If-Range", '"b"')], WHOLE),
        ([RANGE, ("If-Range", 'W/"a"')], WHOLE),
        ([RANGE, ("If-Range", '"b", "a"')], WHOLE),
        ([RANGE, ("If-Range", "*")], WHOLE),
        ([RANGE, ("If-Range", "a")], WHOLE),
        ([RANGE, ("If-Range", AT)], PARTIAL),
        ([RANGE, ("If-Range", BEFORE)], WHOLE),
        ([RANGE, ("If-Range", AFTER)], WHOLE),
        ([RANGE, ("If-Range", '"a"'), ("If-Range", '"a"')], WHOLE),
        ([("If-Range", '"a"')], WHOLE),
        ([RANGE, ("If-None-Match", '"a"')], NOT_MODIFIED),
        ([RANGE, ("If-None-Match", '"b"')], PARTIAL),
        ([RANGE, ("If-Match", '"b"'), ("If-Range", '"a"')], FAILED),
        ([RANGE, ("If-Modified-Since", AT), ("If-Range", '"a"')], NOT_MODIFIED),
    ],
)
def test_each_row_of_the_rfc(fields: list[tuple[str, str]], outcome: Outcome) -> None:
    assert ask(*fields) is outcome


@pytest.mark.parametrize(
    ("method", "fields", "outcome"),
    [
        ("HEAD", [("If-None-Match", '"a"')], NOT_MODIFIED),
        ("HEAD", [("If-Modified-Since", AT)], NOT_MODIFIED),
        ("HEAD", [RANGE], WHOLE),
        ("HEAD", [("If-Match", '"b"')], FAILED),
        ("PUT", [("If-None-Match", '"a"')], FAILED),
        ("PUT", [("If-None-Match", "*")], FAILED),
        ("PUT", [("If-Match", '"b"')], FAILED),
        ("PUT", [("If-Modified-Since", AT)], WHOLE),
        ("POST", [RANGE], WHOLE),
        ("DELETE", [("If-Unmodified-Since", BEFORE)], FAILED),
        ("OPTIONS", [("If-Match", '"b"')], WHOLE),
        ("TRACE", [("If-None-Match", "*")], WHOLE),
        ("CONNECT", [("If-Unmodified-Since", BEFORE)], WHOLE),
    ],
)
def test_each_method_has_its_own_conditions(
    method: str, fields: list[tuple[str, str]], outcome: Outcome
) -> None:
    assert ask(*fields, method=method) is outcome


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ([("If-Match", 'W/"a"')], FAILED),
        ([("If-Match", '"a"')], FAILED),
        ([("If-None-Match", '"a"')], NOT_MODIFIED),
        ([RANGE, ("If-Range", 'W/"a"')], WHOLE),
        ([RANGE, ("If-Range", '"a"')], WHOLE),
    ],
)
def test_a_weak_tag_of_the_answer_is_never_strongly_equal(
    fields: list[tuple[str, str]], outcome: Outcome
) -> None:
    assert ask(*fields, etag='W/"a"') is outcome


@pytest.mark.parametrize("etag", [None, "a", '"a', '"a", "b"'])
def test_without_a_valid_tag_only_the_star_matches(etag: str | None) -> None:
    assert ask(("If-Match", '"a"'), etag=etag) is FAILED
    assert ask(("If-Match", "*"), etag=etag) is WHOLE
    assert ask(("If-None-Match", '"a"'), etag=etag) is WHOLE


@pytest.mark.parametrize(
    "fields",
    [
        [("If-Modified-Since", AFTER)],
        [("If-Unmodified-Since", BEFORE)],
        [RANGE, ("If-Range", AT)],
    ],
)
def test_without_a_modification_time_dates_do_not_count(fields: list[tuple[str, str]]) -> None:
    assert ask(*fields, modified=None) is WHOLE


@pytest.mark.parametrize(
    ("field", "tags"),
    [
        ("", []),
        (" , ,", []),
        ('"a"', [("a", False)]),
        ('W/"a"', [("a", True)]),
        ('""', [("", False)]),
        ('"a","b"', [("a", False), ("b", False)]),
        (', "a" ,\t, W/"b" ,', [("a", False), ("b", True)]),
        ('"a,b"', [("a,b", False)]),
        (r'"a\"', [("a\\", False)]),
        ('"W/"', [("W/", False)]),
        ('"\xe9"', [("\xe9", False)]),
        ('"a" "b"', []),
        ('"a""b"', []),
        ('"a" x', []),
        ('"a', []),
        ("a", []),
        ("W/a", []),
        ("W/", []),
        ('w/"a"', []),
        ('W /"a"', []),
        ('"a b"', []),
        ('"a\x00"', []),
        ('"a\x7f"', []),
        ("'a'", []),
        ("*", []),
        ('"a", *', []),
    ],
)
def test_entity_tags_are_split(field: str, tags: list[tuple[str, bool]]) -> None:
    assert parse_entity_tags(field) == tags


@pytest.mark.parametrize(
    "field", ['"' * 30_000, '"a",' * 7_500, "," * 30_000, 'W/"' * 10_000, '\\";,' * 7_500]
)
def test_a_hostile_list_matches_nothing_and_costs_nothing(field: str) -> None:
    started = time.thread_time()
    assert parse_entity_tags(field) == []
    assert parse_entity_tags(field[:4096]) is not None
    assert time.thread_time() - started < 0.1


opaque = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF), max_size=5).filter(
    lambda text: '"' not in text and "\x7f" not in text
)


@given(st.lists(st.builds(EntityTag, opaque, st.booleans()), max_size=6))
def test_written_tags_are_read_back(tags: list[EntityTag]) -> None:
    field = " , ".join(f'{"W/" * tag.weak}"{tag.opaque}"' for tag in tags)
    assert parse_entity_tags(field) == tags


# The oracle: the five steps as the RFC writes them, with parsers that allow only well-formed text.


def slow(method: str, sent: dict[str, str], etag: str, modified: int) -> Outcome:
    def date(name: str) -> float | None:
        try:
            return parsedate_to_datetime(sent[name]).timestamp()
        except (KeyError, ValueError):
            return None

    def strong(name: str) -> bool:
        return any(
            tag == etag and tag[0] == '"' for tag in re.findall(r'(?:W/)?"[^"]*"', sent[name])
        )

    def weak(name: str) -> bool:
        return re.sub("^W/", "", etag) in re.findall(r'"[^"]*"', sent[name])

    if "if-match" in sent:
        if sent["if-match"] != "*" and not strong("if-match"):
            return FAILED
    else:
        limit = date("if-unmodified-since")
        if limit is not None and not modified <= limit:
            return FAILED
    if "if-none-match" in sent:
        if sent["if-none-match"] == "*" or weak("if-none-match"):
            return NOT_MODIFIED if method in ("GET", "HEAD") else FAILED
    elif method in ("GET", "HEAD"):
        limit = date("if-modified-since")
        if limit is not None and not modified > limit:
            return NOT_MODIFIED
    if method == "GET" and "range" in sent:
        if "if-range" not in sent:
            return PARTIAL
        same = strong("if-range") if '"' in sent["if-range"] else date("if-range") == modified
        return PARTIAL if same else WHOLE
    return WHOLE


tag = st.sampled_from(['"a"', '"b"', 'W/"a"', 'W/"b"'])
lists = st.one_of(st.just("*"), st.lists(tag, max_size=3).map(", ".join))
dates = st.one_of(
    st.integers(NOW - 2, NOW + 2).map(lambda n: formatdate(n, usegmt=True)), st.just("x")
)


@given(
    st.sampled_from(["GET", "HEAD", "PUT", "DELETE"]),
    st.fixed_dictionaries(
        {},
        optional={
            "if-match": lists,
            "if-none-match": lists,
            "if-unmodified-since": dates,
            "if-modified-since": dates,
            "range": st.just("bytes=0-1"),
            "if-range": st.one_of(tag, dates),
        },
    ),
    tag,
    st.integers(NOW - 1, NOW + 1),
)
def test_a_slow_reading_of_the_rfc_agrees(
    method: str, sent: dict[str, str], etag: str, modified: int
) -> None:
    fast = ask(*sent.items(), method=method, etag=etag, modified=modified)
    assert fast is slow(method, sent, etag, modified)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["if-match", "if-none-match", "if-range", "range", "if-modified-since"]
            ),
            st.text(st.characters(max_codepoint=255), max_size=20),
        ),
        max_size=6,
    )
)
def test_no_fields_make_it_fail(fields: list[tuple[str, str]]) -> None:
    assert isinstance(ask(*fields), Outcome)
