"""File responses: validators, conditional requests, ranges, and a body read while it is sent.

`_wire.conditionals` and `_headers.ranges` evaluate the preconditions and the `Range` field; this
module turns the outcome into a status, header fields and pieces of the body. A body of at most one
chunk costs one call in a disk thread; a longer one is read chunk by chunk, each after the previous
one is sent (R-10).
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_http._headers.content_disposition import Disposition, format_content_disposition
from treefold_http._headers.dates import format_http_date, parse_http_date
from treefold_http._headers.media_types import OTHER, guess_media_type
from treefold_http._headers.ranges import Span, parse_range
from treefold_http._responses.regular_file import RegularFile
from treefold_http._responses.response import Background, Response, copy_sendable_fields
from treefold_http._responses.streams import send_chunks
from treefold_http._runtime.threads import run_in_disk_thread
from treefold_http._wire.asgi import RawHeaders, Send
from treefold_http._wire.conditionals import Outcome, evaluate_preconditions
from treefold_http._wire.datastructures import MutableHeaders
from treefold_http._wire.errors import HTTPError

if TYPE_CHECKING:
    from treefold_http._requests.request import Request

CHUNK = 64 * 1024
"""Bytes of one read, and the size up to which a file is sent in one message."""

_NO_WHOLE_FILE = frozenset({204, 205, 206, 304})

# Fields that describe the bytes of a 200 and are left out of a 304 (RFC 9110, 15.4.5) ...
_OF_THE_BYTES = frozenset(
    {
        b"accept-ranges",
        b"content-disposition",
        b"content-encoding",
        b"content-language",
        b"content-length",
        b"content-range",
        b"content-type",
        b"last-modified",
    }
)
# ... and those that would be wrong on an error response sent instead of the file.
_OF_THE_FILE = _OF_THE_BYTES | {b"cache-control", b"etag", b"expires"}


@dataclass(frozen=True, slots=True)
class _FileAnswer:
    """The response to send; its pieces are literal bytes or spans of the file."""

    status: int
    fields: RawHeaders
    pieces: Sequence[bytes | Span] = ()
    by_path: bool = False

    @property
    def body_length(self) -> int:
        return sum(_measure_piece(piece) for piece in self.pieces)


class FileResponse(Response):
    """A response that sends a file on disk.

    Sets `Content-Length`, `ETag`, `Last-Modified` and `Accept-Ranges`; answers conditional requests
    (RFC 9110, 13) and ranges (14) of GET, and conditions of HEAD. The answer to another method, or
    with a status other than 200, is sent whole: it is no copy that a client could have a part of.

    The entity tag consists of the size and the modification time in nanoseconds. It is strong: a
    weak one could not resume a download. It is correct as long as a change of the file changes one
    of the two; where a deployment sets the same time on all files, pass an `ETag` of your own in
    `headers`, which replaces it. `Last-Modified` likewise.

    A file that is missing when the answer is sent, or is no regular file, is an error of the
    program: 500 and a traceback in the log. Raise `NotFound` where a client names the file, or use
    `StaticFiles`, which does so. Never build the path of text that a client sent.

    Args:
        path: of the file; a relative one starts at the working directory.
        status, headers, background: as in `Response`.
        filename: the name to save the file under; it may hold any character.
        media_type: the `Content-Type`; by default by the suffix of `filename` or else of `path`.
        disposition: `attachment` to save the file, `inline` to show it; `attachment` when there is
            a `filename`, else no `Content-Disposition` is sent.

    Raises:
        ValueError: for a status that has no whole body, an unknown disposition, or a header that
            could split the answer.
    """

    __slots__ = ("path",)

    def __init__(
        self,
        path: str | os.PathLike[str],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        filename: str | None = None,
        media_type: str | None = None,
        disposition: Disposition | None = None,
        background: Background | None = None,
    ) -> None:
        if status in _NO_WHOLE_FILE:
            raise ValueError(
                f"FileResponse sends a whole file and cannot have the status {status!r}; leave"
                " the status out, ranges and conditions set it"
            )
        self.path = os.path.abspath(path)
        self.body = b""
        self._set_options(status, headers, background)
        if media_type is not None:
            self.headers["content-type"] = media_type
        elif "content-type" not in self.headers:
            self.headers["content-type"] = guess_media_type(filename or os.path.basename(self.path))
        if disposition or filename:
            field = format_content_disposition(disposition or "attachment", filename)
            self.headers["content-disposition"] = field

    async def send(self, request: Request, send: Send, common: RawHeaders) -> None:
        """Send the file, the requested ranges of it, or an error response.

        `request.sent_status` is the status that was sent: a module may keep this object, and send
        it for many requests at the same time.
        """
        file = self._build_file_reader()
        try:
            try:
                answer, body = await run_in_disk_thread(self._open_and_build_answer, file, request)
            except Exception as raised:
                # the name of an `except` is deleted at the end of its block
                error = raised
            else:
                request.sent_status = answer.status
                fields = answer.fields + common
                status = answer.status
                await send({"type": "http.response.start", "status": status, "headers": fields})
                if answer.by_path:
                    await send({"type": "http.response.pathsend", "path": self.path})
                elif body is not None:
                    await send({"type": "http.response.body", "body": body})
                else:
                    last = await send_chunks(_read_chunks(file, answer.pieces), request, send)
                    if last is not None:
                        await send({"type": "http.response.body", "body": last})
                return
        finally:
            # such as a cancelled request, whose file a disk thread may still be opening
            if not file.closed:
                await run_in_disk_thread(file.close)
        await self._send_error(error, request, send, common=common)

    def _build_file_reader(self) -> RegularFile:
        return RegularFile(self.path)

    def _translate_error(self, error: Exception) -> Exception:
        """Return the exception to answer with after the file could not be opened."""
        return error

    def _open_and_build_answer(
        self, file: RegularFile, request: Request
    ) -> tuple[_FileAnswer, bytes | None]:
        """Open the file and read a short body, in a disk thread; the body is None if it is long."""
        facts = file.open()
        answer = self._build_answer(facts, request)
        if answer.by_path or request.method == "HEAD":
            body = b""
        elif answer.body_length > CHUNK:
            return answer, None
        else:
            body = b"".join(_read(file, piece) for piece in answer.pieces)
        file.close()
        return answer, body

    def _build_answer(self, facts: os.stat_result, request: Request) -> _FileAnswer:
        size = facts.st_size
        headers = MutableHeaders(copy_sendable_fields(self.raw_headers))
        # Never later than now (RFC 9110, 8.8.2.1): the clock of the disk may be ahead.
        modified = min(facts.st_mtime_ns // 1_000_000_000, int(time.time()))
        headers.setdefault("etag", f'"{facts.st_mtime_ns:x}-{size:x}"')
        headers.setdefault("last-modified", format_http_date(modified))
        headers["accept-ranges"] = "bytes"
        headers.pop("content-range", None)
        outcome = Outcome.WHOLE
        if self.status == 200 and request.method in ("GET", "HEAD"):
            # the author may have set the field
            modified = parse_http_date(headers["last-modified"])
            outcome = evaluate_preconditions(
                request.method, request.headers, etag=headers["etag"], modified=modified
            )
        if outcome is Outcome.FAILED:
            raise HTTPError(412, "The file is not the one that the request is meant for")
        if outcome is Outcome.NOT_MODIFIED:
            return _FileAnswer(304, [pair for pair in headers.raw if pair[0] not in _OF_THE_BYTES])
        spans = parse_range(request.headers["range"], size) if outcome is Outcome.PARTIAL else None
        if spans is not None:
            return _build_partial_answer(headers, spans, size)
        headers["content-length"] = str(size)
        extensions: Any = request.scope.get("extensions") or ()
        # an extension of ASGI: the server sends the file itself
        by_path = "http.response.pathsend" in extensions and request.method != "HEAD"
        return _FileAnswer(self.status, headers.raw, (Span(0, size),), by_path)

    async def _send_error(
        self, error: Exception, request: Request, send: Send, *, common: RawHeaders
    ) -> None:
        """Send the response of an error, with the fields that middleware set on this response."""
        if not isinstance(error, HTTPError):
            error = self._translate_error(error)
        response = await request.app.render(error, request)
        own = copy_sendable_fields(self.raw_headers)
        response.raw_headers += [pair for pair in own if pair[0] not in _OF_THE_FILE]
        request.sent_status = response.status
        await response.send(request, send, common)


def _build_partial_answer(headers: MutableHeaders, spans: Sequence[Span], size: int) -> _FileAnswer:
    """Return the 206 for the spans; raise the 416 without any (RFC 9110, 15.3.7 and 15.5.17)."""
    if not spans:
        text = f"The file has {size} bytes, and none of those asked for"
        raise HTTPError(416, text, headers={"Content-Range": f"bytes */{size}"})
    pieces: Sequence[bytes | Span] = spans
    if len(spans) == 1:
        headers["content-range"] = _format_content_range(spans[0], size)
    else:
        # random, as a file could contain a boundary that is known beforehand
        boundary = os.urandom(16).hex()
        kind = headers.get("content-type", OTHER)
        pieces = _build_byteranges(spans, size, boundary=boundary, kind=kind)
        headers["content-type"] = f"multipart/byteranges; boundary={boundary}"
    headers["content-length"] = str(sum(_measure_piece(piece) for piece in pieces))
    return _FileAnswer(206, headers.raw, pieces)


def _build_byteranges(
    spans: Sequence[Span], size: int, *, boundary: str, kind: str
) -> list[bytes | Span]:
    pieces: list[bytes | Span] = []
    for span in spans:
        head = f"--{boundary}\r\nContent-Type: {kind}\r\n"
        head += f"Content-Range: {_format_content_range(span, size)}\r\n\r\n"
        pieces += [(f"\r\n{head}" if pieces else head).encode("latin-1"), span]
    pieces.append(f"\r\n--{boundary}--\r\n".encode())
    return pieces


def _format_content_range(span: Span, size: int) -> str:
    return f"bytes {span.start}-{span.stop - 1}/{size}"


def _measure_piece(piece: bytes | Span) -> int:
    return piece.stop - piece.start if isinstance(piece, Span) else len(piece)


def _read(file: RegularFile, piece: bytes | Span) -> bytes:
    if not isinstance(piece, Span):
        return piece
    found = bytearray()
    while (start := piece.start + len(found)) < piece.stop:
        found += file.read(start, piece.stop - start)
    return bytes(found)


async def _read_chunks(file: RegularFile, pieces: Sequence[bytes | Span]) -> AsyncIterator[bytes]:
    for piece in pieces:
        if not isinstance(piece, Span):
            yield piece
            continue
        start = piece.start
        while start < piece.stop:
            chunk = await run_in_disk_thread(file.read, start, min(CHUNK, piece.stop - start))
            # a read may return fewer bytes, and the body must have its declared length
            start += len(chunk)
            yield chunk
