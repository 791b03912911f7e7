"""Limits of waiting (PostgreSQL): steps that lock a table against its readers or writers wait for
the lock a short time only, and hold it for a limited one.

A statement that waits for such a lock makes all later ones wait behind it, so it gives up, and the
whole transaction begins again after a pause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from treefold_migrations._plan.step import Step
from treefold_migrations._records.effects import Flow, fetch_rows


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a locking step waits (`lock`) and runs (`statement`, 0 for no limit), and how
    often its transaction is tried.
    """

    lock: float = 2.0
    statement: float = 60.0
    attempts: int = 12

    def pause(self, attempt: int) -> float:
        """Seconds before the next attempt, which grow from half a second to ten."""
        return min(0.5 * 1.6**attempt, 10.0)


_OWN = re.compile(r"\s*(SET|RESET)\b.*_timeout\b", re.IGNORECASE)


class Timeouts:
    """The settings of one transaction (`local`) or of a session, changed where a step needs it.

    A transaction keeps its locks to its end, and so the limits of its first blocking step. Limits
    that an author sets by SQL stay as they are.
    """

    def __init__(self, limits: Limits, *, active: bool, local: bool) -> None:
        self._limits = limits
        self._active = active
        self._local = "true" if local else "false"
        self._blocking: bool | None = None
        self._own = False

    def set_limits(self, step: Step | None) -> Flow[None]:
        """Set the limits that a step runs under; `None` is a call of Python."""
        blocking = step is not None and step.blocks_writers
        if self._local == "true":
            blocking = blocking or bool(self._blocking)
        set_by_author = step is not None and _OWN.match(step.sql) is not None
        # the statement itself still runs under the limits before it
        own, self._own = self._own, self._own or set_by_author
        if not self._active or own or blocking == self._blocking:
            return
        self._blocking = blocking
        # 0 is no limit: CREATE INDEX CONCURRENTLY waits for old transactions, and blocks no writer
        lock, statement = (self._limits.lock, self._limits.statement) if blocking else (0, 0)
        yield from fetch_rows(
            f"SELECT set_config('lock_timeout', '{int(lock * 1000)}', {self._local}), "
            f"set_config('statement_timeout', '{int(statement * 1000)}', {self._local})"
        )
