"""Dependencies that clean up: generators entered for a request and left when it is over.

The part after `yield` runs once the answer is sent, in reverse order of entry. When the handler
fails, the exception is thrown in at the `yield` first, so that a transaction can roll back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from treefold_http._request import Request

Leave: TypeAlias = Callable[[BaseException | None], Awaitable[None]]


async def enter(generator: AsyncGenerator[Any, None], request: Request) -> Any:
    """Run an async generator to its `yield` and give what it yields."""
    try:
        value = await anext(generator)
    except StopAsyncIteration:
        raise _no_yield(generator) from None

    async def leave(error: BaseException | None) -> None:
        try:
            if error is None:
                await anext(generator)
            else:
                await generator.athrow(error)
        except StopAsyncIteration:
            return
        await generator.aclose()
        raise _second_yield(generator)

    request.on_leave(leave)
    return value


async def enter_plain(generator: Generator[Any, None, None], request: Request) -> Any:
    """Run a plain generator to its `yield`, in a worker thread, and give what it yields."""
    run = request.app.threads.run
    done = object()

    def advance(error: BaseException | None) -> Any:
        try:
            return next(generator) if error is None else generator.throw(error)
        except StopIteration:
            return done

    value = await run(advance, None)
    if value is done:
        raise _no_yield(generator)

    async def leave(error: BaseException | None) -> None:
        if await run(advance, error) is not done:
            generator.close()
            raise _second_yield(generator)

    request.on_leave(leave)
    return value


def must_go_on(error: BaseException) -> bool:
    """Whether an exception belongs to whoever runs the task: a cancellation that was asked for.

    A `CancelledError` that a handler raised by itself is a failure like any other (R-21).
    """
    if isinstance(error, GeneratorExit):
        return True
    task = asyncio.current_task() if isinstance(error, asyncio.CancelledError) else None
    return task is not None and task.cancelling() > 0


async def leave_all(leaves: list[Leave], error: BaseException | None) -> BaseException | None:
    """Leave every generator, last entered first; give the exception that stands at the end.

    A generator that raises replaces the exception for those entered before it; one that swallows
    it does not make a failed request succeed.
    """
    for leave in reversed(leaves):
        try:
            await leave(error)
        except BaseException as raised:  # it becomes the outcome of the request
            error = raised
    return error


def _no_yield(generator: Any) -> RuntimeError:
    return RuntimeError(f"Dependency {generator.__qualname__}() did not yield; yield one value")


def _second_yield(generator: Any) -> RuntimeError:
    return RuntimeError(f"Dependency {generator.__qualname__}() yielded twice; yield one value")
