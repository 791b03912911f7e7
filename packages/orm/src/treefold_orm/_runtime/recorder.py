"""Recorder: the statements of one block, without their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from treefold_orm._base.records import Record, frozen_record
from treefold_orm._base.statement import Statement

REPEATS = 5
"""How often one line may run the same query in a recording before it counts as repeated."""


@frozen_record
class QueryEvent(Record):
    """One statement, without the values of its arguments.

    Attributes:
        sql: the SQL text.
        arguments: the number of its arguments.
        duration: seconds taken.
        source: the file and line that asked for it.
    """

    sql: str
    arguments: int
    duration: float
    source: str


class Recorder:
    """The statements of one block, in order.

    Args:
        repeats: the count from which a statement of one line is a repeated one.
        on_repeat: called once for each statement that one line sends `repeats` times.

    Attributes:
        events: a `QueryEvent` for each statement, in order; `len(recorder)` counts them.
        duration: seconds spent in all statements together.
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
