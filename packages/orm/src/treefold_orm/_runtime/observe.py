"""Watching queries: the statements sent, their durations, and repeated statements.

Off, it costs nothing. On (for a request in development, or in a test), each statement becomes a
`QueryEvent` without its values, and the same statement from the same line is counted as a likely
N+1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from treefold_orm._base.interpreter import find_external_caller_location
from treefold_orm._base.statement import ATOMIC, Operation
from treefold_orm._runtime.context import override_context
from treefold_orm._runtime.recorder import REPEATS, QueryEvent, Recorder

T = TypeVar("T")


@contextmanager
def record_queries(
    *, repeats: int = REPEATS, on_repeat: Callable[[QueryEvent, int], None] | None = None
) -> Generator[Recorder]:
    """Record every statement of this block, in this task or thread and those it starts."""
    recorder = Recorder(repeats=repeats, on_repeat=on_repeat)
    with override_context(recorder=recorder):
        yield recorder


def record_statements(operation: Operation[T], recorder: Recorder) -> Operation[T]:
    """The same operation, with each of its statements recorded."""
    # here and not in the generator, whose first step may run on a worker or on the loop of the
    # driver, where no frame of the caller is left
    source = find_external_caller_location()
    return _record_each_statement(operation, recorder, source)


def _record_each_statement(
    operation: Operation[T], recorder: Recorder, source: str
) -> Operation[T]:
    try:
        statement = operation.send(None)
        while True:
            # a request to the runner, which sends no SQL for it
            if statement is ATOMIC:
                statement = operation.send((yield statement))
                continue
            start = time.perf_counter()
            try:
                outcome = yield statement
            except Exception as error:  # noqa: BLE001, RUF100 - handed on to the operation as it is
                recorder.add(statement, time.perf_counter() - start, source)
                statement = operation.throw(error)
            else:
                recorder.add(statement, time.perf_counter() - start, source)
                statement = operation.send(outcome)
    except StopIteration as stop:
        return stop.value
