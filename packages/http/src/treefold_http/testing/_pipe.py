"""What an application sends, on its way to the client: in order, and held back like a full socket.

A sender waits while more than `HIGH_WATER` bytes are unread, as it would for a slow client, and
gets an `OSError` once the client has left (ASGI, HTTP 2.4). Messages are not looked at here.
"""

from __future__ import annotations

import asyncio
from collections import deque

from treefold_http._types import Message

HIGH_WATER = 64 * 1024
"""What asyncio lets a transport keep before a writer has to wait."""


class ClientLeft(OSError):
    """The client has left; nobody reads what is sent."""

    def __init__(self) -> None:
        super().__init__("The client has left")


class Pipe:
    """Messages from an application to one client."""

    def __init__(self) -> None:
        self._messages: deque[tuple[Message, int]] = deque()
        self._unread = 0
        self._ended = False
        self._left = False
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, message: Message, size: int) -> None:
        """Add a message of `size` bytes; return when there is room for another.

        Raises:
            ClientLeft: when nobody reads it.
        """
        if self._left:
            raise ClientLeft
        self._messages.append((message, size))
        self._unread += size
        self._arrived.set()
        await asyncio.sleep(0)  # an application that never waits must not keep the loop to itself
        if self._unread > HIGH_WATER:
            self._room.clear()
            await self._room.wait()
            if self._left:
                raise ClientLeft

    async def get(self) -> Message | None:
        """Give the next message, as soon as there is one; None when there will be no more."""
        while not self._messages:
            if self._ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self.get_nowait()

    def get_nowait(self) -> Message | None:
        """Give the next message; None when there is none now."""
        if not self._messages:
            return None
        message, size = self._messages.popleft()
        self._unread -= size
        if self._unread <= HIGH_WATER:
            self._room.set()
        return message

    @property
    def drained(self) -> bool:
        """Whether the application has returned and everything is read."""
        return self._ended and not self._messages

    def end(self) -> None:
        """Say that the application has returned."""
        self._ended = True
        self._arrived.set()

    def leave(self) -> None:
        """Say that the client has left."""
        self._left = True
        self._room.set()
