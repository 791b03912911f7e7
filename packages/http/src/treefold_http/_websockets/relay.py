"""Room messages through Redis: one publisher and one subscriber for all rooms of a worker.

A subscriber that loses its connection reconnects. While Redis is unavailable a message reaches only
the rooms of this worker, and one warning is logged. `_websockets.rooms` manages the rooms.

A server has one set of channels for all its databases, so a channel names the application, its
environment and the number of the database: `treefold:shop:production:room:0:lobby`. Any client of
the server can publish, so a message begins with a signature over channel and content.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from treefold_http._redis.client import (
    check_redis_url,
    import_redis,
    open_redis,
    parse_database_number,
)
from treefold_http._redis.own_redis import build_redis_key
from treefold_http._redis.users import ensure_claim
from treefold_http._runtime.boot_report import SettingsError
from treefold_http._runtime.name_space import NameSpace
from treefold_http._sessions.signing import MAKE_ONE, Signer, require_secrets
from treefold_http._wire.aliases import JSONObject
from treefold_logging import get_logger

RoomMessage: TypeAlias = str | bytes

FEATURE = "Rooms(redis=...)"
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_TIMEOUT = 5.0
"""Seconds that Redis may take to connect, to take a message, and to confirm a subscription."""
_PAUSE = 1.0
"""Seconds between attempts after a failure, so that broadcasts do not wait for a lost host."""


_WARN_EVERY = 10.0
"""Seconds between two warnings of a message that is not signed."""


class Relay:
    """Passes the messages of rooms between the workers of an application.

    Args:
        url: the URL of the Redis server.
        deliver: called with the room and the message of any worker, this one included.
        names: those of the application.
        shared: reach all applications of the environment that say so.

    Raises:
        TreefoldError: when the `redis` extra is not installed, or in production without a secret.
        ValueError: when the URL is not one of Redis.
    """

    def __init__(
        self,
        url: str,
        deliver: Callable[[str, RoomMessage], None],
        *,
        names: NameSpace,
        shared: bool,
    ) -> None:
        self._redis = import_redis(FEATURE)
        self._url = url
        self._deliver = deliver
        self._names = None if shared else names
        kind = f"room:{parse_database_number(url)}"
        self._channel = build_redis_key(names, kind, "", shared=shared)
        self._signer = Signer(require_signing_secrets(names), ("room", self._channel))
        self._warned = float("-inf")  # when a message was not signed; the log has one in a while
        self._publisher: Any = None
        self._publisher_loop: asyncio.AbstractEventLoop | None = None
        # the subscriber; `_tried` is set once its first attempt has ended, either way
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._listening = False
        # True while Redis does not answer, and the time until which no message is sent to it
        self._away = False
        self._pause_until = 0.0

    async def start_listening(self) -> None:
        """Subscribe, once; return when subscribed or when Redis is known to be unavailable.

        Raises:
            SettingsError: another deployment uses the names of this application.
        """
        await self._ensure_name_claim()
        if self._task is None or self._task.done():  # done: its event loop has ended
            self._tried = asyncio.Event()
            self._task = asyncio.ensure_future(self._listen_with_reconnect(self._tried))
        await self._tried.wait()

    async def publish_and_report_echo(self, room: str, message: RoomMessage) -> bool:
        """Send a message to every worker.

        Returns:
            True if the subscriber of this worker receives the message; False also without Redis.

        Raises:
            SettingsError: as `start_listening`.
        """
        loop = asyncio.get_running_loop()
        if self._away and loop.time() < self._pause_until:
            return False
        if self._publisher_loop is not loop:  # connections belong to an event loop
            self._publisher = self._open_client(1, socket_timeout=_TIMEOUT)
            self._publisher_loop = loop
        await self._ensure_name_claim()
        # a room's name may hold a lone surrogate, which strict UTF-8 refuses
        channel = (self._channel + room).encode("utf-8", "surrogatepass")
        try:
            await self._publisher.publish(channel, self._sign_message(channel, message))
        except (self._redis.RedisError, OSError) as error:
            self._pause_until = loop.time() + _PAUSE
            self._record_failure(error)
            return False
        # without members there is no subscriber, which otherwise notices the recovery
        if self._task is None:
            self._record_recovery()
        return self._listening

    async def close(self) -> None:
        """End the subscriber and close the connections."""
        if self._task is not None:
            self._task.cancel()
            # `await` of the task itself would raise its CancelledError here
            await asyncio.wait([self._task])
        if self._publisher is not None:
            await self._publisher.aclose()
        self._task = self._publisher = self._publisher_loop = None

    def _open_client(self, retries: int, **options: Any) -> Any:
        return open_redis(self._url, retries=retries, socket_connect_timeout=_TIMEOUT, **options)

    async def _listen_with_reconnect(self, first_attempt_done: asyncio.Event) -> None:
        wait = _FIRST_WAIT
        while True:
            # No read timeout: the time between two messages is unlimited.
            client = self._open_client(0, socket_timeout=None)
            try:
                async with client.pubsub() as channel:
                    messages = channel.listen()
                    # a server that accepts and never answers would block `join`
                    async with asyncio.timeout(_TIMEOUT):
                        await channel.psubscribe(f"{self._channel}*")
                        await anext(messages)  # the confirmation of the subscription
                    self._listening, wait = True, _FIRST_WAIT
                    self._record_recovery()
                    first_attempt_done.set()
                    async for message in messages:
                        self._verify_and_deliver_message(message)
                        await asyncio.sleep(0)  # one read has many messages: let members send
            except Exception as error:  # any failure leads to a new subscription
                self._record_failure(error)
            finally:
                self._listening = False
                first_attempt_done.set()
                with contextlib.suppress(Exception):
                    await client.aclose()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _ensure_name_claim(self) -> None:
        if self._names is not None:
            await ensure_claim(self._url, self._names)

    def _record_failure(self, error: BaseException) -> None:
        if not self._away:
            get_logger().warning("rooms lost redis, messages reach this worker only: %s", error)
        self._away = True

    def _record_recovery(self) -> None:
        if self._away:
            get_logger().info("rooms found redis again")
        self._away = False
        self._pause_until = 0.0

    def _verify_and_deliver_message(self, message: JSONObject) -> None:
        try:
            channel: bytes = message["channel"]
            room = channel.decode("utf-8", "surrogatepass").removeprefix(self._channel)
            signature, _, data = bytes(message["data"]).partition(b" ")
            # the channel is signed too: a message copied into another room does not verify
            if not self._signer.verify_signature(channel + b"\0" + data, signature.decode("ascii")):
                self._warn_of_invalid_signature()
                return
            content = _decode_message(data)
        except (ValueError, KeyError, TypeError) as error:  # from a foreign writer to the channel
            get_logger().warning("a room message from redis cannot be read: %r", error)
            return
        self._deliver(room, content)

    def _sign_message(self, channel: bytes, message: RoomMessage) -> bytes:
        data = _encode_message(message).encode()
        return b"%b %b" % (self._signer.sign_data(channel + b"\0" + data).encode(), data)

    def _warn_of_invalid_signature(self) -> None:
        now = time.monotonic()
        # any client of the server can publish, and could fill the log
        if now - self._warned >= _WARN_EVERY:
            self._warned = now
            get_logger().warning(
                "a room message from redis is not signed with secret_key or one of"
                " secret_key_fallbacks, dropped; the processes of a deployment need the same"
            )


def check_relay_requirements(url: str, names: NameSpace | None) -> None:
    """Check what a relay needs, as far as it is known where `Rooms` is made.

    Raises:
        TreefoldError: when the `redis` extra is not installed, or in production without a secret.
        ValueError: when the URL is not one of Redis.
    """
    check_redis_url(url, FEATURE)
    if names is not None:
        require_signing_secrets(names)


def require_signing_secrets(names: NameSpace) -> Sequence[bytes]:
    """Return the secrets of room messages, the newest first.

    Without a secret, messages in development and tests are signed with the names alone: they tell
    applications apart, not attackers.

    Raises:
        TreefoldError: in any other environment without a secret, or for a short one.
    """
    if names.secrets:
        return require_secrets(names.secrets, dev=False)
    if names.is_test or names.environment == "development":
        return [names.own.encode()]
    raise SettingsError(
        f"{FEATURE} needs a secret that signs messages; set TREEFOLD_SECRET_KEY and {MAKE_ONE}"
    )


def _encode_message(message: RoomMessage) -> str:
    if isinstance(message, str):
        return json.dumps({"text": message})
    return json.dumps({"bytes": base64.b64encode(message).decode("ascii")})


def _decode_message(data: bytes) -> RoomMessage:
    content = json.loads(data)
    if "text" in content:
        return str(content["text"])
    return base64.b64decode(content["bytes"], validate=True)
