"""The room that all forms of a process take together, on disk (S-42) and in memory (S-143).

A client whose address is known has a share of it. Where there is no room, the slowest form that is
still arriving gives way to a faster one: its bytes are dropped, and its request is answered 503. A
form that has arrived never gives way, because its handler is at work.

Example: nine uploads send 30 MiB each and then a byte a second. The tenth finds 256 MiB taken; the
slowest of the nine is dropped, and the tenth gets its room.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from time import monotonic
from weakref import WeakSet

from treefold_http._wire.errors import ServiceUnavailable
from treefold_http._wire.limits import DEFAULT_LIMITS, Limits

WINDOW = 10.0
"""Seconds over which the speed of a form is measured; a younger one never gives way."""
AHEAD = 256 * 1024
"""Bytes of memory that a form reserves ahead at most: once more what it has, up to this."""

_forms: WeakSet[FormSpace] = WeakSet()
_lock = threading.RLock()  # re-entered by `__del__`, which may run at any allocation


class _ByteUsage:
    """The bytes that all forms have taken of one kind of room, as a whole and by client."""

    __slots__ = ("clients", "total")

    def __init__(self) -> None:
        self.total = 0
        self.clients: dict[str, int] = {}

    def add_bytes(self, client: str | None, size: int) -> None:
        self.total += size
        if client is not None:
            self.add_client_bytes(client, size)

    def add_client_bytes(self, client: str, size: int) -> None:
        # No call between reading and writing a number: `__del__` may change it during one.
        if client in self.clients:
            self.clients[client] += size
        else:
            self.clients[client] = size
        if not self.clients[client]:
            del self.clients[client]


_disk, _memory = _ByteUsage(), _ByteUsage()


class FormSpace:
    """The room of one form.

    Args:
        client: who sends it; None if the address may be that of a proxy, for no share.
        limits: of the form, and of all forms of the process.

    Attributes:
        disk, memory: its bytes; those in memory with what is reserved ahead of them.
        ahead: what is reserved and not used yet.
        is_complete: True once it has arrived.
        is_evicted: True once it has given way; reading it further raises.
        forget: drops the bytes of a form that gives way.
    """

    def __init__(self, client: str | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.disk = self.memory = self.ahead = 0
        self.is_complete = self.is_evicted = False
        self.forget: Callable[[], Awaitable[None]] | None = None
        self._client = client
        # A route may allow a form that is larger than the usual share.
        self._disk_share = max(limits.disk // 2, limits.total)
        self._memory_limit = max(limits.memory, limits.total)
        self._memory_share = max(limits.memory // 2, limits.total)
        self._disk_limit = limits.disk
        # the speed of the last window, and the beginning of this one with the bytes since
        self._started = self._since = monotonic()
        self._recent = 0
        self._speed = 0.0
        _forms.add(self)

    async def reserve_disk(self, byte_count: int) -> None:
        """Reserve bytes on disk.

        Raises:
            ServiceUnavailable: without room, or after this form has given way.
        """
        await self._reserve_evicting_slower_forms(
            byte_count, _disk, self._disk_limit, self._disk_share, kind="disk"
        )

    async def reserve_memory(self, byte_count: int) -> None:
        """Reserve bytes of text in memory.

        Raises:
            ServiceUnavailable: as `reserve_disk`.
        """
        if not self.try_reserve_memory(byte_count):
            await self._reserve_evicting_slower_forms(
                byte_count, _memory, self._memory_limit, self._memory_share, kind="memory"
            )

    def try_reserve_memory(self, byte_count: int) -> bool:
        """Reserve bytes of text in memory if they are free; without them no other form gives way.

        Raises:
            ServiceUnavailable: after this form has given way.
        """
        # without the lock: these bytes are counted already, and only this form uses them
        if byte_count <= self.ahead and not self.is_evicted:
            self.ahead -= byte_count
            return True
        client = self._client
        with _lock:
            self.require_not_evicted()
            needed, free = byte_count - self.ahead, self._memory_limit - _memory.total
            if client is not None:
                free = min(free, self._memory_share - _memory.clients.get(client, 0))
            if needed > free:
                return False
            ahead = self.memory if self.memory < AHEAD else AHEAD
            self.ahead = ahead if needed + ahead <= free else 0
            size = needed + self.ahead
            self._count_recent_bytes(size)
            _memory.add_bytes(client, size)
            self.memory += size
            return True

    def _count_recent_bytes(self, more: int) -> None:
        now = monotonic()
        if now - self._since >= WINDOW:
            self._speed = self._recent / (now - self._since)
            self._since, self._recent = now, 0
        self._recent += more

    def release_space(self, *, disk: int = 0, memory: int = 0) -> None:
        """Return room that is no longer used."""
        with _lock:
            disk, memory = min(disk, self.disk), min(memory, self.memory)
            self.disk -= disk
            self.memory -= memory
            _disk.add_bytes(self._client, -disk)
            _memory.add_bytes(self._client, -memory)

    def close(self) -> None:
        """Return everything; called at the end of the request."""
        if self.disk or self.memory:
            self.release_space(disk=self.disk, memory=self.memory)

    __del__ = close

    def require_not_evicted(self) -> None:
        """Refuse to go on with a form that has given way.

        Raises:
            ServiceUnavailable: if it has.
        """
        if self.is_evicted:
            message = "This form arrived too slowly, and others needed its room"
            raise _make_unavailable_error(message)

    async def _reserve_evicting_slower_forms(
        self, more: int, taken: _ByteUsage, limit: int, share: int, *, kind: str
    ) -> None:
        slow: list[FormSpace] = []
        with _lock:
            self.require_not_evicted()
            self._count_recent_bytes(more)
            if self._client is not None and taken.clients.get(self._client, 0) + more > share:
                raise _make_unavailable_error("Too many forms of this client at the same time")
            while taken.total + more > limit:
                if (slowest := self._find_slower_form(kind)) is None:
                    raise _make_unavailable_error("Too many uploads at the same time")
                slowest.is_evicted = True
                slowest.close()
                slow.append(slowest)
            taken.add_bytes(self._client, more)
            setattr(self, kind, getattr(self, kind) + more)
        # behind the lock, which no other thread could take during an await
        for form in slow:
            if form.forget is not None:
                await form.forget()

    def _find_slower_form(self, kind: str) -> FormSpace | None:
        now = monotonic()
        waiting = [
            form
            for form in _forms
            if form is not self
            and not (form.is_complete or form.is_evicted)
            and getattr(form, kind) > 0
            and now - form._started >= WINDOW
        ]
        slowest = min(waiting, key=lambda form: form.compute_bytes_per_second(now), default=None)
        if slowest and slowest.compute_bytes_per_second(now) < self.compute_bytes_per_second(now):
            return slowest
        return None

    def compute_bytes_per_second(self, now: float) -> float:
        """Return the bytes a second of the last `WINDOW`."""
        elapsed = now - self._since
        # the window before counts for the part of it that lies in the last ten seconds
        if elapsed < WINDOW and self._started < self._since:
            return (self._speed * (WINDOW - elapsed) + self._recent) / WINDOW
        # at least a second: the first bytes of a form would make it look endlessly fast
        return self._recent / max(elapsed, 1.0)


def _make_unavailable_error(reason: str) -> ServiceUnavailable:
    return ServiceUnavailable(f"{reason}; try again later", headers={"Retry-After": "10"})
