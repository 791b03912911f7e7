"""Spans around statements, for tracing: opened by a factory that an application hands in.

Without a factory it costs one look at an empty list for each operation. A statement may run on a
thread or an event loop of the driver; its span is opened and closed in the context of the code
that asked for it, so that it finds its parent there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from contextvars import Context, copy_context
from typing import Any, Protocol, TypeVar

from treefold_orm._base.statement import ATOMIC, Operation

T = TypeVar("T")


class SpanFactory(Protocol):
    """Opens a span; `start_as_current_span` of an OpenTelemetry tracer fits."""

    def __call__(
        self, name: str, attributes: Mapping[str, str | int]
    ) -> AbstractContextManager[Any]: ...


factories: list[SpanFactory] = []
"""In use now; each statement has a span of each."""


def add_span_factory(factory: SpanFactory) -> Callable[[], None]:
    """Open a span around every statement from here on; return a function that stops it."""
    factories.append(factory)

    def remove_span_factory() -> None:
        if factory in factories:
            factories.remove(factory)

    return remove_span_factory


def trace_statements(operation: Operation[T], system: str) -> Operation[T]:
    """Return the same operation with a span around each of its statements.

    Args:
        operation: an operation that has not begun.
        system: the name of the database, which becomes the attribute `db.system.name`.
    """
    # a copy, since Context.run() refuses a context that is entered already, as the current one is
    return _trace_in_context(
        operation, "postgresql" if system == "postgres" else system, copy_context()
    )


def _trace_in_context(operation: Operation[T], system: str, context: Context) -> Operation[T]:
    outcome: Any
    try:
        statement = operation.send(None)
        while True:
            if statement is ATOMIC:
                statement = operation.send((yield statement))
                continue
            stack = ExitStack()
            context.run(_open_spans, stack, statement.sql, system)
            try:
                outcome = yield statement
            except Exception as error:  # noqa: BLE001, RUF100 - handed on to the operation as it is
                context.run(stack.__exit__, *sys.exc_info())
                statement = operation.throw(error)
            except BaseException:
                context.run(stack.__exit__, *sys.exc_info())
                operation.close()
                raise
            else:
                context.run(stack.close)
                statement = operation.send(outcome)
    except StopIteration as stop:
        return stop.value


def _open_spans(stack: ExitStack, sql: str, system: str) -> None:
    # raw SQL may begin with a parenthesis or on a line of its own
    name = sql.lstrip("( \n").partition(" ")[0].upper()
    attributes = {
        "db.system.name": system,
        "db.operation.name": name,
        "db.query.text": sql,  # placeholders only: arguments never become part of it
    }
    # a copy: the list may change while a factory runs
    for factory in tuple(factories):
        stack.enter_context(factory(name, attributes))
