"""Rooms: groups of sockets that hear the same messages, in one process or across workers.

Every member has a bounded queue and a task that empties it, so a slow reader neither slows the
others nor fills the memory: when its queue is full it is closed with 1013 (S-75). With Redis a
message takes the way through its channel, and a subscriber that loses the connection comes back.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from treefold_http._errors import TreefoldError
from treefold_http._websocket import OVERLOADED, WebSocket, WebSocketDisconnect
from treefold_logging import get_logger

RoomMessage: TypeAlias = str | bytes

QUEUE = 32
_CHANNEL = "treefold:room:"
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0


class Rooms:
    """Join, leave, broadcast (rulings, 'WebSocket').

    Args:
        redis: a Redis URL; messages then reach the rooms of every worker. None for this process.
        queue: how many messages may wait for one socket.

    Raises:
        TreefoldError: when Redis is asked for and the `redis` extra is not installed.
    """

    def __init__(self, redis: str | None = None, *, queue: int = QUEUE) -> None:
        self._queue = queue
        self._rooms: dict[str, dict[WebSocket, _Member]] = {}
        self._members: dict[WebSocket, _Member] = {}
        self._relay = _Relay(redis, self._deliver) if redis is not None else None

    async def join(self, room: str, websocket: WebSocket) -> None:
        """Let an accepted socket hear a room; it leaves by itself when its handler ends."""
        if self._relay is not None:
            await self._relay.listen()
        member = self._members.get(websocket)
        if member is None:
            member = self._members[websocket] = _Member(websocket, self._queue)

            async def leave(error: BaseException | None) -> None:
                await self.forget(websocket)

            websocket.on_leave(leave)
        self._rooms.setdefault(room, {})[websocket] = member

    async def leave(self, room: str, websocket: WebSocket) -> None:
        """Let a socket hear a room no more; one that is not in it stays as it is."""
        members = self._rooms.get(room, {})
        members.pop(websocket, None)
        if not members:
            self._rooms.pop(room, None)

    async def forget(self, websocket: WebSocket) -> None:
        """Take a socket out of every room."""
        for room in [name for name, members in self._rooms.items() if websocket in members]:
            await self.leave(room, websocket)
        member = self._members.pop(websocket, None)
        if member is not None:
            await member.stop()

    @asynccontextmanager
    async def joined(self, room: str, websocket: WebSocket) -> AsyncGenerator[None]:
        """Be in a room for the length of a block."""
        await self.join(room, websocket)
        try:
            yield
        finally:
            await self.leave(room, websocket)

    async def broadcast(self, room: str, message: RoomMessage) -> None:
        """Send text or bytes to every socket of a room; nobody is waited for."""
        if self._relay is None or not await self._relay.publish(room, message):
            self._deliver(room, message)

    def members(self, room: str) -> list[WebSocket]:
        """Give the sockets of a room that this process serves."""
        return list(self._rooms.get(room, ()))

    async def close(self) -> None:
        """End the subscriber; a shutdown hook or extension calls it."""
        if self._relay is not None:
            await self._relay.close()

    def _deliver(self, room: str, message: RoomMessage) -> None:
        for member in list(self._rooms.get(room, {}).values()):
            member.put(message)


class _Member:
    """A socket with the messages that wait for it."""

    def __init__(self, websocket: WebSocket, size: int) -> None:
        self._websocket = websocket
        self._queue: asyncio.Queue[RoomMessage] = asyncio.Queue(size)
        self._pump = asyncio.ensure_future(self._send_all())

    def put(self, message: RoomMessage) -> None:
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._pump.cancel()

    async def stop(self) -> None:
        self._pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump

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
            if self._queue.full():
                await websocket.close(OVERLOADED, "Too slow for this room")
                return
            raise


class _Relay:
    """The way of messages through Redis: one publisher, one subscriber for all rooms."""

    def __init__(self, url: str, deliver: Any) -> None:
        try:
            self._redis = importlib.import_module("redis.asyncio")
        except ImportError as error:
            raise TreefoldError(
                'Rooms(redis=...) needs redis; install it: pip install "treefold[redis]"'
            ) from error
        self._url = url
        self._deliver = deliver
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    async def listen(self) -> None:
        """Subscribe, once; returns when messages arrive."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._keep_listening())
        await self._listening.wait()

    async def publish(self, room: str, message: RoomMessage) -> bool:
        """Send a message to every worker; False when Redis is not there to take it."""
        if self._client is None:
            self._client = self._redis.from_url(self._url, socket_timeout=5, protocol=2)
        try:
            await self._client.publish(_CHANNEL + room, _packed(message))
        except self._redis.RedisError as error:
            get_logger().warning("room message reached this worker only: %s", error)
            return False
        return self._listening.is_set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._client is not None:
            await self._client.aclose()
        self._task = self._client = None

    async def _keep_listening(self) -> None:
        wait = _FIRST_WAIT
        while True:
            # A subscriber waits for ever between two messages: its client has no read time-out.
            client = self._redis.from_url(self._url, socket_timeout=None, protocol=2)
            try:
                async with client.pubsub() as channel:
                    await channel.psubscribe(f"{_CHANNEL}*")
                    self._listening.set()
                    wait = _FIRST_WAIT
                    async for message in channel.listen():
                        self._take(message)
            except (self._redis.RedisError, OSError) as error:
                get_logger().warning("rooms lost redis, again in %.1f s: %s", wait, error)
            finally:
                self._listening.clear()
                await client.aclose()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "pmessage":
            room = message["channel"].decode().removeprefix(_CHANNEL)
            self._deliver(room, _unpacked(message["data"]))


def _packed(message: RoomMessage) -> str:
    if isinstance(message, str):
        return json.dumps({"text": message})
    return json.dumps({"bytes": base64.b64encode(message).decode("ascii")})


def _unpacked(data: bytes) -> RoomMessage:
    content = json.loads(data)
    return content["text"] if "text" in content else base64.b64decode(content["bytes"])
