"""Cache of an application: JSON values under keys, with one computation for many misses.

Values are stored as JSON text and decoded for every reader, so that no two of them share a list.
Where the text is kept, a backend decides.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from treefold_http._wire.errors import BadRequest
from treefold_http._wire.json import dumps, loads
from treefold_http._wire.json_values import check_json

MISS: Any = object()
"""Marks a missing value, since None is a value."""


class Backend(Protocol):
    """Where a cache keeps its bytes; see `_memory` and `_redis`."""

    waits: bool

    def read(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, Any]: ...
    def write(
        self, key: str, value: bytes, ttl: float, tags: Sequence[str], number: Any = ...
    ) -> None: ...
    def delete(self, key: str) -> bool: ...
    def invalidate(self, tags: Sequence[str]) -> bool: ...
    def clear(self) -> bool: ...
    async def aread(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, Any]: ...
    async def awrite(
        self, key: str, value: bytes, ttl: float, tags: Sequence[str], number: Any = ...
    ) -> None: ...
    async def adelete(self, key: str) -> bool: ...
    async def ainvalidate(self, tags: Sequence[str]) -> bool: ...
    async def aclear(self) -> bool: ...


class Cache:
    """One cache; made by `get_cache`.

    Attributes:
        alias: its name in the settings.
        sync: the same methods for plain functions, without `await`.
        answers: answers of handlers that are being made, by key.
    """

    def __init__(self, alias: str, open_backend: Callable[[str], Backend]) -> None:
        self.alias = alias
        self.sync = SyncCache(self)
        self._open = open_backend
        self._backend: Backend | None = None
        self.answers: dict[str, asyncio.Future[Any]] = {}
        self._flights: dict[str, asyncio.Future[bytes]] = {}

    @property
    def backend(self) -> Backend:
        """Where it keeps its bytes; opened at first use."""
        if self._backend is None:
            self._backend = self._open(self.alias)
        return self._backend

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` if there is none."""
        value = decode((await self.backend.aread(key, ()))[0])
        return default if value is MISS else value

    async def set(self, key: str, value: Any, *, ttl: float, tags: Sequence[str] = ()) -> None:
        """Keep a value for a time.

        Args:
            ttl: seconds, at most 30 days.
            tags: names under which it can be invalidated together with others.

        Raises:
            TypeError: for a value that JSON cannot give back.
            ValueError: for a time that is not positive, or NaN in the value.
        """
        await self.backend.awrite(key, encode(key, value), seconds(ttl), names(tags))

    async def delete(self, key: str) -> bool:
        """Remove a value; return True if there was one."""
        self._flights.pop(key, None)
        return await self.backend.adelete(key)

    async def get_or_set(
        self,
        key: str,
        make: Callable[[], Awaitable[Any]],
        *,
        ttl: float,
        tags: Sequence[str] = (),
    ) -> Any:
        """Return the value of a key; if there is none, compute it once for all concurrent callers.

        The computation goes on if a caller is cancelled, and every caller gets its exception.

        Args:
            make: an async function without parameters.

        Raises:
            TypeError, ValueError: as `set`.
        """
        ttl, tags = seconds(ttl), names(tags)
        backend = self.backend
        number: Any = MISS
        if not backend.waits:
            found, number = backend.read(key, tags)
            if (value := decode(found)) is not MISS:
                return value
        flight = self._flights.get(key)
        if flight is None or flight.get_loop() is not asyncio.get_running_loop():
            flight = asyncio.ensure_future(self._fill(key, make, ttl, tags, number))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._land(key, done))
        return decode(await asyncio.shield(flight))

    async def invalidate(self, *tags: str) -> bool:
        """Remove every value with one of the tags.

        Returns:
            False if Redis is away: its values are then stale until it hears of it, which this
            process tells it before it reads again.
        """
        self.forget_flights()
        return await self.backend.ainvalidate(names(tags))

    async def clear(self) -> bool:
        """Remove every value of this cache; as `invalidate`."""
        self.forget_flights()
        return await self.backend.aclear()

    def forget_flights(self) -> None:
        """Forget the computations in progress, which began before an invalidation."""
        self._flights.clear()
        self.answers.clear()

    def reopen(self) -> None:
        """Open another backend at the next use: the address has changed."""
        self._backend = None
        self.forget_flights()

    def clear_memory(self) -> None:
        """Remove every value, if they are in memory."""
        self.forget_flights()
        if self._backend is not None and not self._backend.waits:
            self._backend.clear()

    async def _fill(
        self,
        key: str,
        make: Callable[[], Awaitable[Any]],
        ttl: float,
        tags: Sequence[str],
        number: Any,
    ) -> bytes:
        flight = asyncio.current_task()
        if number is MISS:
            found, number = await self.backend.aread(key, tags)
            if found is not None and decode(found) is not MISS:
                return found
        value = encode(key, await make())
        if self._flights.get(key) is flight:  # else it was deleted or invalidated meanwhile
            await self.backend.awrite(key, value, ttl, tags, number)
        return value

    def _land(self, key: str, flight: asyncio.Future[bytes]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # every caller may be gone: nothing is left to report it to


class SyncCache:
    """A cache for plain functions, which run in worker threads."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._locks: dict[str, tuple[threading.Lock, list[None]]] = {}
        self._guard = threading.Lock()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` if there is none."""
        value = decode(self._cache.backend.read(key, ())[0])
        return default if value is MISS else value

    def set(self, key: str, value: Any, *, ttl: float, tags: Sequence[str] = ()) -> None:
        """Keep a value for a time; see `Cache.set`."""
        self._cache.backend.write(key, encode(key, value), seconds(ttl), names(tags))

    def delete(self, key: str) -> bool:
        """Remove a value; return True if there was one."""
        self._cache.forget_flights()
        return self._cache.backend.delete(key)

    def get_or_set(
        self, key: str, make: Callable[[], Any], *, ttl: float, tags: Sequence[str] = ()
    ) -> Any:
        """Return the value of a key; if there is none, make it, in one thread at a time."""
        ttl, tags = seconds(ttl), names(tags)
        backend = self._cache.backend
        found, _ = backend.read(key, tags)
        if (value := decode(found)) is not MISS:
            return value
        with self._guard:
            lock, users = self._locks.setdefault(key, (threading.Lock(), []))
            users.append(None)
        try:
            with lock:
                found, number = backend.read(key, tags)
                if (value := decode(found)) is MISS:
                    made = encode(key, make())
                    backend.write(key, made, ttl, tags, number)
                    value = decode(made)
            return value
        finally:
            with self._guard:
                users.pop()
                if not users:
                    self._locks.pop(key, None)

    def invalidate(self, *tags: str) -> bool:
        """Remove every value with one of the tags; see `Cache.invalidate`."""
        self._cache.forget_flights()
        return self._cache.backend.invalidate(names(tags))

    def clear(self) -> bool:
        """Remove every value of this cache; see `Cache.clear`."""
        self._cache.forget_flights()
        return self._cache.backend.clear()


def encode(key: str, value: Any) -> bytes:
    """Return a value as JSON."""
    check_json(value, f"The value of cache key {key[:80]!r}")
    return dumps(value)


def decode(found: bytes | None) -> Any:
    """Return the value, or MISS for nothing and for anything that is not JSON."""
    if found is None:
        return MISS
    try:
        return loads(found)
    except BadRequest:
        return MISS


def seconds(ttl: float) -> float:
    """Refuse a time that is not one."""
    if not (isinstance(cast("object", ttl), (int, float)) and 0 < ttl < math.inf):
        raise ValueError(f"ttl must be a number of seconds above 0, got {ttl!r}")
    return ttl


def names(tags: Sequence[str]) -> tuple[str, ...]:
    """Return each tag once; raise TypeError for anything but a list of names."""
    if isinstance(tags, str):
        raise TypeError(f"tags must be a list of names, got the text {tags!r}")
    if any(not tag or "\0" in tag for tag in tags):
        raise ValueError(f"A tag must be a name without NUL, got {list(tags)!r}")
    return tuple(dict.fromkeys(tags))
