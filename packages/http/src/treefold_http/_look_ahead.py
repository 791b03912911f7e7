"""Looking for a client that has left, without losing what it sent before.

A server tells of a departure in the same queue as of the body, behind it. So messages that a look
finds are held for the reader of the body, up to a bound; beyond it nobody can see past the body.
What the messages mean is the reader's business.
"""

from __future__ import annotations

import asyncio
from collections import deque

from treefold_http._types import Message, Receive

MAX_HELD = 64 * 1024
"""Bytes of an unread body that are held; one more message may come on top."""


class LookAhead:
    """Stands between a request's `receive` and the reader of its body.

    Args:
        receive: the ASGI callable of the request.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._held: deque[Message] = deque()
        self._size = 0
        self._pending: asyncio.Future[Message] | None = None
        self._taken = asyncio.Event()

    async def next(self) -> Message:
        """Give the next message; a disconnect is given again and again."""
        while not self._held:
            await self._arrival()
        message = self._held[0]
        if message["type"] != "http.disconnect":
            self._held.popleft()
            self._size -= len(message.get("body", b""))
            self._taken.set()
        return message

    async def is_over(self) -> bool:
        """Whether the disconnect is among what has come by now."""
        while not self._ends() and self._size <= MAX_HELD:
            pending = self._ask()
            await asyncio.sleep(0)  # lets the server give what it has
            if not pending.done():
                return False
            self._keep(pending)
        return self._ends()

    async def wait_until_over(self) -> None:
        """Return when the disconnect has come; while more is held than the bound, nothing can."""
        while not self._ends():
            if self._size > MAX_HELD:
                self._taken.clear()
                await self._taken.wait()
            else:
                await self._arrival()

    def stop(self) -> None:
        """Take back the question that is open at the server."""
        if self._pending is not None:
            self._pending.cancel()

    def _ends(self) -> bool:
        return bool(self._held) and self._held[-1]["type"] == "http.disconnect"

    async def _arrival(self) -> None:
        pending = self._ask()
        await asyncio.wait([pending])  # never cancels it: others may wait for it too
        self._keep(pending)

    def _ask(self) -> asyncio.Future[Message]:
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._receive())
        return self._pending

    def _keep(self, pending: asyncio.Future[Message]) -> None:
        """Hold what came; the first of those who waited for it does so."""
        if self._pending is pending:
            self._pending = None
            if pending.cancelled():
                return  # by `stop`; who still waits asks again
            message = pending.result()
            self._held.append(message)
            self._size += len(message.get("body", b""))
