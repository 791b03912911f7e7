"""Watching queries: what was sent, how long it took, and what was sent again and again.

Off, it costs nothing. On (for a request in development, or in a test), each statement becomes a
`QueryEvent` without its values, and the same statement from the same line is counted as a likely
N+1.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from treefold_orm._base.records import Record, record
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._runtime.context import changed

T = TypeVar("T")

REPEATS = 5


@record
class QueryEvent(Record):
    """One statement: its SQL, the number of its arguments, seconds taken, and the line that asked
    for it.
    """

    sql: str
    arguments: int
    duration: float
    source: str


class Recorder:
    """The statements of one block, in order.

    `on_repeat` is called once for each statement that one line sends `repeats` times.
    """

    def __init__(
        self, *, repeats: int = REPEATS, on_repeat: Callable[[QueryEvent, int], None] | None = None
    ) -> None:
        self.events: list[QueryEvent] = []
        self._seen: Counter[tuple[str, str]] = Counter()
        self._repeats = repeats
        self._on_repeat = on_repeat

    def __len__(self) -> int:
        return len(self.events)

    @property
    def duration(self) -> float:
        """Seconds spent in all statements together."""
        return sum(event.duration for event in self.events)

    def repeated(self) -> dict[tuple[str, str], int]:
        """Statements and lines that were seen at least `repeats` times: likely N+1 queries."""
        return {key: count for key, count in self._seen.items() if count >= self._repeats}

    def add(self, statement: Statement, duration: float, source: str) -> None:
        """Record one statement."""
        event = QueryEvent(statement.sql, len(statement.args), duration, source)
        self.events.append(event)
        self._seen[statement.sql, source] += 1
        if self._on_repeat is not None and self._seen[statement.sql, source] == self._repeats:
            self._on_repeat(event, self._repeats)


@contextmanager
def record_queries(
    *, repeats: int = REPEATS, on_repeat: Callable[[QueryEvent, int], None] | None = None
) -> Generator[Recorder]:
    """Record every statement of this block, in this task or thread and those it starts."""
    recorder = Recorder(repeats=repeats, on_repeat=on_repeat)
    with changed(recorder=recorder):
        yield recorder


def watched(operation: Operation[T], recorder: Recorder) -> Operation[T]:
    """The same operation, with each of its statements recorded."""
    source = calling_line()
    return _timed(operation, recorder, source)


def _timed(operation: Operation[T], recorder: Recorder, source: str) -> Operation[T]:
    try:
        statement = operation.send(None)
        while True:
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


def calling_line() -> str:
    """Return `file:line` of the nearest frame outside of this package and the standard library's
    loop.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("treefold_orm", "asyncio", "contextlib")):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
