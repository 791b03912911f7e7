"""Pool: a few things shared by threads and event loops alike, last in, first out.

SQLite connections are used by sync code on the calling thread and by async code through a worker,
so both halves wait in one line here. It knows nothing about databases.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from treefold_orm._base.errors import PoolTimeout

T = TypeVar("T")
W = TypeVar("W", bound="Waiter[Any]")


class Waiter(Generic[T]):
    """Someone in line: a blocked thread, or a task of some loop."""

    __slots__ = ("_event", "_future", "_lock", "item", "taken")

    def __init__(self, future: asyncio.Future[None] | None) -> None:
        self._future = future
        self._event = None if future is not None else threading.Event()
        self._lock = threading.Lock()
        self.item: T | None = None
        self.taken = False

    def offer_item(self, item: T) -> bool:
        """Hand over `item`; False if the waiter gave up in the meantime."""
        # offered on one thread and given up on another: one of them must win, or the item is lost
        with self._lock:
            if self.taken:
                return False
            self.taken = True
            self.item = item
        if self._event is not None:
            self._event.set()
        elif self._future is not None:
            try:
                self._future.get_loop().call_soon_threadsafe(_resolve_future, self._future)
            except RuntimeError:  # its loop is closed: no task will ever take the item
                return False
        return True

    def cancel_wait(self) -> bool:
        """Leave the line; False if an item was handed over just before."""
        with self._lock:
            if self.taken:
                return False
            self.taken = True
            return True

    def wait_for_item(self, timeout: float) -> bool:
        return self._event is not None and self._event.wait(timeout)


def _resolve_future(future: asyncio.Future[None]) -> None:
    # cancelled while this call waited in the queue of the loop
    if not future.done():
        future.set_result(None)


class Pool(Generic[T]):
    """At most `size` items made by `make`, handed out in LIFO order to waiters in FIFO order."""

    def __init__(self, make: Callable[[], T], *, size: int, name: str, timeout: float) -> None:
        self._make = make
        self._size = size
        self._name = name  # for the message of `PoolTimeout`
        self._timeout = timeout
        self._idle: list[T] = []
        self._items: list[T] = []  # idle or in use
        self._waiting: deque[Waiter[T]] = deque()
        self._lock = threading.Lock()
        self.line: Any = None  # the jobs of the loop that waited last

    @property
    def all_items(self) -> list[T]:
        """All items made so far."""
        return list(self._items)

    @property
    def idle_count(self) -> int:
        """The number of items that are not in use."""
        return len(self._idle)

    def take_item_nowait(self) -> T | None:
        """Take an item if one is free."""
        try:
            # no lock: list.pop() is one step, so that two threads never get the same item
            return self._idle.pop()
        except IndexError:
            return self._create_item()

    def take_item(self) -> T:
        """Take an item, blocking this thread until one is free; `PoolTimeout` after the waiting
        time.
        """
        item = self.take_item_nowait()
        if item is not None:
            return item
        waiter: Waiter[T] = Waiter(None)
        self.enqueue_waiter(waiter)
        # the second half: an item was handed over after the time was up, before the line was left
        if waiter.wait_for_item(self._timeout) or not waiter.cancel_wait():
            return self._get_waiter_item(waiter)
        raise self.build_timeout_error()

    async def atake_item(self) -> T:
        """Take an item, suspending this task until one is free; `PoolTimeout` after the waiting
        time.
        """
        item = self.take_item_nowait()
        if item is not None:
            return item
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter: Waiter[T] = Waiter(future)
        self.enqueue_waiter(waiter)
        try:
            async with asyncio.timeout(self._timeout):
                await future
        except TimeoutError:
            # else an item was handed over at the last moment, and is used
            if waiter.cancel_wait():
                raise self.build_timeout_error() from None
        except BaseException:
            # cancelled with an item in hand, which no other caller would ever get
            if not waiter.cancel_wait():
                self.return_item(self._get_waiter_item(waiter))
            raise
        return self._get_waiter_item(waiter)

    def return_item(self, item: T) -> None:
        """Return an item to the pool."""
        # first the item, then the look at the line; a waiter does both in the reverse order, so
        # that one of the two always sees the other
        self._idle.append(item)
        if self._waiting:
            self._serve_waiters()

    def pop_next_waiter(self, kind: type[W]) -> W | None:
        """Take the waiter at the head of the line if it is of this kind; it gets no item."""
        with self._lock:
            # the head alone: a waiter of another kind there must not be overtaken
            while self._waiting and isinstance(self._waiting[0], kind):
                waiter = self._waiting.popleft()
                if waiter.cancel_wait():
                    return cast("W", waiter)
        return None

    def _create_item(self) -> T | None:
        # without the lock first: a full pool, the usual case, then costs one comparison
        if len(self._items) >= self._size:
            return None
        with self._lock:
            if len(self._items) >= self._size:
                return None
            item = self._make()
            self._items.append(item)
            return item

    def enqueue_waiter(self, waiter: Waiter[T]) -> None:
        """Add a waiter at the end of the line."""
        with self._lock:
            self._waiting.append(waiter)
        self._serve_waiters()  # an item may have come back before the place in line was taken

    def _serve_waiters(self) -> None:
        with self._lock:
            while self._waiting and self._idle:
                waiter = self._waiting.popleft()
                item = self._idle.pop()
                if not waiter.offer_item(item):
                    self._idle.append(item)

    def _get_waiter_item(self, waiter: Waiter[T]) -> T:
        item: Any = waiter.item
        return item

    def build_timeout_error(self) -> PoolTimeout:
        """The error for a waiting time that has passed."""
        return PoolTimeout(
            f"No {self._name} became free within {self._timeout:g} s: raise pool_size or "
            "shorten transactions"
        )
