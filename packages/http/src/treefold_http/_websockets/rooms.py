"""Rooms: groups of sockets that receive the same messages, in one process or across workers.

Every member has a bounded queue and a task that empties it, so a slow reader neither slows the
others nor fills the memory: when its queue is full it is closed with 1013 (S-75).
`_websockets.relay` passes messages to other workers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from treefold_http._runtime.boot_report import TreefoldError
from treefold_http._websockets.relay import Relay, RoomMessage
from treefold_http._websockets.websocket import OVERLOADED, WebSocket, WebSocketDisconnect
from treefold_logging import get_logger

QUEUE = 32


class Rooms:
    """Groups of sockets with join, leave and broadcast (rulings, 'WebSocket').

    Args:
        redis: a Redis URL; messages then reach the rooms of every worker. None for this process.
        queue: how many messages may wait for one socket.

    Raises:
        TreefoldError: when `redis` is set and the `redis` extra is not installed, or it is not set
            and several processes serve.
        ValueError: when the URL is not one of Redis.
    """

    def __init__(self, redis: str | None = None, *, queue: int = QUEUE) -> None:
        if redis is None and int(os.environ.get("TREEFOLD_WORKER_PROCESSES", "1")) > 1:
            raise TreefoldError(
                "Rooms() reaches only the sockets of its own process, and several processes serve;"
                " give it redis='redis://...', or serve with one process"
            )
        self._queue = queue
        self._rooms: dict[str, dict[WebSocket, _Member]] = {}
        self._members: dict[WebSocket, _Member] = {}
        self._relay = Relay(redis, self._deliver) if redis is not None else None

    async def join(self, room: str, websocket: WebSocket) -> None:
        """Add an accepted socket to a room; it is removed when its handler ends.

        Raises:
            RuntimeError: when the socket is not accepted.
            WebSocketDisconnect: when it is closed.
        """
        websocket.check_open()
        if self._relay is not None:
            await self._relay.listen()
        member = self._members.get(websocket)
        if member is None:
            member = self._members[websocket] = _Member(websocket, self._queue)

            async def leave(error: BaseException | None) -> None:
                await self.forget(websocket)

            websocket.on_exit(leave)
        self._rooms.setdefault(room, {})[websocket] = member

    async def leave(self, room: str, websocket: WebSocket) -> None:
        """Remove a socket from a room; do nothing if it is not a member."""
        members = self._rooms.get(room, {})
        members.pop(websocket, None)
        if not members:
            self._rooms.pop(room, None)

    async def forget(self, websocket: WebSocket) -> None:
        """Remove a socket from every room."""
        for room in [name for name, members in self._rooms.items() if websocket in members]:
            await self.leave(room, websocket)
        member = self._members.pop(websocket, None)
        if member is not None:
            await member.stop()

    @asynccontextmanager
    async def joined(self, room: str, websocket: WebSocket) -> AsyncGenerator[None]:
        """Join a room for the duration of a block."""
        await self.join(room, websocket)
        try:
            yield
        finally:
            await self.leave(room, websocket)

    async def broadcast(self, room: str, message: RoomMessage) -> None:
        """Queue text or bytes for every socket of a room; does not wait for the clients.

        Raises:
            TypeError: when the message is neither.
        """
        if not isinstance(cast("object", message), (str, bytes)):
            raise TypeError(
                f"A room message must be str or bytes, got {type(message).__qualname__!r}"
            )
        if self._relay is None or not await self._relay.publish(room, message):
            self._deliver(room, message)
        await asyncio.sleep(0)  # lets members send: a loop of broadcasts must not fill their queues

    def members(self, room: str) -> list[WebSocket]:
        """Return the sockets of a room that this process serves."""
        return list(self._rooms.get(room, ()))

    async def close(self) -> None:
        """End the subscriber; to be called by a shutdown hook or an extension."""
        if self._relay is not None:
            await self._relay.close()

    def _deliver(self, room: str, message: RoomMessage) -> None:
        for member in list(self._rooms.get(room, {}).values()):
            member.put(message)


class _Member:
    """A socket with the queue of its messages."""

    def __init__(self, websocket: WebSocket, size: int) -> None:
        self._websocket = websocket
        self._queue: asyncio.Queue[RoomMessage] = asyncio.Queue(size)
        self._too_slow = False
        self._pump = asyncio.ensure_future(self._send_all())

    def put(self, message: RoomMessage) -> None:
        if self._too_slow:
            return
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._too_slow = True
            self._pump.cancel()  # it waits for a client that does not read
            self._websocket.drop(OVERLOADED)

    async def stop(self) -> None:
        self._pump.cancel()
        await asyncio.wait([self._pump])

    async def _send_all(self) -> None:
        websocket = self._websocket
        try:
            while True:
                message = await self._queue.get()
                if isinstance(message, str):
                    await websocket.send_text(message)
                else:
                    await websocket.send_bytes(message)
        except WebSocketDisconnect:
            return
        except asyncio.CancelledError:
            if not self._too_slow:
                raise
        except Exception as error:  # the server refused the message; the handler goes on
            get_logger().error("a room message could not be sent", exc_info=error)
