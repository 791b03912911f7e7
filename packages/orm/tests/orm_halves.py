"""One test body for both halves: an async function that the sync half runs without a loop.

`await h(post).save()` awaits `post.asave()` in the async half; in the sync half it calls
`post.save()`, in a thread that runs no loop. `async with h.transaction():` opens either kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

from treefold_orm import transaction

T = TypeVar("T")


class Handle:
    """What a body sees of its half."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, target: Any) -> Twin:
        return Twin(self.name, target)

    async def rows(self, query: Any) -> list[Any]:
        """All rows of a query."""
        return await query if self.name == "async" else list(query)

    def transaction(self, using: str = "default", **options: Any) -> Block:
        """A transaction of this half."""
        return Block(self.name, transaction(using, **options))

    def decorated(self, body: Callable[[], Awaitable[T]], **options: Any) -> Awaitable[T]:
        """Run `body` under the decorator of this half."""
        if self.name == "async":

            @transaction(**options)
            async def work() -> T:
                return await body()

            return work()

        @transaction(**options)
        def blocking() -> T:
            return finished(body())

        async def call() -> T:
            return blocking()

        return call()


class Twin:
    """Calls the methods of one object in one half."""

    def __init__(self, half: str, target: Any) -> None:
        self._half = half
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if self._half == "async":
            return getattr(self._target, f"a{name}")

        async def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(self._target, name)(*args, **kwargs)

        return call


class Block:
    """A transaction as `async with` in either half."""

    def __init__(self, half: str, block: Any) -> None:
        self._half = half
        self._block = block

    async def __aenter__(self) -> Any:
        if self._half == "async":
            return await self._block.__aenter__()
        return self._block.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._half == "async":
            await self._block.__aexit__(kind, error, trace)
        else:
            self._block.__exit__(kind, error, trace)


def finished(body: Awaitable[T]) -> T:
    """The result of a body that never suspends."""
    running: Any = body.__await__()
    try:
        running.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("A body of the sync half has awaited something of a loop")


async def in_half(half: Any, body: Callable[[Handle], Coroutine[Any, Any, T]]) -> T:
    """Run a body in one half."""
    handle = Handle(half.name)
    if half.name == "async":
        return await body(handle)
    return await asyncio.to_thread(lambda: finished(body(handle)))
