"""The one reader of a request body: counted while it arrives, exact about how it ended.

`body`, `json`, `form`, `files`, `stream` and the request log all read through `BodyReader`, so that
one limit holds for all of them (S-24, S-25) and a client that leaves early is never mistaken for a
short body. It knows bytes and messages, not what they mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from treefold_http._errors import ClientDisconnect, PayloadTooLarge
from treefold_http._types import Receive


class BodyReader:
    """Read a request body once, from the protocol or from what was kept of it.

    Args:
        receive: the ASGI callable of the request.
        declared: the size that was announced; None when it is not known beforehand.
        limit: the most bytes to take.

    Attributes:
        document: the parsed JSON body, where it was parsed for nobody who could change it.
    """

    __slots__ = (
        "_kept",
        "_reading",
        "complete",
        "declared",
        "disconnected",
        "document",
        "limit",
        "receive",
        "size",
    )

    def __init__(self, receive: Receive, declared: int | None, *, limit: int) -> None:
        self.receive = receive
        self.declared = declared
        self.limit = limit
        self.size = 0
        self.complete = False
        self.disconnected = False
        self.document: Any = None
        self._kept: bytes | None = None
        self._reading = False

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
            self._reading = True
            try:
                body = await self._next()
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
        while not self.complete:
            chunk = await self._next()
            if chunk:
                yield chunk

    async def wait_for_disconnect(self) -> None:
        """Return when the client has left; for ever where an unread body stands in the way."""
        if not self.complete and self.declared != 0:
            await asyncio.get_running_loop().create_future()
        while not self.disconnected:
            message = await self.receive()
            self.disconnected = message["type"] == "http.disconnect"

    async def _next(self) -> bytes:
        if self.disconnected:
            raise ClientDisconnect("The client left before the end of the body")
        message = await self.receive()
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
