"""One transaction or savepoint in progress: its connection, whose turn it is, and how it ends.

Nothing here opens one: that is `_transactions`. Names of savepoints are made here, never taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar, cast

from treefold_orm._connections import database_for
from treefold_orm._context import current
from treefold_orm._errors import TransactionClosed
from treefold_orm._pool import Pool
from treefold_orm._statement import Operation, Statement
from treefold_orm.drivers._base import Session

T = TypeVar("T")

LOCK_TIMEOUT = 10.0


class State(Enum):
    """Where a transaction is in its life."""

    NEW = "new"
    OPEN = "open"
    CLOSED = "closed"


class Transaction:
    """One transaction or savepoint in progress."""

    def __init__(
        self,
        alias: str,
        *,
        parent: Transaction | None,
        write: bool,
        isolation: str | None,
        rollback: bool,
    ) -> None:
        self.alias = alias
        self.parent = parent
        self.write = write
        self.isolation = isolation
        self.state = State.NEW
        self.rollback_only = rollback
        self.site = _creation_site()
        self.hooks: list[Callable[[], Any]] = []
        self.database = database_for(alias)
        self.session: Session = cast("Session", None)
        self.turn: Pool[str] = Pool(
            lambda: "turn", size=1, name="turn in this transaction", timeout=LOCK_TIMEOUT
        )
        root = self if parent is None else parent.root
        self.root = root
        self.savepoints = 0
        self.savepoint = "" if parent is None else root.next_savepoint()

    def next_savepoint(self) -> str:
        """A generated name; callers never name savepoints."""
        self.savepoints += 1
        return f"s{self.savepoints}"

    # -- statements -------------------------------------------------------------------------------

    def run(self, operation: Operation[T], *, write: bool, atomic: bool) -> T:
        """Run an operation in this transaction, blocking this thread until it is its turn."""
        turn = self.turn.take_now() or self.turn.take()
        try:
            self._check(write)
            return self.session.run(self._saved(operation) if atomic else operation)
        finally:
            self.turn.give(turn)

    async def arun(self, operation: Operation[T], *, write: bool, atomic: bool) -> T:
        """Run an operation in this transaction when it is its turn."""
        turn = self.turn.take_now() or await self.turn.atake()
        try:
            self._check(write)
            return await self.session.arun(self._saved(operation) if atomic else operation)
        finally:
            self.turn.give(turn)

    def _check(self, write: bool) -> None:
        if self.state is not State.OPEN:
            raise TransactionClosed(
                f"The transaction begun at {self.site} has ended: use transaction.detach() for "
                "work that outlives it"
            )
        context = current.get()
        if write and (not self.write or (context is not None and context.read_only)):
            from treefold_orm._errors import ReadOnlyViolation

            raise ReadOnlyViolation("This transaction is read-only: open it without read_only=True")

    def _saved(self, operation: Operation[T]) -> Operation[T]:
        name = self.root.next_savepoint()
        yield Statement("script", f"SAVEPOINT {name}")
        try:
            outcome = yield from operation
        except Exception:
            yield Statement("script", f"ROLLBACK TO SAVEPOINT {name}")
            yield Statement("script", f"RELEASE SAVEPOINT {name}")
            raise
        yield Statement("script", f"RELEASE SAVEPOINT {name}")
        return outcome

    # -- begin and end ----------------------------------------------------------------------------

    def begin_sql(self) -> str:
        """The statement that opens this transaction or savepoint."""
        if self.parent is not None:
            return f"SAVEPOINT {self.savepoint}"
        return self.database.begin(write=self.write, isolation=self.isolation)

    def end_sql(self, *, commit: bool) -> list[str]:
        """The statements that end it."""
        if self.parent is None:
            return ["COMMIT" if commit else "ROLLBACK"]
        if commit:
            return [f"RELEASE SAVEPOINT {self.savepoint}"]
        return [f"ROLLBACK TO SAVEPOINT {self.savepoint}", f"RELEASE SAVEPOINT {self.savepoint}"]

    def finished(self, *, commit: bool) -> list[Callable[[], Any]]:
        """Close; return the hooks to call now: all of them after the outermost commit, none
        otherwise.
        """
        self.state = State.CLOSED
        if not commit:
            return []
        if self.parent is not None and self.parent is not self.database.outer:
            self.parent.hooks.extend(self.hooks)
            return []
        return self.hooks


def script(statements: list[str]) -> Operation[None]:
    """The operation of statements without arguments."""
    for sql in statements:
        yield Statement("script", sql)


def _creation_site() -> str:
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(
        ("treefold_orm", "contextlib")
    ):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
