"""The segments of a request path outside the route table, and how applications may read them.

Decoded exactly as the router decodes: split at `/`, each segment decoded once.
`list_possible_readings` is for comparisons only: no path is ever changed to one of its results.

`/legacy/Admin%2Fx;a=1` below the mount `/legacy` is read as sent, `("legacy", "admin/x;a=1")`, and
folded, `("legacy", "admin", "x")`: the application behind the mount may take it for either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import unquote

Segments: TypeAlias = tuple[str, ...]

_MAX_DECODINGS = 8
"""Percent-decodings that are followed: proxies and applications in a row do one each."""
_DOTS = (".", "..")
_is_plain = re.compile(r"[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*").fullmatch
_separators = re.compile(r"[/\\]")


def decode_segments(path: bytes | str) -> Segments:
    """Return the segments of a path, without empty ones, each decoded once.

    Args:
        path: as sent; text is taken as decoded already.
    """
    if isinstance(path, str):
        return tuple(part for part in path.split("/") if part)
    text = path.decode(errors="replace")
    return tuple(unquote(part) if "%" in part else part for part in text.split("/") if part)


def has_dot_segment(segments: Iterable[str]) -> bool:
    """Return True for a segment `.` or `..`, also one that an encoded separator hides."""
    return any("." in each and _splits_into_dot_segment(each) for each in segments)


def _splits_into_dot_segment(segment: str) -> bool:
    return any(part in _DOTS for part in _separators.split(segment))


def list_possible_readings(segments: Segments, mount_depth: int) -> Sequence[Segments]:
    """Return the lower-cased segments as sent, then folded if that may differ.

    Args:
        mount_depth: the number of segments that are those of a mount, which `..` cannot leave.
    """
    sent = tuple(segment.lower() for segment in segments)
    if all(map(_is_plain, segments[mount_depth:])):
        return (sent,)
    mount, folded = sent[:mount_depth], normalize_segments_leniently(segments[mount_depth:])
    unresolved = tuple(part for part in folded if part not in _DOTS)
    return sent, mount + unresolved, mount + _resolve_dots(folded)


@lru_cache(maxsize=256)
def normalize_segments_leniently(segments: Segments) -> Segments:
    """Return the segments that the most lenient reader sees; dot segments stay.

    Escapes are decoded until none is left, full-width characters become plain ones, `\\` separates,
    and parameters (`;a=1`), invisible characters and final dots and blanks are dropped.
    """
    text = unicodedata.normalize("NFKC", "/".join(segments))
    for _ in range(_MAX_DECODINGS):
        # one decoding is not enough: `%252e` becomes `%2e`, and then a dot
        if "%" not in text:
            break
        text = unicodedata.normalize("NFKC", unquote(text))
    parts = _separators.split(text.casefold())
    return tuple(filter(None, map(_normalize_segment_leniently, parts)))


def _normalize_segment_leniently(text: str) -> str:
    shown = "".join(filter(str.isprintable, text.partition(";")[0])).strip()
    # `_resolve_dots` needs `..` as it is; other final dots and blanks are dropped by Windows
    return shown if shown in _DOTS else shown.rstrip(". ")


def _resolve_dots(segments: Segments) -> Segments:
    kept: list[str] = []
    for part in segments:
        if part == "..":
            # a slice, as `..` at the top has nothing to remove
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    return tuple(kept)
