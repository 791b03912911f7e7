"""The one reader of a request body: counted while it arrives, exact about how it ended.

`body`, `json`, `form`, `files`, `stream` and the request log all read through `BodyReader`, so that
one limit holds for all of them (S-24, S-25) and a client that leaves early is never mistaken for a
short body. It knows bytes and messages, not what they mean.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from typing import Any

from treefold_http._errors import ClientDisconnect, PayloadTooLarge
from treefold_http._look_ahead import LookAhead
from treefold_http._types import Message, Receive

UNREAD: Any = object()
"""Stands for JSON that nobody has asked for; the body of a request may be `null`."""


class BodyReader:
    """Read a request body once, from the protocol or from what was kept of it.

    Args:
        receive: the ASGI callable of the request.
        declared: the size that was announced; None when it is not known beforehand.
        limit: the most bytes to take.

    Attributes:
        asked: True once something has begun to read the body.
        json: what `Request.json` gives, once it was asked for; its owner may change it.
        names: every member name of the body, where a decoder has seen them all.
        document: the parsed JSON body, where it was parsed for nobody who could change it.
    """

    __slots__ = (
        "_kept",
        "_look",
        "_reading",
        "asked",
        "complete",
        "declared",
        "disconnected",
        "document",
        "json",
        "limit",
        "names",
        "receive",
        "size",
    )

    def __init__(self, receive: Receive, declared: int | None, *, limit: int) -> None:
        self.receive = receive
        self.declared = declared
        self.limit = limit
        self.size = 0
        self.asked = False
        self.complete = False
        self.disconnected = False
        self.json = UNREAD
        self.names: frozenset[str] | None = None
        self.document: Any = None
        self._kept: bytes | None = None
        self._reading = False
        self._look: LookAhead | None = None

    @property
    def kept(self) -> bytes | None:
        """The whole body, once `read` has given it; else None."""
        return self._kept

    @property
    def started(self) -> bool:
        """Whether a part of the body has been taken from the connection."""
        return self.size > 0 or self.complete

    async def read(self) -> bytes:
        """Give the whole body; a second call gives the same bytes.

        Raises:
            PayloadTooLarge: above the limit, as soon as that is known.
            ClientDisconnect: when the client left before the end.
            RuntimeError: when `stream` has taken it already.
        """
        if self._kept is None:
            if self._reading:
                raise RuntimeError("The body is being read by another task; await that one first")
            if self.started:
                raise RuntimeError(
                    "The body was taken by stream(); keep its chunks, or call body() first"
                )
            self._check_declared()
            self._reading = self.asked = True
            try:
                body = self._taken(await self._upcoming())
                if not self.complete:  # most bodies come in one message
                    parts = [body]
                    while not self.complete:
                        parts.append(await self._next())
                    body = b"".join(parts)
            finally:
                self._reading = False
            self._kept = body
        return self._kept

    async def stream(self) -> AsyncGenerator[bytes]:
        """Give the body in the chunks that arrive, keeping none of them.

        Raises:
            PayloadTooLarge, ClientDisconnect: as `read`.
            RuntimeError: when it was streamed before.
        """
        if self._kept is not None:
            if self._kept:
                yield self._kept
            return
        if self.started:
            raise RuntimeError("The body was streamed already; it is not kept, read it only once")
        self._check_declared()
        self.asked = True
        while not self.complete:
            chunk = await self._next()
            if chunk:
                yield chunk

    async def wait_for_disconnect(self) -> None:
        """Return when the client has left; behind a large unread body nobody can see that."""
        if self._look is None and (self.complete or self.declared == 0):
            while not self.disconnected:
                self.disconnected = (await self.receive())["type"] == "http.disconnect"
            return
        look = self._looking()
        try:
            await look.wait_until_over()
        finally:
            look.stop()
        self.disconnected = True

    @property
    def looking(self) -> bool:
        """Whether somebody has looked for the client."""
        return self._look is not None

    async def is_disconnected(self) -> bool:
        """Look, without waiting, whether the client has left; what lies there is kept."""
        if not self.disconnected:
            self.disconnected = await self._looking().is_over()
        return self.disconnected

    async def stop_looking(self, error: BaseException | None = None) -> None:
        """End the look ahead of `is_disconnected`.

        Args:
            error: what the request failed with, as every callback of its end takes it; not used.
        """
        if self._look is not None:
            self._look.stop()

    def _looking(self) -> LookAhead:
        if self._look is None:
            self._look = LookAhead(self.receive)
        return self._look

    async def _next(self) -> bytes:
        return self._taken(await self._upcoming())

    def _upcoming(self) -> Awaitable[Message]:
        if self._look is not None:
            return self._look.next()
        if self.disconnected:
            raise ClientDisconnect("The client left before the end of the body")
        return self.receive()

    def _taken(self, message: Message) -> bytes:
        """The bytes of a message, counted."""
        if message["type"] == "http.disconnect":
            self.disconnected = True
            raise ClientDisconnect("The client left before the end of the body")
        chunk: bytes = message.get("body", b"")
        self.size += len(chunk)
        if self.size > self.limit:
            raise self._too_large()
        if not message.get("more_body", False):
            self.complete = True
        return chunk

    def _check_declared(self) -> None:
        if self.declared is not None and self.declared > self.limit:
            raise self._too_large()

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"The body is larger than the {self.limit} bytes taken here")
