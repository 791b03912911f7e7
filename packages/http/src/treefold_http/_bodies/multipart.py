"""From the bytes of a multipart body to heads and data, in order, as they arrive (RFC 7578).

`PartParser` takes chunks and returns events without any I/O; `parse_multipart_events` feeds it from
a stream.
python-multipart (extra `files`) finds the boundaries. This module adds every limit, the text before
and after the parts, a shortcut for blocks without a boundary, and protection from input that the
parser is slow on, such as megabytes of lines that only begin like a boundary (S-38).
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TypeAlias

from treefold_http._bodies.part_head import PartHead, parse_head
from treefold_http._headers.header_params import parse_header
from treefold_http._runtime.boot_report import TreefoldError
from treefold_http._wire.asgi import RawHeaders
from treefold_http._wire.errors import BadRequest, PayloadTooLarge, UnsupportedMediaType
from treefold_http._wire.limits import Limits

Event: TypeAlias = PartHead | bytes
"""A head begins a part; the bytes that follow are its data; the next head or the end ends it."""

MULTIPART = "multipart/form-data"
BLOCK = 16 * 1024
"""Smaller chunks are put together first: a parser call costs 2 us however little it gets (S-26)."""
STEP = 2 * 1024
"""Bytes per call of the parser, which gets little besides boundaries: input that it parses slowly
is noticed before it costs much."""
FEW = 16
"""Lines that only begin like a boundary cost the parser 1.5 us each, and no valid body has them:
if a step has room for more of them than this, they are counted like parts."""

_PADDING = 64  # blanks that may follow a boundary on its line

_boundary = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]+").fullmatch

# the library warns of each refused body: a request writes one line of the log, its own (S-38)
_silent = logging.Logger("treefold.multipart")
_silent.disabled = True


class MissingExtra(TreefoldError):
    """A feature needs an extra that is not installed."""


def parse_boundary(content_type: str, limits: Limits) -> bytes:
    """Return the boundary of a multipart Content-Type.

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
    # a space is allowed in a boundary, but not at its end (RFC 2046, 5.1.1)
    if len(boundary) > limits.boundary or not _boundary(boundary) or boundary.endswith(" "):
        raise BadRequest(
            f"Content-Type has no boundary of 1 to {limits.boundary} characters"
            " that RFC 2046 allows; send letters and digits"
        )
    return boundary.encode("ascii")


async def parse_multipart_events(
    boundary: bytes, chunks: AsyncIterable[bytes], *, limits: Limits
) -> AsyncGenerator[Event, None]:
    """Yield the heads and data of a multipart body while it arrives.

    Raises:
        BadRequest: for a malformed or truncated body, or too many parts, files or header fields.
        PayloadTooLarge: above the total.
        MissingExtra: when python-multipart is not installed.
    """
    parser = PartParser(boundary, limits=limits)
    async for chunk in chunks:
        for event in parser.feed_chunk(chunk):
            yield event
    for event in parser.parse_waiting_chunks():
        yield event
    parser.require_closing_boundary()


# state      holds                  what comes next
# preamble   `_preamble` is bytes   text before the first boundary, which is dropped
# header     no flag is set         the header fields of a part
# data       `_in_data`             the data of a part; also `_plain` where a block begins in the
#                                   middle of it, and is searched for a boundary before it is parsed
# epilogue   `_ended`               text behind the closing boundary, which is dropped
class PartParser:
    """Split a multipart body into heads and data, block by block.

    Args:
        boundary: the result of `parse_boundary`.

    Raises:
        MissingExtra: when python-multipart is not installed.
    """

    def __init__(self, boundary: bytes, *, limits: Limits) -> None:
        try:
            from python_multipart.exceptions import MultipartParseError
            from python_multipart.multipart import MultipartParser
        except ImportError:
            message = 'A multipart form needs python-multipart; run pip install "treefold[files]"'
            raise MissingExtra(message) from None
        self._limits = limits
        self._delimiter = b"\r\n--" + boundary
        self._refusal = MultipartParseError
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._reset_part,
                "on_header_field": self._append_header_name,
                "on_header_value": self._append_header_value,
                "on_header_end": self._store_header_field,
                "on_headers_finished": self._emit_part_head,
                "on_part_data": self._emit_part_data,
                "on_part_end": self._reset_part,
                "on_end": self._mark_body_ended,
            },
            max_header_count=limits.headers,
            max_header_size=limits.header_size,
        )
        self._parser.logger = _silent
        self._events: list[Event] = []
        # bytes of the body so far, and of small chunks that wait to be parsed together
        self._total = self._waiting = 0
        self._small: list[bytes] = []
        self._preamble: bytes | None = b""
        self._block = b""  # given to the parser now
        self._before = 0  # bytes parsed before this block
        self._at = 0  # where the last name, value or data ended
        # what the limits count; `_epilogue` is bytes
        self._parts = self._files = self._delimiters = self._epilogue = 0
        self._in_data = self._plain = self._ended = False
        self._reset_part()

    def feed_chunk(self, chunk: bytes) -> list[Event]:
        """Take the next chunk of the body and return the completed events.

        Raises:
            BadRequest: as `parse_block`.
            PayloadTooLarge: above the total.
        """
        size = len(chunk)
        self._total += size
        if self._total > self._limits.total:
            raise PayloadTooLarge(f"The form must have at most {self._limits.total} bytes")
        if size >= BLOCK and not self._waiting:
            return self.parse_block(chunk)
        self._small.append(chunk)
        self._waiting += size
        return self.parse_waiting_chunks() if self._waiting >= BLOCK else []

    def parse_waiting_chunks(self) -> list[Event]:
        """Parse the small chunks that wait for more, and return the completed events.

        Raises:
            BadRequest: as `parse_block`.
        """
        block = b"".join(self._small)
        self._small.clear()
        self._waiting = 0
        return self.parse_block(block)

    def parse_block(self, block: bytes) -> list[Event]:
        """Parse the next bytes of the body and return the completed events.

        Raises:
            BadRequest: for a malformed part or one above a limit.
        """
        if self._preamble is not None:
            block = self._skip_preamble(self._preamble + block)
        at, size = 0, len(block)
        while at < size:
            if self._plain and (end := self._find_data_end(block, at)) > at:
                self._before = self._at = self._before + end - at
                if end - at == size:  # most blocks of a file hold nothing but its data
                    return [block]
                self._events.append(block[at:end])
                at = end
            else:
                self._feed_library_parser(block[at : at + STEP])
                at += STEP
        events, self._events = self._events, []
        return events

    def require_closing_boundary(self) -> None:
        """End the body.

        Raises:
            BadRequest: when the closing boundary is missing.
        """
        if not self._ended:
            raise BadRequest("The multipart body ends before its closing boundary")
        del self._parser  # it refers to this object: both are freed now, without the collector

    def _skip_preamble(self, seen: bytes) -> bytes:
        # RFC 2046, 5.1.1: text before the first boundary is ignored.
        start = 0 if seen.startswith(self._delimiter[2:]) else seen.find(self._delimiter) + 2
        # 1 is the -1 of `find` plus 2
        found = start != 1
        if (start if found else len(seen) - len(self._delimiter)) > self._limits.margin:
            raise BadRequest(f"No boundary within the first {self._limits.margin} bytes")
        # searched again with the next block, which is cheap below the margin
        self._preamble = None if found else seen
        return seen[start:] if found else b""

    def _find_data_end(self, block: bytes, start: int) -> int:
        # Data ends at a boundary, or at a prefix that the next block may complete to one. Searching
        # a single byte is ten times as fast, and every boundary contains it.
        first = block.find(b"\r", start)
        if first < 0:
            return len(block)
        found = block.find(self._delimiter, first)
        if found >= 0:
            return found
        last = block.rfind(b"\r", -len(self._delimiter))
        begun = last >= 0 and self._delimiter.startswith(block[last:])
        return last if begun else len(block)

    def _feed_library_parser(self, block: bytes) -> None:
        if self._ended:
            self._count_and_limit_epilogue(len(block))
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
            # Not found: the boundary began in an earlier block, so this one has at most its end.
            self._count_and_limit_epilogue(len(block) - max(closing, 0) - len(self._delimiter) - 2)
        else:
            self._check_padding_length(self._before, self._limits.header_size)
        # If the parser returned data up to the last byte, no partial boundary ends the block.
        self._plain = self._in_data and self._at == self._before

    def _check_padding_length(self, position: int, allowed: int) -> None:
        # The parser reads blanks byte by byte, 0.2 s for a megabyte.
        if position - self._at > len(self._delimiter) + 8 + allowed:
            raise BadRequest("The multipart body is malformed: whitespace after a boundary")

    def _count_and_limit_epilogue(self, size: int) -> None:
        self._epilogue += max(size, 0)
        if self._epilogue > self._limits.margin:
            raise BadRequest(f"More than {self._limits.margin} bytes after the closing boundary")

    def _reset_part(self) -> None:
        self._in_data = False
        self._raw: RawHeaders = []
        self._name = self._value = b""
        self._header_size = 0

    def _append_header_name(self, data: bytes, start: int, end: int) -> None:
        if not self._raw and not self._name:
            self._check_padding_length(self._before + start, _PADDING)
        self._name += data[start:end]
        self._count_and_limit_header(start, end)

    def _append_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._count_and_limit_header(start, end)

    def _count_and_limit_header(self, start: int, end: int) -> None:
        self._at = self._before + end
        self._header_size += end - start
        if self._header_size > self._limits.header_size:
            message = f"The header of a part is larger than {self._limits.header_size} bytes"
            raise BadRequest(message)

    def _store_header_field(self) -> None:
        self._raw.append((self._name.lower(), self._value.strip(b" \t")))
        self._name = self._value = b""

    def _emit_part_head(self) -> None:
        head = parse_head(self._raw)
        self._parts += 1
        self._files += head.filename is not None
        if self._parts > self._limits.parts:
            raise BadRequest(f"More than {self._limits.parts} parts")
        if self._files > self._limits.files:
            raise BadRequest(f"More than {self._limits.files} files")
        self._in_data = True
        self._events.append(head)

    def _emit_part_data(self, data: bytes, start: int, end: int) -> None:
        if data is self._block:  # otherwise the bytes only looked like the start of a boundary
            self._at = self._before + end
        self._events.append(data[start:end])

    def _mark_body_ended(self) -> None:
        self._ended = True
