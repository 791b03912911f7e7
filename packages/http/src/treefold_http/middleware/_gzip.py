"""Compress answers on their way out (S-50, S-51, D-18).

Decisions are made on outgoing messages: the fields of every layer are known there,
so that a cookie set outside of this middleware counts too (BREACH: a secret beside reflected input
can be read off the size of a compressed answer).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from treefold_http._plans.private_answers import PRIVATE_OF_KEY
from treefold_http._responses.response import Response, copy_response
from treefold_http.middleware._codings import (
    NewCompressor,
    choose_content_coding,
    find_available_compressors,
)

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._wire.asgi import Message, RawHeaders, Send

MINIMUM = 1000
"""Bytes from which on a body is compressed; a smaller one fits into one packet as it is."""
IN_THREAD = 64 * 1024
"""Bytes from which a body is compressed beside the event loop."""

_TYPES = (
    *("text/", "application/json", "application/javascript", "application/xml"),
    *("application/wasm", "image/svg+xml"),
)
_SUFFIXES = ("+json", "+xml")
_EVENTS = b"text/event-stream"
_VARY = (b"vary", b"Accept-Encoding")
_WITHOUT_BODY = frozenset({204, 205, 304})
_PARTIAL = 206
"""Ranges count bytes of the file as it is, and would be wrong in a compressed one."""
_OF_PLAIN_BYTES = frozenset(
    {b"content-length", b"accept-ranges", b"content-md5", b"digest", b"content-digest"}
)


class GZip:
    """Compress text, JSON, JavaScript and SVG for clients that accept it.

    With the extra `compress` brotli and zstd are offered beside gzip; from Python 3.14 on zstd
    needs no extra. Streams are flushed with each piece. Left as they are: answers below the
    minimum, of other types, with a `Content-Encoding`, partial ones (206), event streams, and
    those that may hold a secret: with `Set-Cookie`, or `Cache-Control: private` or
    `no-transform`.

    Args:
        minimum: bytes; smaller bodies do not get smaller.
        level: of gzip, 1 (fast) to 9 (small).
        types: media types, or beginnings that end with `/`.
        codings: of `zstd`, `br` and `gzip` those to offer, the preferred one first; by default all
            that are installed.

    Raises:
        ValueError: for a level that gzip does not have, or a coding that is not installed.
    """

    sees_every_answer = True  # also those that a cache around it has kept

    def __init__(
        self,
        *,
        minimum: int = MINIMUM,
        level: int = 6,
        types: Sequence[str] = (*_TYPES,),
        codings: Sequence[str] | None = None,
    ) -> None:
        if not 1 <= level <= 9:
            raise ValueError(f"GZip level must be 1 to 9, got {level!r}")
        known = find_available_compressors(level)
        for name in codings or ():
            if name not in known:
                raise ValueError(
                    f"A coding of GZip must be one of {', '.join(known)}, got {name!r}; install"
                    ' more with pip install "treefold[compress]"'
                )
        self.codings = {name: known[name] for name in codings or known}
        self.offered = tuple(self.codings)
        self.minimum = minimum
        self._types = tuple(kind.lower() for kind in types)

    def after(self, request: Request, response: Response) -> Response | None:
        """Return the response in a form that is compressed when it is sent."""
        if type(response) is Response and len(response.body) < self.minimum:
            return None
        return _Encoded(response, self)

    def is_compressible(self, kind: bytes) -> bool:
        """Return True for a `Content-Type` whose answers get smaller."""
        name = kind.partition(b";")[0].strip().lower().decode("latin-1")
        return name.startswith(self._types) or name.endswith(_SUFFIXES)


class _Encoded(Response):
    """A response that is compressed when it is sent, if everything around it allows that."""

    __slots__ = ("_gzip", "_inner")

    def __init__(self, inner: Response, gzip: GZip) -> None:
        self._inner = inner
        self._gzip = gzip
        self.status = inner.status
        self.body = inner.body
        self.raw_headers = inner.raw_headers
        self.background = inner.background

    async def send(self, request: Request, send: Send, common: RawHeaders) -> None:
        inner = copy_response(self._inner)  # a module may keep it
        inner.status, inner.body = self.status, self.body
        inner.raw_headers = self.raw_headers
        await inner.send(request, _Encoder(request, send, self._gzip).compress_and_send, common)


class _Encoder:
    """Compresses a response between the application and the server."""

    def __init__(self, request: Request, send: Send, gzip: GZip) -> None:
        self._request = request
        self._send = send
        self._gzip = gzip
        self._start: Message | None = None
        self._coding: str | None = None
        self._new: NewCompressor | None = None
        self._add: Callable[..., bytes] | None = None

    async def compress_and_send(self, message: Message) -> None:
        """Take a message of the answer; the first body decides about the start before it."""
        kind = message["type"]
        if kind == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            start = self._set_coding_and_headers(start, message)
            if self._coding is not None and not message.get("more_body", False):
                await self._compress_and_send_whole(start, message)
                return
            await self._send(start)
        if self._add is not None:
            more = message.get("more_body", False)
            body = self._add(message.get("body", b""), last=not more)
            message = {"type": kind, "body": body, "more_body": more}
        await self._send(message)

    def _set_coding_and_headers(self, start: Message, first: Message) -> Message:
        """The start with the fields of its coding; `Vary` wherever the coding is a choice."""
        fields: RawHeaders = list(start["headers"])
        found = dict(fields)
        size = len(first.get("body", b""))
        is_whole = not first.get("more_body", False) and first["type"] == "http.response.body"
        if not self._can_compress(start, found):
            return start
        # the answer to a HEAD has no body to measure, and its `Vary` has to be that of the GET
        if is_whole and size < self._gzip.minimum and self._request.method != "HEAD":
            return start
        fields.append(_VARY)
        if start["status"] in _WITHOUT_BODY or self._request.method == "HEAD":
            return {**start, "headers": fields}
        # `http.response.pathsend`: the server sends the file, and its bytes do not come here
        if first["type"] != "http.response.body":
            return {**start, "headers": fields}
        self._coding = self._choose_coding()
        if self._coding is None:
            return {**start, "headers": fields}
        self._new = self._gzip.codings[self._coding]
        if not is_whole:
            self._add = self._new().compress_chunk
        # the length is not known before the body is compressed, and a range of the plain bytes is
        # not one of the compressed ones
        fields = [_weaken_etag(pair) for pair in fields if pair[0] not in _OF_PLAIN_BYTES]
        fields.append((b"content-encoding", self._coding.encode()))
        return {**start, "headers": fields}

    def _can_compress(self, start: Message, fields: dict[bytes, bytes]) -> bool:
        """Return True if an answer of this kind is compressed for clients that accept it."""
        status = start["status"]
        if status == _PARTIAL or b"content-encoding" in fields or b"set-cookie" in fields:
            return False
        if b"cache-control" in fields and _is_private_or_no_transform(start["headers"]):
            return False
        # a 304 has the `Vary` that the 200 would have (RFC 9110, 15.4.5)
        if status in _WITHOUT_BODY:
            return True
        kind = fields.get(b"content-type", b"")
        # event streams are of a type in `text/`, and are left out all the same
        return not kind.startswith(_EVENTS) and self._gzip.is_compressible(kind)

    def _choose_coding(self) -> str | None:
        request = self._request
        if (field := request.fields.get(b"accept-encoding")) is None:
            return None
        text = field.decode("latin-1")
        # `fields` has one value for each name; fewer of them than headers means that some name
        # repeats
        if len(request.fields) != len(request.scope["headers"]):
            text = ",".join(request.headers.getlist("accept-encoding"))
        return choose_content_coding(text, self._gzip.offered)

    async def _compress_and_send_whole(self, start: Message, message: Message) -> None:
        assert self._new is not None, "a coding was chosen"  # noqa: S101 - set beside it
        body = message["body"]
        if len(body) > IN_THREAD:
            body = await asyncio.to_thread(self._new().compress_chunk, body, last=True)
        else:
            body = self._new().compress_chunk(body, last=True)
        length = (b"content-length", b"%d" % len(body))
        await self._send({**start, "headers": [*start["headers"], length]})
        await self._send({**message, "body": body})


def _is_private_or_no_transform(fields: RawHeaders) -> bool:
    # No browser sends an API key by itself, so its answers can be compressed (BREACH).
    own = [pair for pair in fields if pair is not PRIVATE_OF_KEY]
    control = b",".join(value for name, value in own if name == b"cache-control").lower()
    tokens = {token.partition(b"=")[0].strip() for token in control.split(b",")}
    return bool(tokens & {b"private", b"no-transform"})


def _weaken_etag(pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A strong entity tag names the plain bytes; of compressed ones it is weak."""
    name, value = pair
    return (name, b"W/" + value) if name == b"etag" and not value.startswith(b"W/") else pair
