"""The two runners: every operation of this package passes `run` or `arun`.

They find the transaction or the database it belongs to, and keep blocking calls off event-loop
threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from treefold_orm._base.errors import SyncCallInAsync
from treefold_orm._base.statement import Operation
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.context import current
from treefold_orm._runtime.observe import watched
from treefold_orm._runtime.spans import factories, traced

T = TypeVar("T")


def _look_for_loop() -> Any:
    global _running_loop  # noqa: PLW0603, RUF100 - from here on asyncio itself is asked
    if "asyncio.runners" not in sys.modules:
        return None  # there is no loop before asyncio is whole, and it takes long to import
    _running_loop = sys.modules["asyncio.events"]._get_running_loop
    return _running_loop()


_running_loop: Callable[[], Any] = _look_for_loop


def in_event_loop() -> bool:
    """Return True if this thread runs an event loop."""
    return _running_loop() is not None


def check_blocking(twin: str) -> None:
    """Raise `SyncCallInAsync`, naming the async twin, if this thread runs an event loop."""
    if _running_loop() is not None:
        context = current.get()
        if context is None or not context.blocking:
            raise SyncCallInAsync(f"This call would block the event loop: use {twin}")


def run(alias: str, operation: Operation[T], twin: str, *, write: bool = False) -> T:
    """Run an operation, blocking this thread; `twin` is what to call instead in async code."""
    if _running_loop() is not None:
        check_blocking(twin)
    if factories:
        operation = traced(operation, database_for(alias).name)
    context = current.get()
    if context is None:
        return database_for(alias).run(operation, write=write, read_only=False)
    if context.recorder is not None:
        operation = watched(operation, context.recorder)
    transaction = context.transactions.get(alias)
    if transaction is not None:
        return transaction.run(operation, write=write)
    return database_for(alias).run(operation, write=write, read_only=context.read_only)


def arun(alias: str, operation: Operation[T], *, write: bool = False) -> Coroutine[Any, Any, T]:
    """Run an operation; returns what to await."""
    if factories:
        operation = traced(operation, database_for(alias).name)
    context = current.get()
    if context is None:
        return database_for(alias).arun(operation, write=write, read_only=False)
    if context.recorder is not None:
        operation = watched(operation, context.recorder)
    transaction = context.transactions.get(alias)
    if transaction is not None:
        return transaction.arun(operation, write=write)
    return database_for(alias).arun(operation, write=write, read_only=context.read_only)
