"""Messages from an application to its client: in order, with the back-pressure of a socket.

A sender waits while more than `HIGH_WATER` bytes are unread, as it would for a slow client, and
gets an `OSError` once the client has disconnected (ASGI, HTTP 2.4). Messages are not interpreted.
"""

from __future__ import annotations

import asyncio
from collections import deque

from treefold_http._wire.asgi import Message

HIGH_WATER = 64 * 1024
"""Most unread bytes before a sender must wait; the default of asyncio transports."""


class ClientLeft(OSError):
    """The client has disconnected; sent messages are discarded."""

    def __init__(self) -> None:
        super().__init__("The client has left")


class Pipe:
    """Messages from an application to one client."""

    def __init__(self) -> None:
        self._messages: deque[tuple[Message, int]] = deque()  # with their sizes
        self._unread = 0  # bytes of them
        self._ended = False  # the application has returned
        self._left = False  # the client has disconnected
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, message: Message, size: int) -> None:
        """Add a message of `size` bytes; return when there is room for another.

        Raises:
            ClientLeft: when the client has disconnected.
        """
        if self._left:
            raise ClientLeft
        self._messages.append((message, size))
        self._unread += size
        self._arrived.set()
        await asyncio.sleep(0)  # an application that never waits must not block the event loop
        if self._unread > HIGH_WATER:
            self._room.clear()
            await self._room.wait()
            if self._left:
                raise ClientLeft

    async def get(self) -> Message | None:
        """Wait for the next message; return None when the application has returned."""
        while not self._messages:
            if self._ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self.get_nowait()

    def get_nowait(self) -> Message | None:
        """Return the next message, or None if none has arrived."""
        if not self._messages:
            return None
        message, size = self._messages.popleft()
        self._unread -= size
        if self._unread <= HIGH_WATER:
            self._room.set()
        return message

    @property
    def is_fully_read(self) -> bool:
        """True if the application has returned and every message is read."""
        return self._ended and not self._messages

    def mark_ended(self) -> None:
        """Mark the end of the messages: the application has returned."""
        self._ended = True
        self._arrived.set()

    def mark_disconnected(self) -> None:
        """Mark the client as disconnected and wake a waiting sender."""
        self._left = True
        self._room.set()
