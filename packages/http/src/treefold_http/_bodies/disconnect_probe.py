"""Detect a disconnect without losing the messages before it.

A server queues the disconnect behind the messages of the body. So messages received while looking
for the disconnect are held for the reader of the body, up to a limit; a larger unread body hides
the disconnect. `_bodies.reader` interprets the messages.
"""

from __future__ import annotations

import asyncio
from collections import deque

from treefold_http._wire.asgi import Message, Receive

MAX_HELD = 64 * 1024
"""Bytes of an unread body that are held; the last message may exceed them."""


class DisconnectProbe:
    """A queue between a request's `receive` and the reader of its body.

    Args:
        receive: the ASGI callable of the request.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._held: deque[Message] = deque()
        self._size = 0
        self._pending: asyncio.Future[Message] | None = None
        self._taken = asyncio.Event()

    async def read_next_message(self) -> Message:
        """Return the next message; a disconnect is returned by every further call."""
        while not self._held:
            await self._receive_and_queue_message()
        message = self._held[0]
        if message["type"] != "http.disconnect":
            self._held.popleft()
            self._size -= len(message.get("body", b""))
            self._taken.set()
        return message

    async def is_disconnected(self) -> bool:
        """Return True if the disconnect has been received; does not wait for it."""
        while not self._has_disconnect() and self._size <= MAX_HELD:
            pending = self._get_or_start_receive()
            await asyncio.sleep(0)  # lets the server deliver a queued message
            if not pending.done():
                return False
            self._queue_message(pending)
        return self._has_disconnect()

    async def wait_for_disconnect(self) -> None:
        """Return after the disconnect; while the limit is reached, nothing more is received."""
        while not self._has_disconnect():
            if self._size > MAX_HELD:
                # nothing is awaited between the check and the wait, so no wake-up is lost
                self._taken.clear()
                await self._taken.wait()
            else:
                await self._receive_and_queue_message()

    def cancel_receive(self) -> None:
        """Cancel the pending receive()."""
        if self._pending is not None:
            self._pending.cancel()

    def _has_disconnect(self) -> bool:
        return bool(self._held) and self._held[-1]["type"] == "http.disconnect"

    async def _receive_and_queue_message(self) -> None:
        pending = self._get_or_start_receive()
        await asyncio.wait([pending])  # does not cancel it: other callers may wait for it too
        self._queue_message(pending)

    def _get_or_start_receive(self) -> asyncio.Future[Message]:
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._receive())
        return self._pending

    def _queue_message(self, pending: asyncio.Future[Message]) -> None:
        """Hold the received message; the first of several waiting callers does so."""
        if self._pending is pending:
            self._pending = None
            if pending.cancelled():
                return  # by `cancel_receive`; a caller that still waits calls receive() again
            message = pending.result()
            self._held.append(message)
            self._size += len(message.get("body", b""))
