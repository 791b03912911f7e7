"""Conditional requests: evaluate the preconditions of a request (RFC 9110, 13).

Pure: header fields and two validators in, one outcome out. Nothing here reads a file or builds a
response, so that files, caches and tests call the same function.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from treefold_http._headers.dates import parse_http_date
from treefold_http._wire.datastructures import Headers

MAX_FIELD = 4096
"""Longer lists of entity tags match nothing: parsing one must stay cheap (S-22)."""


class Outcome(enum.Enum):
    """The kind of response."""

    WHOLE = 200
    """The whole content, as for a request without conditions and without `Range`."""
    PARTIAL = 206
    """As `WHOLE`, but with the `Range` field applied."""
    NOT_MODIFIED = 304
    FAILED = 412


class EntityTag(NamedTuple):
    """An entity tag (RFC 9110, 8.8.3)."""

    opaque: str
    weak: bool


def evaluate_preconditions(
    method: str, headers: Headers, *, etag: str | None, modified: int | None
) -> Outcome:
    """Evaluate the preconditions in the order of RFC 9110, 13.2.2.

    An invalid field counts as absent where the RFC requires it (dates), elsewhere as an empty list.
    Fields of `CONNECT`, `OPTIONS` and `TRACE` are ignored (13.2.1).

    Args:
        method: of the request.
        headers: of the request.
        etag: the current entity tag as in the `ETag` of the response; None without one.
        modified: the `Last-Modified` of the response, in seconds since the epoch; None without one.
    """
    if method in ("CONNECT", "OPTIONS", "TRACE"):
        return Outcome.WHOLE
    current = _parse_current_tag(etag)
    if _precondition_fails(headers, current, modified):
        return Outcome.FAILED
    reads = method in ("GET", "HEAD")
    if (sent := headers.getlist("if-none-match")) != []:
        if _has_current_tag(sent, current, strong=False):
            # RFC 9110, 13.1.2
            return Outcome.NOT_MODIFIED if reads else Outcome.FAILED
    # If-Modified-Since is ignored beside If-None-Match (RFC 9110, 13.1.3)
    elif reads and modified is not None:
        since = _parse_single_date(headers.getlist("if-modified-since"))
        if since is not None and modified <= since:
            return Outcome.NOT_MODIFIED
    if method == "GET" and len(headers.getlist("range")) == 1:
        return _evaluate_if_range(headers.getlist("if-range"), current, modified)
    return Outcome.WHOLE


def _precondition_fails(headers: Headers, current: EntityTag | None, modified: int | None) -> bool:
    """Return True if `If-Match`, or without it `If-Unmodified-Since`, fails (steps 1 and 2)."""
    if (sent := headers.getlist("if-match")) != []:
        return not _has_current_tag(sent, current, strong=True)
    since = _parse_single_date(headers.getlist("if-unmodified-since"))
    return since is not None and modified is not None and modified > since


def _evaluate_if_range(sent: list[str], current: EntityTag | None, modified: int | None) -> Outcome:
    """Evaluate `If-Range` (step 5): a range is sent only for the copy that the client has."""
    if not sent:
        return Outcome.PARTIAL
    if len(sent) > 1:
        return Outcome.WHOLE
    field = sent[0].strip(" \t")
    if field.startswith(('"', "W/")):
        # One strong tag: a weak tag allows other bytes, which cannot complete a part (13.1.5).
        same = current is not None and not current.weak and parse_entity_tags(field) == [current]
    else:
        # equal, not later: here the date names one copy (RFC 9110, 13.1.5)
        same = modified is not None and parse_http_date(field) == modified
    return Outcome.PARTIAL if same else Outcome.WHOLE


def _has_current_tag(fields: list[str], current: EntityTag | None, *, strong: bool) -> bool:
    """Return True if a list of tags has the current one; `*` matches any (RFC 9110, 8.8.3.2)."""
    field = ", ".join(fields)
    if field.strip(" \t") == "*":
        return True
    if current is None:
        return False
    tags = parse_entity_tags(field)
    if strong:
        return not current.weak and current in tags
    return any(tag.opaque == current.opaque for tag in tags)


def _parse_current_tag(etag: str | None) -> EntityTag | None:
    tags = parse_entity_tags(etag or "")
    return tags[0] if len(tags) == 1 else None


def _parse_single_date(fields: list[str]) -> int | None:
    """The date of a field that was sent once; None for repeated fields (RFC 9110, 13.1.3)."""
    return parse_http_date(fields[0].strip(" \t")) if len(fields) == 1 else None


def parse_entity_tags(field: str) -> list[EntityTag]:
    """Split a list of entity tags; return an empty list for an invalid one or one above 4 KiB."""
    tags: list[EntityTag] = []
    place, end = 0, len(field)
    if end > MAX_FIELD:
        return []
    while True:
        # by hand, as a tag may hold a comma: `"a,b"`
        place = _skip_characters(field, place, " \t,")
        if place == end:
            return tags
        weak = field.startswith("W/", place)
        start = place + 2 * weak
        stop = field.find('"', start + 1)
        if not field.startswith('"', start) or stop < 0:
            return []
        opaque = field[start + 1 : stop]
        if any(char <= " " or char == "\x7f" for char in opaque):
            return []
        tags.append(EntityTag(opaque, weak))
        place = _skip_characters(field, stop + 1, " \t")
        if place < end and field[place] != ",":
            return []


def _skip_characters(field: str, place: int, chars: str) -> int:
    while place < len(field) and field[place] in chars:
        place += 1
    return place
