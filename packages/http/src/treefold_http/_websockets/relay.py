"""Room messages through Redis: one publisher and one subscriber for all rooms of a worker.

A subscriber that loses its connection reconnects. While Redis is unavailable a message reaches only
the rooms of this worker, and one warning is logged. `_websockets.rooms` manages the rooms.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from treefold_http._redis.client import check_url, import_redis, open_redis
from treefold_logging import get_logger

RoomMessage: TypeAlias = str | bytes

_CHANNEL = "treefold:room:"
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_TIMEOUT = 5.0
_PAUSE = 1.0
"""Seconds between attempts after a failure, so that broadcasts do not wait for a lost host."""


class Relay:
    """Passes the messages of rooms between workers.

    Args:
        url: the URL of the Redis server.
        deliver: called with the room and the message of any worker, this one included.

    Raises:
        TreefoldError: when the `redis` extra is not installed.
        ValueError: when the URL is not one of Redis.
    """

    def __init__(self, url: str, deliver: Callable[[str, RoomMessage], None]) -> None:
        check_url(url, "Rooms(redis=...)")
        self._redis = import_redis("Rooms(redis=...)")
        self._url = url
        self._deliver = deliver
        self._publisher: Any = None
        self._publisher_loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._listening = False
        self._away = False
        self._pause_until = 0.0

    async def listen(self) -> None:
        """Subscribe, once; return when subscribed or when Redis is known to be unavailable."""
        if self._task is None or self._task.done():  # done: its event loop has ended
            self._tried = asyncio.Event()
            self._task = asyncio.ensure_future(self._keep_listening(self._tried))
        await self._tried.wait()

    async def publish(self, room: str, message: RoomMessage) -> bool:
        """Send a message to every worker.

        Returns:
            True if the subscriber of this worker receives the message; False also without Redis.
        """
        loop = asyncio.get_running_loop()
        if self._away and loop.time() < self._pause_until:
            return False
        if self._publisher_loop is not loop:  # connections belong to an event loop
            self._publisher, self._publisher_loop = self._client(1, socket_timeout=_TIMEOUT), loop
        try:
            await self._publisher.publish(_CHANNEL + room, _packed(message))
        except (self._redis.RedisError, OSError) as error:
            self._pause_until = loop.time() + _PAUSE
            self._lose(error)
            return False
        if self._task is None:
            self._find()
        return self._listening

    async def close(self) -> None:
        """End the subscriber and close the connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._publisher is not None:
            await self._publisher.aclose()
        self._task = self._publisher = self._publisher_loop = None

    def _client(self, retries: int, **options: Any) -> Any:
        return open_redis(self._url, retries=retries, socket_connect_timeout=_TIMEOUT, **options)

    async def _keep_listening(self, tried: asyncio.Event) -> None:
        wait = _FIRST_WAIT
        while True:
            # No read timeout: the time between two messages is unlimited.
            client = self._client(0, socket_timeout=None)
            try:
                async with client.pubsub() as channel:
                    messages = channel.listen()
                    async with asyncio.timeout(_TIMEOUT):
                        await channel.psubscribe(f"{_CHANNEL}*")
                        await anext(messages)  # the confirmation of the subscription
                    self._listening, wait = True, _FIRST_WAIT
                    self._find()
                    tried.set()
                    async for message in messages:
                        self._take(message)
                        await asyncio.sleep(0)  # one read has many messages: let members send
            except Exception as error:  # any failure leads to a new subscription
                self._lose(error)
            finally:
                self._listening = False
                tried.set()
                with contextlib.suppress(Exception):
                    await client.aclose()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    def _lose(self, error: BaseException) -> None:
        if not self._away:
            get_logger().warning("rooms lost redis, messages reach this worker only: %s", error)
        self._away = True

    def _find(self) -> None:
        if self._away:
            get_logger().info("rooms found redis again")
        self._away = False
        self._pause_until = 0.0

    def _take(self, message: dict[str, Any]) -> None:
        try:
            room = message["channel"].decode().removeprefix(_CHANNEL)
            content = _unpacked(message["data"])
        except (ValueError, KeyError, TypeError) as error:  # from a foreign writer to the channel
            get_logger().warning("a room message from redis cannot be read: %r", error)
            return
        self._deliver(room, content)


def _packed(message: RoomMessage) -> str:
    if isinstance(message, str):
        return json.dumps({"text": message})
    return json.dumps({"bytes": base64.b64encode(message).decode("ascii")})


def _unpacked(data: bytes) -> RoomMessage:
    content = json.loads(data)
    if "text" in content:
        return str(content["text"])
    return base64.b64decode(content["bytes"], validate=True)
