"""The one reader of a request body: counted while it arrives, exact about how it ended.

`body`, `json`, `form`, `files`, `stream` and the request log all read through `BodyReader`, so that
one limit holds for all of them, by the length that the client announces (S-24) and by the bytes
that arrive (S-25), and an early disconnect is never mistaken for a short body. It handles bytes and
ASGI messages and does not interpret the content.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from treefold_http._bodies.disconnect_probe import DisconnectProbe
from treefold_http._wire.asgi import Message, Receive
from treefold_http._wire.errors import ClientDisconnect, PayloadTooLarge

UNREAD: Any = object()
"""The value of `BodyReader.json` before the first read: None is the value of the body `null`."""


# _reading  _kept  has_started  state
# False     None   False        unread
# True      None   either       `read` receives it; a second reader is refused
# False     bytes  True         read: each reader gets the same bytes
# False     None   True         streamed, or a `read` broke off: the bytes are gone
@dataclass(slots=True, eq=False, repr=False)
class BodyReader:
    """Read a request body once, from the connection or from the kept bytes.

    Args:
        receive: the ASGI callable of the request.
        declared: the announced size; None if it is not known beforehand.
        limit: the most bytes to take.

    Attributes:
        size: the bytes received so far.
        asked: True once a read of the body has begun.
        was_awaited: True if a reader was cancelled while it waited for the client.
        complete: True once the last byte has come.
        disconnected: True once the client has left before that.
        json: the value that `Request.json` returned; the handler may have mutated it.
        names: every member name of the body, if a decoder has seen them all.
        document: the parsed JSON body, if no handler holds it and could mutate it.
    """

    receive: Receive
    declared: int | None
    _: KW_ONLY
    limit: int
    size: int = field(init=False, default=0)
    asked: bool = field(init=False, default=False)
    was_awaited: bool = field(init=False, default=False)
    complete: bool = field(init=False, default=False)
    disconnected: bool = field(init=False, default=False)
    json: Any = field(init=False, default=UNREAD)
    names: frozenset[str] | None = field(init=False, default=None)
    document: Any = field(init=False, default=None)
    _kept: bytes | None = field(init=False, default=None)
    _reading: bool = field(init=False, default=False)
    _look: DisconnectProbe | None = field(init=False, default=None)

    @property
    def buffered_body(self) -> bytes | None:
        """The whole body after `read`; None before."""
        return self._kept

    @property
    def has_started(self) -> bool:
        """True if a part of the body has been received from the connection."""
        return self.size > 0 or self.complete

    async def read(self, reserve: Callable[[int], Awaitable[None]] | None = None) -> bytes:
        """Return the whole body; a second call returns the same bytes.

        Args:
            reserve: reserves the room of the bytes as they arrive; it raises without any.

        Raises:
            PayloadTooLarge: above the limit, as soon as that is known.
            ClientDisconnect: when the client left before the end.
            RuntimeError: when `stream_chunks` has consumed it already.
        """
        if self._kept is None:
            if self._reading:
                raise RuntimeError("The body is being read by another task; await that one first")
            if self.has_started:
                raise RuntimeError(
                    "stream() already consumed the body; keep its chunks, or call body() first"
                )
            # before a byte is asked for: with `Expect: 100-continue` the client then sends no body
            self._check_declared_size()
            self._reading = self.asked = True
            try:
                body = self._extract_and_count_chunk(await self._receive_message())
                if reserve is not None:
                    await reserve(len(body))
                if not self.complete:  # most bodies come in one message
                    parts = [body]
                    while not self.complete:
                        parts.append(await self.read_next_chunk())
                        if reserve is not None:
                            await reserve(len(parts[-1]))
                    body = b"".join(parts)
            except asyncio.CancelledError:
                self.was_awaited = True
                raise
            finally:
                self._reading = False
            self._kept = body
        return self._kept

    async def stream_chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body in chunks as they arrive; none is kept.

        Raises:
            PayloadTooLarge, ClientDisconnect: as `read`.
            RuntimeError: when it was streamed before.
        """
        if self._kept is not None:
            if self._kept:
                yield self._kept
            return
        if self.has_started:
            raise RuntimeError("The body was already streamed and is not kept; read it once")
        self._check_declared_size()
        self.asked = True
        while not self.complete:
            if chunk := await self.read_next_chunk():
                yield chunk

    async def wait_for_disconnect(self) -> None:
        """Return when the client has disconnected; a large unread body delays the detection."""
        # no bytes are left, so that the next message can only be the disconnect
        if self._look is None and (self.complete or self.declared == 0):
            while not self.disconnected:
                self.disconnected = (await self.receive())["type"] == "http.disconnect"
            return
        look = self._get_or_create_probe()
        try:
            await look.wait_for_disconnect()
        finally:
            look.cancel_receive()
        self.disconnected = True

    @property
    def is_reading_ahead(self) -> bool:
        """True once `is_disconnected` or `wait_for_disconnect` reads ahead of the body."""
        return self._look is not None

    async def is_disconnected(self) -> bool:
        """Return True if the client has disconnected; received messages are kept for the reader.

        Does not wait for the client.
        """
        if not self.disconnected:
            self.disconnected = await self._get_or_create_probe().is_disconnected()
        return self.disconnected

    async def stop_disconnect_probe(self, error: BaseException | None = None) -> None:
        """Cancel the pending `receive` of `is_disconnected`.

        Args:
            error: the exception of the request; unused, every exit callback takes it.
        """
        if self._look is not None:
            self._look.cancel_receive()

    def _get_or_create_probe(self) -> DisconnectProbe:
        if self._look is None:
            self._look = DisconnectProbe(self.receive)
        return self._look

    async def read_next_chunk(self) -> bytes:
        """Return the next part of the body, which may be empty, while it is not `complete`.

        Raises:
            PayloadTooLarge, ClientDisconnect: as `read`.
        """
        try:
            return self._extract_and_count_chunk(await self._receive_message())
        except asyncio.CancelledError:
            self.was_awaited = True
            raise

    def _receive_message(self) -> Awaitable[Message]:
        if self._look is not None:
            return self._look.read_next_message()
        if self.disconnected:
            raise ClientDisconnect("The client disconnected before the end of the body")
        return self.receive()

    def _extract_and_count_chunk(self, message: Message) -> bytes:
        """The body bytes of a message, added to the size."""
        if message["type"] == "http.disconnect":
            self.disconnected = True
            raise ClientDisconnect("The client disconnected before the end of the body")
        chunk: bytes = message.get("body", b"")
        self.size += len(chunk)
        # counted while it arrives, as a chunked body declares no size
        if self.size > self.limit:
            raise self._make_size_error()
        if not message.get("more_body", False):
            self.complete = True
        return chunk

    def _check_declared_size(self) -> None:
        if self.declared is not None and self.declared > self.limit:
            raise self._make_size_error()

    def _make_size_error(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"The body must have at most {self.limit} bytes")
