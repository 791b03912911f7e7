"""The two runners: every operation of this package passes `run` or `arun`.

They find the transaction or the database it belongs to, and keep blocking calls off event-loop
threads.
"""

from __future__ import annotations

from typing import TypeVar

from treefold_orm._base import interpreter
from treefold_orm._base.errors import SyncCallInAsync
from treefold_orm._base.statement import CoroutineOf, Operation
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.context import current
from treefold_orm._runtime.observe import record_statements
from treefold_orm._runtime.spans import factories, trace_statements

T = TypeVar("T")


def has_running_loop() -> bool:
    """Return True if this thread runs an event loop."""
    return interpreter.running_loop() is not None


def require_blocking_allowed(async_name: str) -> None:
    """Raise `SyncCallInAsync`, naming the async twin, if this thread runs an event loop."""
    if interpreter.running_loop() is not None:
        context = current.get()
        if context is None or not context.blocking:
            raise SyncCallInAsync(f"This call would block the event loop: use {async_name}")


def run(alias: str, operation: Operation[T], async_name: str, *, write: bool = False) -> T:
    """Run an operation, blocking this thread; `async_name` names the method for async code."""
    if interpreter.running_loop() is not None:
        require_blocking_allowed(async_name)
    if factories:
        operation = trace_statements(operation, database_for(alias).name)
    context = current.get()
    if context is None:
        return database_for(alias).run(operation, write=write, read_only=False)
    if context.recorder is not None:
        operation = record_statements(operation, context.recorder)
    transaction = context.transactions.get(alias)
    if transaction is not None:
        return transaction.run(operation, write=write, read_only=context.read_only)
    return database_for(alias).run(operation, write=write, read_only=context.read_only)


def arun(alias: str, operation: Operation[T], *, write: bool = False) -> CoroutineOf[T]:
    """Run an operation; return an awaitable."""
    if factories:
        operation = trace_statements(operation, database_for(alias).name)
    context = current.get()
    if context is None:
        return database_for(alias).arun(operation, write=write, read_only=False)
    if context.recorder is not None:
        operation = record_statements(operation, context.recorder)
    transaction = context.transactions.get(alias)
    if transaction is not None:
        return transaction.arun(operation, write=write, read_only=context.read_only)
    return database_for(alias).arun(operation, write=write, read_only=context.read_only)
