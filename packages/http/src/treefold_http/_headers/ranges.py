"""The `Range` field: text to spans of bytes (RFC 9110, 14.1 and 14.2), in a pure linear function.

A field of more than `MAX_RANGES` ranges is ignored, and overlapping ranges are merged, so that no
field makes a response longer than the file and a few part headers (S-22, S-48).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_RANGES = 8
"""Ranges of one field: each costs the part header of a multipart response."""
MAX_FIELD = 4096
"""Characters of the field."""


class Span(NamedTuple):
    """The bytes from `start` up to `stop`, exclusive."""

    start: int
    stop: int


def parse_range(field: str, size: int) -> list[Span] | None:
    """Return the spans of a `Range` field.

    Args:
        field: the value of the one `Range` field.
        size: the length of the file.

    Returns:
        Spans that neither overlap nor touch, in the order first requested; an empty list when the
        file has none of them (416); None when the field is ignored: another unit, not valid, more
        than 8 ranges, or an empty file, which has no ranges.
    """
    unit, equals, specs = field.partition("=")
    # a shorter field has no number of 4,301 digits, which `int` would refuse with ValueError
    if not size or not equals or len(field) > MAX_FIELD or unit.strip(" \t").lower() != "bytes":
        return None
    parts = specs.split(",", MAX_RANGES)
    if len(parts) > MAX_RANGES:
        return None
    spans: list[Span] = []
    for part in parts:
        if (span := _parse_span(part.strip(" \t"), size)) is None:
            return None
        if span.start < span.stop:
            spans.append(span)
    return _merge_spans(spans)


def _parse_span(spec: str, size: int) -> Span | None:
    """One range clipped to the file, empty if it lies outside; None if it is not valid."""
    first, dash, last = spec.partition("-")
    is_valid = all(not part or _is_ascii_digits(part) for part in (first, last))
    if not dash or not is_valid:
        return None
    if not first:
        return Span(max(size - int(last), 0), size) if last else None
    start = int(first)
    if last and int(last) < start:
        return None
    return Span(start, min(int(last) + 1, size) if last else size)


def _is_ascii_digits(text: str) -> bool:
    # `int` alone accepts `+1`, `1_0` and ` 1`, and `isdigit` alone `²`
    return text.isascii() and text.isdigit()


def _merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Join overlapping and adjacent spans; a joined span takes the place of its first part."""
    joined: list[tuple[int, Span]] = []
    for place, span in sorted(enumerate(spans), key=lambda item: item[1]):
        if joined and span.start <= joined[-1][1].stop:
            first, last = joined[-1]
            joined[-1] = (min(first, place), Span(last.start, max(last.stop, span.stop)))
        else:
            joined.append((place, span))
    return [span for _, span in sorted(joined)]
