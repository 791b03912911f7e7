"""The time of a statement on SQLite, which knows milliseconds only and has a time for each row.

Each statement begins by resetting the clock of its connection; every `Now()` in the statement reads
the same time from there.
"""

from __future__ import annotations

import datetime as dt
import sqlite3


class StatementClock:
    """The time of the statement that runs, taken when it is first asked for."""

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.text = ""

    def now(self) -> str:
        """Return the time as columns hold it."""
        if not self.text:
            # columns hold fixed width: isoformat() alone leaves out microseconds that are 0
            self.text = dt.datetime.now(dt.UTC).isoformat(" ", "microseconds")
        return self.text


class Connection(sqlite3.Connection):
    """A connection with a clock; reset it before each statement with `clock.text = ""`.

    Attributes:
        is_interruptible: False while an operation runs in a transaction, whose end must be reached.
            For other threads, while a statement runs: since SQLite 3.53 `in_transaction` waits for
            its end, and no thread of the process runs meanwhile.
    """

    clock: StatementClock
    is_interruptible = True


def register_clock(raw: Connection) -> None:
    """Register the function the dialect uses."""
    raw.clock = StatementClock()
    raw.create_function("treefold_now", 0, raw.clock.now)
