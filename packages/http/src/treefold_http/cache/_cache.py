"""Cache of an application: JSON values under keys, with one computation for many misses.

Values are stored as JSON text and decoded for every reader, so that no two of them share a list.
Where the text is kept, a backend decides. A `Cache` is one object for a whole process, made when a
module is imported; what it keeps is apart for each application (`CacheState`).
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from treefold_http._json.json import dumps, loads
from treefold_http._json.json_values import require_json_round_trip
from treefold_http._runtime.current_application import current_application
from treefold_http._wire.errors import BadRequest

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

MISS: Any = object()
"""Marks a missing value, since None is a value."""


class Backend(Protocol):
    """Where a cache keeps its bytes; see `_memory` and `_redis`."""

    waits: bool
    redis_url: str | None

    def read_entry(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, Any]: ...
    def write_entry(
        self, key: str, value: bytes, ttl: float, tags: Sequence[str], read_version: Any = ...
    ) -> None: ...
    def delete_entry(self, key: str) -> bool: ...
    def invalidate_tags(self, tags: Sequence[str]) -> bool: ...
    def clear_entries(self) -> bool: ...
    async def aread_entry(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, Any]: ...
    async def awrite_entry(
        self, key: str, value: bytes, ttl: float, tags: Sequence[str], read_version: Any = ...
    ) -> None: ...
    async def adelete_entry(self, key: str) -> bool: ...
    async def ainvalidate_tags(self, tags: Sequence[str]) -> bool: ...
    async def aclear_entries(self) -> bool: ...


class PendingComputation:
    """Threads that wait for the computation of one key.

    Attributes:
        users: the threads, the computing one included.
        error: the exception of a computation that all of them waited for.
        is_current: False once the key was deleted during the computation.
    """

    __slots__ = ("error", "is_current", "lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.error: BaseException | None = None
        self.is_current = True


class CacheState:
    """What one cache keeps for one application.

    Attributes:
        backend: where its bytes are.
        answers: answers of handlers that are being made, by key.
        flights: values that are being computed, by key.
        turns: the same in threads.
    """

    __slots__ = ("answers", "backend", "flights", "turns")

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.answers: dict[str, asyncio.Future[Any]] = {}
        self.flights: dict[str, asyncio.Future[bytes]] = {}
        self.turns: dict[str, PendingComputation] = {}

    def abandon_computation_of_key(self, key: str) -> None:
        """Forget the computation of a key in progress, which began before its deletion."""
        self.flights.pop(key, None)
        if (turn := self.turns.get(key)) is not None:
            turn.is_current = False

    def abandon_all_computations(self) -> None:
        """Forget the computations in progress, which began before an invalidation."""
        # The flights go on, since their callers want a value; `_read_or_compute_entry` finds that
        # its flight is gone and stores nothing, and the next caller starts a flight that sees the
        # change.
        self.flights.clear()
        self.answers.clear()

    def clear_memory(self) -> None:
        """Remove every value, if they are in memory."""
        self.abandon_all_computations()
        if not self.backend.waits:
            self.backend.clear_entries()


class Cache:
    """One cache; made by `get_cache`.

    Attributes:
        alias: its name in the settings.
        sync: the same methods for plain functions, without `await`.
    """

    def __init__(self, alias: str, find_state: Callable[[str, Runtime | None], CacheState]) -> None:
        self.alias = alias
        self.sync = SyncCache(self)
        self._find_state = find_state

    @property
    def state(self) -> CacheState:
        """What it keeps for the application that the running code belongs to.

        Raises:
            RuntimeError: outside of any, while applications of different names run.
        """
        return self.get_state(current_application())

    def get_state(self, app: Runtime | None) -> CacheState:
        """Return what it keeps for an application; None is a script without one."""
        return self._find_state(self.alias, app)

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` if there is none."""
        value = decode_value((await self.state.backend.aread_entry(key, ()))[0])
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
        data, tags = encode_value(key, value), validate_and_dedupe_tags(tags)
        await self.state.backend.awrite_entry(key, data, check_ttl(ttl), tags)

    async def delete(self, key: str) -> bool:
        """Remove a value; return True if there was one."""
        state = self.state
        # a computation in progress then stores nothing; Redis has tokens of tags only, and would
        # take its value
        state.abandon_computation_of_key(key)
        return await state.backend.adelete_entry(key)

    async def get_or_set(
        self, key: str, make: Callable[[], Awaitable[Any]], *, ttl: float, tags: Sequence[str] = ()
    ) -> Any:
        """Return the value of a key; if there is none, compute it once for all concurrent callers.

        The computation goes on if a caller is cancelled, and every caller gets its exception.

        Args:
            make: an async function without parameters.

        Raises:
            TypeError, ValueError: as `set`.
        """
        ttl, tags = check_ttl(ttl), validate_and_dedupe_tags(tags)
        state = self.state
        # None is a valid number (Redis was away at the read), so MISS marks that nothing was read
        # yet
        number: Any = MISS
        # a hit in memory costs no task; other backends are read inside of the flight, so that many
        # callers of one key send one command
        if not state.backend.waits:
            found, number = state.backend.read_entry(key, tags)
            if (value := decode_value(found)) is not MISS:
                return value
        flight = state.flights.get(key)
        # to await a future of another loop is a RuntimeError, and that loop may be closed already
        if flight is None or flight.get_loop() is not asyncio.get_running_loop():
            made = _read_or_compute_entry(state, key, make, ttl, tags, number)
            flight = asyncio.ensure_future(made)
            state.flights[key] = flight
            flight.add_done_callback(lambda done: _remove_finished_computation(state, key, done))
        return decode_value(await asyncio.shield(flight))

    async def invalidate(self, *tags: str) -> bool:
        """Remove every value with one of the tags.

        Returns:
            False if Redis is away: its values are then stale until it hears of it, which this
            process tells it before it reads again.
        """
        state = self.state
        state.abandon_all_computations()
        return await state.backend.ainvalidate_tags(validate_and_dedupe_tags(tags))

    async def clear(self) -> bool:
        """Remove every value of this cache; as `invalidate`."""
        state = self.state
        state.abandon_all_computations()
        return await state.backend.aclear_entries()


async def _read_or_compute_entry(
    state: CacheState,
    key: str,
    make: Callable[[], Awaitable[Any]],
    ttl: float,
    tags: Sequence[str],
    read_version: Any,
) -> bytes:
    # the task that `get_or_set` made of this coroutine, the object in `state.flights`
    flight = asyncio.current_task()
    if read_version is MISS:
        found, read_version = await state.backend.aread_entry(key, tags)
        if found is not None and decode_value(found) is not MISS:
            return found
    value = encode_value(key, await make())
    if state.flights.get(key) is flight:  # else it was deleted or invalidated meanwhile
        await state.backend.awrite_entry(key, value, ttl, tags, read_version)
        if state.flights.get(key) is not flight:  # the deletion may have come before the value
            await state.backend.adelete_entry(key)
    return value


def _remove_finished_computation(
    state: CacheState, key: str, flight: asyncio.Future[bytes]
) -> None:
    # after an invalidation the entry may be the flight of a later caller
    if state.flights.get(key) is flight:
        state.flights.pop(key, None)  # a thread may have deleted the key meanwhile
    if not flight.cancelled():
        flight.exception()  # every caller may be gone: nothing is left to report it to


class SyncCache:
    """A cache for plain functions, which run in worker threads."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        # for the turns and their users; never held while a value is computed, which may take
        # seconds
        self._guard = threading.Lock()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` if there is none."""
        value = decode_value(self._cache.state.backend.read_entry(key, ())[0])
        return default if value is MISS else value

    def set(self, key: str, value: Any, *, ttl: float, tags: Sequence[str] = ()) -> None:
        """Keep a value for a time; see `Cache.set`."""
        backend = self._cache.state.backend
        tags = validate_and_dedupe_tags(tags)
        backend.write_entry(key, encode_value(key, value), check_ttl(ttl), tags)

    def delete(self, key: str) -> bool:
        """Remove a value; return True if there was one."""
        state = self._cache.state
        state.abandon_computation_of_key(key)
        return state.backend.delete_entry(key)

    def get_or_set(
        self, key: str, make: Callable[[], Any], *, ttl: float, tags: Sequence[str] = ()
    ) -> Any:
        """Return the value of a key; if there is none, compute it in one thread for all that wait.

        All of them get its exception.
        """
        ttl, tags = check_ttl(ttl), validate_and_dedupe_tags(tags)
        state = self._cache.state
        found, _ = state.backend.read_entry(key, tags)
        if (value := decode_value(found)) is not MISS:
            return value
        turn = self._join_computation(state, key)
        try:
            with turn.lock:
                # joined before the computation failed: to compute again here would call a failing
                # function once for each thread that waits, one after the other
                if turn.error is not None:
                    raise turn.error
                turn.is_current = True
                # the thread that had the lock before has stored the value meanwhile
                found, number = state.backend.read_entry(key, tags)
                if (value := decode_value(found)) is MISS:
                    made = encode_value(key, self._compute_value(state, key, make))
                    if turn.is_current:
                        state.backend.write_entry(key, made, ttl, tags, number)
                        if not turn.is_current:  # the deletion may have come before the value
                            state.backend.delete_entry(key)
                    value = decode_value(made)
            return value
        finally:
            self._leave_computation(state, key, turn)

    def invalidate(self, *tags: str) -> bool:
        """Remove every value with one of the tags; see `Cache.invalidate`."""
        state = self._cache.state
        state.abandon_all_computations()
        return state.backend.invalidate_tags(validate_and_dedupe_tags(tags))

    def clear(self) -> bool:
        """Remove every value of this cache; see `Cache.clear`."""
        state = self._cache.state
        state.abandon_all_computations()
        return state.backend.clear_entries()

    def _join_computation(self, state: CacheState, key: str) -> PendingComputation:
        with self._guard:
            turn = state.turns.setdefault(key, PendingComputation())
            turn.users += 1
            return turn

    def _leave_computation(self, state: CacheState, key: str, turn: PendingComputation) -> None:
        with self._guard:
            turn.users -= 1
            # after a failure a later turn may have the key
            if not turn.users and state.turns.get(key) is turn:
                del state.turns[key]

    def _compute_value(self, state: CacheState, key: str, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except BaseException as error:
            with self._guard:  # later threads begin a turn of their own
                turn = state.turns.pop(key)
                turn.error = error
            raise


def encode_value(key: str, value: Any) -> bytes:
    """Return a value as JSON."""
    require_json_round_trip(value, f"The value of cache key {key[:80]!r}")
    return dumps(value)


def decode_value(stored: bytes | None) -> Any:
    """Return the value, or MISS for nothing and for anything that is not JSON."""
    if stored is None:
        return MISS
    try:
        return loads(stored)
    except BadRequest:
        return MISS


def check_ttl(ttl: float) -> float:
    """Refuse a time that is not one."""
    # NaN fails both comparisons
    if not (isinstance(cast("object", ttl), (int, float)) and 0 < ttl < math.inf):
        raise ValueError(f"ttl must be a number of seconds above 0, got {ttl!r}")
    return ttl


def validate_and_dedupe_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return each tag once; raise TypeError for anything but a list of names."""
    # a text is a sequence of texts: "books" would be the tags b, o, k and s
    if isinstance(tags, str):
        raise TypeError(f"tags must be a list of names, got the text {tags!r}")
    # NUL begins the name of the tag that every entry in Redis has
    if any(not tag or "\0" in tag for tag in tags):
        raise ValueError(f"A tag must be a name without NUL, got {list(tags)!r}")
    return tuple(dict.fromkeys(tags))
