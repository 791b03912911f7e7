"""Generator dependencies: entered for a request and exited when it is over.

The part after `yield` runs once the response is sent, in reverse order of entry. If the handler
fails, the exception is thrown in at the `yield` first, so that a transaction can roll back.

Example, a dependency and what becomes of it in a request whose handler raises:

    async def in_transaction():
        async with transaction():
            yield

1. `enter_async_generator` runs it to its `yield`: BEGIN is sent, and `exit_generator` is
   registered.
2. The handler raises `NotFound`.
3. `run_exit_callbacks` calls `exit_generator(NotFound)`, which throws it in at the `yield`:
   ROLLBACK is sent, and the exception comes out again, as the outcome of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextvars import ContextVar, Token, copy_context
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from treefold_http._wire.aliases import AnyCallable
from treefold_logging import request_id

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime
    from treefold_http._runtime.threads import WorkerThreads

ExitCallback: TypeAlias = Callable[[BaseException | None], Awaitable[None]]


class Owner(Protocol):
    """The owner of generator dependencies: a connection, or a context outside requests."""

    app: Runtime

    def on_exit(self, leave: ExitCallback) -> None:
        """Register an exit callback."""
        ...


async def enter_async_generator(generator: AsyncGenerator[Any, None], owner: Owner) -> Any:
    """Run an async generator to its `yield` and return the yielded value."""
    try:
        value = await anext(generator)
    except StopAsyncIteration:
        raise _make_no_yield_error(generator) from None

    async def exit_generator(error: BaseException | None) -> None:
        try:
            if error is None:
                await anext(generator)
            else:
                await generator.athrow(error)
        except StopAsyncIteration:
            return
        await generator.aclose()
        raise _make_second_yield_error(generator)

    owner.on_exit(exit_generator)
    return value


async def enter_sync_generator(generator: Generator[Any, None, None], owner: Owner) -> Any:
    """Run a plain generator to its `yield`, in a worker thread; return the yielded value."""
    context = _StepContext(owner.app.threads)
    done = object()

    def advance_generator(error: BaseException | None) -> Any:
        try:
            return next(generator) if error is None else generator.throw(error)
        except StopIteration:
            return done

    value = await context.run_step_in_thread(advance_generator, None)
    if value is done:
        raise _make_no_yield_error(generator)

    async def exit_generator(error: BaseException | None) -> None:
        # a second `yield` would leave the generator open until it is collected
        if await context.run_step_in_thread(advance_generator, error) is not done:
            generator.close()
            raise _make_second_yield_error(generator)

    owner.on_exit(exit_generator)
    return value


class _StepContext:
    """One context for all steps of a plain generator, whatever threads they run in.

    A context variable that a step sets, such as that of a transaction, is also set in the request,
    as with an async generator; one that a step resets is reset there too.
    """

    def __init__(self, threads: WorkerThreads) -> None:
        self._threads = threads
        self._context = copy_context()
        self._tokens: dict[ContextVar[Any], Token[Any]] = {}

    async def run_step_in_thread(self, step: AnyCallable, *args: Any) -> Any:
        """Run one step in a worker thread."""
        before = dict(self._context.items())
        try:
            return await self._threads.run(self._context.run, step, *args)
        finally:
            self._copy_context_changes_to_caller(before)

    def _copy_context_changes_to_caller(self, before: dict[ContextVar[Any], Any]) -> None:
        missing = object()
        for variable, value in self._context.items():
            if before.get(variable, missing) is not value:
                token = variable.set(value)
                self._tokens.setdefault(variable, token)
        for variable in [v for v in self._tokens if v not in self._context]:
            variable.reset(self._tokens.pop(variable))


def is_outer_cancellation(error: BaseException, connection_id: str | None = None) -> bool:
    """Return True for an exception that must propagate: cancellation of the task, or its close.

    A `CancelledError` or `GeneratorExit` that a handler raised by itself is a failure like any
    other (R-21). A task that is closed from outside gets its `GeneratorExit` in another context.

    Args:
        connection_id: the id of the connection, the very object that its context variable holds;
            without one every `GeneratorExit` is taken for a close.
    """
    if isinstance(error, GeneratorExit):
        return connection_id is None or request_id.get() is not connection_id
    task = asyncio.current_task() if isinstance(error, asyncio.CancelledError) else None
    return task is not None and task.cancelling() > 0


async def run_exit_callbacks(
    exit_callbacks: list[ExitCallback], error: BaseException | None
) -> BaseException | None:
    """Run the exit callbacks, last registered first; return the resulting exception.

    A callback that raises replaces the exception for the ones registered before it; one that
    swallows the exception does not make a failed request succeed.
    """
    for leave in reversed(exit_callbacks):
        try:
            await leave(error)
        except BaseException as raised:  # it becomes the outcome of the request
            error = raised
    return error


def _make_no_yield_error(generator: Any) -> RuntimeError:
    return RuntimeError(f"Dependency {generator.__qualname__}() did not yield; yield one value")


def _make_second_yield_error(generator: Any) -> RuntimeError:
    return RuntimeError(f"Dependency {generator.__qualname__}() yielded twice; yield one value")
