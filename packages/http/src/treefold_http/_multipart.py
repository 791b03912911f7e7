"""From the bytes of a multipart body to heads and data, in order, as they arrive (RFC 7578).

`PartParser` takes blocks and gives events without any I/O; `part_events` feeds it from a stream.
Boundaries are found by python-multipart (extra `files`). What is ours: every limit, the text before
and after the parts, blocks that hold no boundary, and the guarantee that no input is slow (S-38).
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TypeAlias

from treefold_http._errors import BadRequest, PayloadTooLarge, TreefoldError, UnsupportedMediaType
from treefold_http._header_params import parse_header
from treefold_http._limits import Limits
from treefold_http._part_head import PartHead, parse_head
from treefold_http._types import RawHeaders

Event: TypeAlias = PartHead | bytes
"""A head begins a part; the bytes that follow are its data; the next head or the end ends it."""

MULTIPART = "multipart/form-data"
BLOCK = 16 * 1024
"""Smaller chunks are put together first: a parser call costs 2 us however little it gets (S-26)."""
STEP = 2 * 1024
"""The parser gets no more at a time: it is called for little besides boundaries, and what it is
slow at is seen before it costs much."""
FEW = 16
"""Lines that begin like a boundary and are none cost the parser 1.5 us each, and no honest body has
them: where a step has room for more than these, they are counted as parts are."""

_PADDING = 64  # blanks that may follow a boundary on its line

_boundary = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]+").fullmatch

_silent = logging.Logger("treefold.multipart")  # the library warns of each refused body: S-38
_silent.disabled = True


class MissingExtra(TreefoldError):
    """A feature needs an extra that is not installed."""


def boundary_of(content_type: str, limits: Limits) -> bytes:
    """Give the boundary that a Content-Type announces.

    Raises:
        UnsupportedMediaType: when it is not `multipart/form-data`.
        BadRequest: when it cannot be read or has no valid boundary (RFC 2046, 5.1.1).
    """
    kind = content_type.partition(";")[0].strip(" \t").lower()
    if kind != MULTIPART:
        raise UnsupportedMediaType(f"Content-Type is {kind!r}; send {MULTIPART}")
    try:
        boundary = parse_header(content_type)[1].get("boundary", "")
    except ValueError as error:
        raise BadRequest(f"Content-Type {error}") from None
    if len(boundary) > limits.boundary or not _boundary(boundary) or boundary.endswith(" "):
        raise BadRequest(
            f"Content-Type has no boundary of 1 to {limits.boundary} characters"
            " that RFC 2046 allows; send letters and digits"
        )
    return boundary.encode("ascii")


async def part_events(
    boundary: bytes, chunks: AsyncIterable[bytes], *, limits: Limits
) -> AsyncGenerator[Event, None]:
    """Give the heads and data of a multipart body while it arrives.

    Raises:
        BadRequest: for a malformed or truncated body, or too many parts, files or header fields.
        PayloadTooLarge: above the total.
        MissingExtra: when python-multipart is not installed.
    """
    parser = PartParser(boundary, limits=limits)
    total = held = 0
    small: list[bytes] = []
    async for chunk in chunks:
        total += len(chunk)
        if total > limits.total:
            raise PayloadTooLarge(f"The form is larger than the {limits.total} bytes taken here")
        block = chunk
        if held or len(chunk) < BLOCK:
            small.append(chunk)
            held += len(chunk)
            if held < BLOCK:
                continue
            block = b"".join(small)
            small.clear()
            held = 0
        for event in parser.feed(block):
            yield event
    for event in parser.feed(b"".join(small)):
        yield event
    parser.finish()


class PartParser:
    """Split a multipart body into heads and data, block by block.

    Args:
        boundary: as `boundary_of` gives it.

    Raises:
        MissingExtra: when python-multipart is not installed.
    """

    def __init__(self, boundary: bytes, *, limits: Limits) -> None:
        try:
            from python_multipart.exceptions import MultipartParseError
            from python_multipart.multipart import MultipartParser
        except ImportError:
            raise MissingExtra(
                'A multipart form needs python-multipart; run pip install "treefold[files]"'
            ) from None
        self._limits = limits
        self._delimiter = b"\r\n--" + boundary
        self._refusal = MultipartParseError
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._take_name,
                "on_header_value": self._take_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_head,
                "on_part_data": self._take_data,
                "on_part_end": self._begin,
                "on_end": self._end,
            },
            max_header_count=limits.headers,
            max_header_size=limits.header_size,
        )
        self._parser.logger = _silent
        self._events: list[Event] = []
        self._preamble: bytes | None = b""
        self._block = b""
        self._before = 0  # bytes parsed before this block
        self._at = 0  # where the last name, value or data ended
        self._parts = self._files = self._delimiters = self._epilogue = 0
        self._in_data = self._plain = self._ended = False
        self._begin()

    def feed(self, block: bytes) -> list[Event]:
        """Take the next bytes of the body and give what they complete.

        Raises:
            BadRequest: for what is malformed or above a limit.
        """
        if self._preamble is not None:
            block = self._skip_preamble(self._preamble + block)
        at = 0
        while at < len(block):
            if self._plain and (end := self._data_end(block, at)) > at:
                self._pass(block[at:end])
                at = end
            else:
                self._parse(block[at : at + STEP])
                at += STEP
        events, self._events = self._events, []
        return events

    def finish(self) -> None:
        """Say that the body is over.

        Raises:
            BadRequest: when its closing boundary has not come.
        """
        if not self._ended:
            raise BadRequest("The multipart body ends before its closing boundary")

    def _skip_preamble(self, seen: bytes) -> bytes:
        # RFC 2046, 5.1.1: text before the first boundary means nothing.
        start = 0 if seen.startswith(self._delimiter[2:]) else seen.find(self._delimiter) + 2
        found = start != 1
        if (start if found else len(seen) - len(self._delimiter)) > self._limits.margin:
            raise BadRequest(f"No boundary within the first {self._limits.margin} bytes")
        self._preamble = None if found else seen
        return seen[start:] if found else b""

    def _data_end(self, block: bytes, start: int) -> int:
        # Data goes up to a boundary, or to what the next block may make one. A single byte is found
        # ten times as fast, and no boundary is without it.
        first = block.find(b"\r", start)
        if first < 0:
            return len(block)
        found = block.find(self._delimiter, first)
        if found >= 0:
            return found
        last = block.rfind(b"\r", -len(self._delimiter))
        begun = last >= 0 and self._delimiter.startswith(block[last:])
        return last if begun else len(block)

    def _pass(self, data: bytes) -> None:
        self._before += len(data)
        self._at = self._before
        self._events.append(data)

    def _parse(self, block: bytes) -> None:
        if self._ended:
            self._count_epilogue(len(block))
            return
        if block.count(b"\r") > FEW:
            self._delimiters += block.count(self._delimiter)
            if self._delimiters > self._limits.parts:
                raise BadRequest(f"More than {self._limits.parts} boundaries")
        self._block = block
        try:
            self._parser.write(block)
        except self._refusal as error:
            raise BadRequest(f"The multipart body is malformed: {error}") from None
        self._before += len(block)
        self._block = b""
        if self._ended:
            closing = block.find(self._delimiter + b"--")
            # Not found: it began in an earlier block, so this one holds its end at most.
            self._count_epilogue(len(block) - max(closing, 0) - len(self._delimiter) - 2)
        else:
            self._check_gap(self._before, self._limits.header_size)
        # What the parser has given back to the last byte it cannot take for part of a boundary.
        self._plain = self._in_data and self._at == self._before

    def _check_gap(self, now: int, allowed: int) -> None:
        # The parser walks over blanks byte by byte, 0.2 s for a megabyte.
        if now - self._at > len(self._delimiter) + 8 + allowed:
            raise BadRequest("The multipart body is malformed: blanks after a boundary")

    def _count_epilogue(self, size: int) -> None:
        self._epilogue += max(size, 0)
        if self._epilogue > self._limits.margin:
            raise BadRequest(f"More than {self._limits.margin} bytes after the closing boundary")

    def _begin(self) -> None:
        self._in_data = False
        self._raw: RawHeaders = []
        self._name = self._value = b""
        self._header_size = 0

    def _take_name(self, data: bytes, start: int, end: int) -> None:
        if not self._raw and not self._name:
            self._check_gap(self._before + start, _PADDING)
        self._name += data[start:end]
        self._count_header(start, end)

    def _take_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._count_header(start, end)

    def _count_header(self, start: int, end: int) -> None:
        self._at = self._before + end
        self._header_size += end - start
        if self._header_size > self._limits.header_size:
            raise BadRequest(
                f"The header of a part is larger than {self._limits.header_size} bytes"
            )

    def _end_header(self) -> None:
        self._raw.append((self._name.lower(), self._value.strip(b" \t")))
        self._name = self._value = b""

    def _end_head(self) -> None:
        head = parse_head(self._raw)
        self._parts += 1
        self._files += head.filename is not None
        if self._parts > self._limits.parts:
            raise BadRequest(f"More than {self._limits.parts} parts")
        if self._files > self._limits.files:
            raise BadRequest(f"More than {self._limits.files} files")
        self._in_data = True
        self._events.append(head)

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if data is self._block:  # else the parser gives back what only looked like a boundary
            self._at = self._before + end
        self._events.append(data[start:end])

    def _end(self) -> None:
        self._ended = True
