"""The session stores: the memory of this process, or Redis.

A store keeps bytes under hashed keys until they expire (`extensions.SessionStore`). `replace` keeps
a session removed after a logout: it writes only if the key still has a value. `records` encodes the
bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from treefold_http._redis import OwnRedis
from treefold_http._sessions.records import is_anonymous_record

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

MAX_BYTES = 32 * 1024 * 1024
"""Bytes of all sessions in memory; those of visitors without a login go first."""
_ENTRY_OVERHEAD = 400
"""Bytes that one entry costs besides its value: key, tuple, slots of the dictionary."""


class MemorySessions:
    """Keeps sessions in this process; evicts the least recently used ones when it is full.

    Sessions without a user are evicted first, down to a quarter of the bytes. Every request for a
    form makes one, and must not end the sessions of users; and a login needs room for one.
    Other workers do not see them, and a restart ends them.

    Args:
        max_bytes: the most bytes of all entries together; one may have an eighth of it.
    """

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._rows: dict[str, _Row] = {}
        self._users, self._anonymous = _Order(), _Order()
        # the event loop and plain functions in worker threads share the store; held for a few
        # operations on dictionaries and never while awaiting
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, key: str) -> bytes | None:
        """Return the value, or None if it is absent; never waits."""
        with self._lock:
            row = self._find_row_and_mark_used(key)
            return row[0] if row else None

    def touch_now(self, key: str, *, seconds: float) -> bool:
        """Do the same as `touch`; never waits."""
        with self._lock:
            if (row := self._find_row_and_mark_used(key)) is None:
                return False
            self._rows[key] = (row[0], monotonic() + seconds, row[2])
            return True

    async def get(self, key: str) -> bytes | None:
        """Return the value, or None if it is absent."""
        return self.read(key)

    async def set(self, key: str, value: bytes, *, seconds: float) -> None:
        """Write the value, whether or not the key has one."""
        with self._lock:
            self._write_and_evict(key, value, seconds)

    async def replace(self, key: str, value: bytes, *, seconds: float) -> bool:
        """Write the value if the key has one; return False if it is absent."""
        with self._lock:
            if self._find_row_and_mark_used(key) is None:
                return False
            self._write_and_evict(key, value, seconds)
            return True

    async def delete(self, key: str) -> bool:
        """Remove the value; return True if there was one."""
        with self._lock:
            row = self._find_row_and_mark_used(key)
            self._remove_row(key)
            return row is not None

    async def touch(self, key: str, *, seconds: float) -> bool:
        """Set the expiry to `seconds` from now; return False if the key is absent."""
        return self.touch_now(key, seconds=seconds)

    def _find_row_and_mark_used(self, key: str) -> _Row | None:
        if (row := self._rows.get(key)) is None:
            return None
        if row[1] <= monotonic():
            self._remove_row(key)
            return None
        row[2].move_to_end(key)
        return row

    def _write_and_evict(self, key: str, value: bytes, seconds: float) -> None:
        size = len(value) + _ENTRY_OVERHEAD
        if size > self._max_bytes // 8:
            raise ValueError(
                f"A session in memory must have at most {self._max_bytes // 8} bytes, got {size};"
                " keep large values elsewhere, and their key in the session"
            )
        # before it is added: a login moves a session from one order to the other, and its bytes
        # would be counted in both
        self._remove_row(key)
        order = self._anonymous if is_anonymous_record(value) else self._users
        self._rows[key] = (value, monotonic() + seconds, order)
        order.add_key(key, size)
        while self._users.bytes + self._anonymous.bytes > self._max_bytes:
            gives_way = self._anonymous
            if self._anonymous.bytes <= self._max_bytes // 4 and self._users:
                gives_way = self._users
            self._remove_row(next(iter(gives_way)))

    def _remove_row(self, key: str) -> None:
        if (row := self._rows.pop(key, None)) is not None:
            row[2].remove_key(key)


class _Order(OrderedDict[str, int]):
    """Keys by their last use, each with its bytes."""

    bytes = 0

    def add_key(self, key: str, size: int) -> None:
        self[key] = size
        self.bytes += size

    def remove_key(self, key: str) -> None:
        self.bytes -= self.pop(key)


_Row: TypeAlias = tuple[bytes, float, _Order]
"""The value, its expiry, and the order in which its kind gives way."""


class RedisSessions:
    """Keeps sessions in Redis, for all workers.

    Args:
        url: of the server.
        app: their application.
        shared: keep them for all applications of the environment.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """

    def __init__(self, url: str, app: Runtime, *, shared: bool = False) -> None:
        self._redis = OwnRedis(url, effect="sessions answer 503", app=app, shared=shared)

    async def get(self, key: str) -> bytes | None:
        """Return the value, or None if it is absent."""
        return await self._redis.execute("GET", self._build_key(key))

    async def set(self, key: str, value: bytes, *, seconds: float) -> None:
        """Write the value, whether or not the key has one."""
        lifetime = _to_milliseconds(seconds)
        await self._redis.execute("SET", self._build_key(key), value, "PX", lifetime)

    async def replace(self, key: str, value: bytes, *, seconds: float) -> bool:
        """Write the value if the key has one; return False if it is absent."""
        # XX writes only if the key exists: after a logout between the read and this command the
        # session stays ended, which GET and SET could not promise
        done = await self._redis.execute(
            "SET", self._build_key(key), value, "PX", _to_milliseconds(seconds), "XX"
        )
        return done is not None

    async def delete(self, key: str) -> bool:
        """Remove the value; return True if there was one."""
        return bool(await self._redis.execute("DEL", self._build_key(key)))

    async def touch(self, key: str, *, seconds: float) -> bool:
        """Set the expiry to `seconds` from now; return False if the key is absent."""
        lifetime = _to_milliseconds(seconds)
        return bool(await self._redis.execute("PEXPIRE", self._build_key(key), lifetime))

    def _build_key(self, key: str) -> str:
        return self._redis.build_key("session", key)


def _to_milliseconds(seconds: float) -> int:
    # Redis refuses `PX 0`
    return max(1, round(seconds * 1000))
