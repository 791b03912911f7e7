"""One transaction or savepoint in progress: its connection, whose turn it is, and how it ends.

`_runtime/transactions.py` opens them. Names of savepoints are made here, never taken.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar, cast

from treefold_orm._base.errors import (
    ConnectionFailed,
    ReadOnlyViolation,
    TransactionAborted,
    TransactionClosed,
    build_unanswered_commit_error,
)
from treefold_orm._base.interpreter import find_external_caller_location
from treefold_orm._base.journal import Journal, wrap_operation_with_journal
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._drivers.base import Database, Session
from treefold_orm._drivers.pool import Pool
from treefold_orm._runtime.connections import database_for

T = TypeVar("T")

LOCK_TIMEOUT = 10.0
"""Seconds that a statement waits for its turn before it raises `PoolTimeout`.

Without a limit, two tasks could wait for ever: a nested transaction keeps the turn until it ends,
and may itself be waiting for a task whose statement waits for the turn.
"""


class State(Enum):
    """Where a transaction is in its life."""

    NEW = "new"
    OPEN = "open"
    CLOSED = "closed"


# state    since                           a statement in it
# NEW      it was made, BEGIN on its way   TransactionClosed
# OPEN     BEGIN was answered              runs; TransactionAborted once it is `interrupted`, or
#                                          once the database has ended it
# CLOSED   the end of its block            TransactionClosed, also in a task that lives on
class Transaction:
    """One transaction or savepoint in progress.

    Attributes:
        parent: the transaction in which this one is a savepoint; None for the outermost.
        root: the outermost one, which numbers the savepoints of all.
        savepoint: its name in the database; empty for the outermost.
        savepoints: how many names this one has generated, as a root.
        write: False where writes are refused.
        isolation: the level that BEGIN asks for; None for the default of the database.
        rollback_only: True if its end rolls back in any case, as in tests.
        interrupted: True once a write was cancelled halfway: it can only be rolled back.
        in_doubt: True once its COMMIT was sent and not answered.
        journal: the instances that it has changed, for a rollback.
        hooks: what `on_commit` registered, in order.
        session: its connection, that of the parent for a savepoint; set before BEGIN is sent.
        turn: its holder may use the connection; a nested transaction holds that of its parent.
        site: the line of the application that opened it, for messages.
    """

    def __init__(
        self,
        alias: str,
        *,
        parent: Transaction | None,
        write: bool,
        isolation: str | None,
        rollback: bool,
        database: Database | None = None,
    ) -> None:
        self.alias = alias
        self.parent = parent
        self.write = write
        self.isolation = isolation
        self.state = State.NEW
        self.rollback_only = rollback
        self.interrupted = False
        self.in_doubt = False
        self.journal = Journal(None if parent is None else parent.journal)
        self.site = find_external_caller_location()
        self.hooks: list[Callable[[], Any]] = []
        self.database = database or database_for(alias)
        self.session: Session = cast("Session", None)
        # a pool of one thing is a lock that threads and tasks of any loop wait for in one line
        self.turn: Pool[str] = Pool(
            lambda: "turn", size=1, name="turn in this transaction", timeout=LOCK_TIMEOUT
        )
        root = self if parent is None else parent.root
        self.root = root
        self.savepoints = 0
        self.savepoint = "" if parent is None else root.generate_savepoint_name()

    def generate_savepoint_name(self) -> str:
        """A generated name; callers never name savepoints."""
        self.savepoints += 1
        return f"s{self.savepoints}"

    # -- statements -------------------------------------------------------------------------------

    def run(self, operation: Operation[T], *, write: bool, read_only: bool = False) -> T:
        """Run an operation in this transaction, blocking this thread until it is its turn."""
        turn = self.turn.take_item_nowait() or self.turn.take_item()
        try:
            self._check_may_run(write=write, read_only=read_only)
            return self.session.run(self._run_with_journal(operation, write))
        finally:
            self.turn.return_item(turn)

    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool = False) -> T:
        """Run an operation in this transaction when it is its turn."""
        turn = self.turn.take_item_nowait() or await self.turn.atake_item()
        try:
            self._check_may_run(write=write, read_only=read_only)
            return await self.session.arun(self._run_with_journal(operation, write))
        finally:
            self.turn.return_item(turn)

    def _check_may_run(self, *, write: bool, read_only: bool) -> None:
        self.check_open()
        if write and (read_only or not self.write):
            raise ReadOnlyViolation("This transaction is read-only: open it without read_only=True")

    def check_open(self) -> None:
        """Raise where the transaction has ended, by itself or by its database."""
        if self.state is not State.OPEN:
            raise TransactionClosed(
                f"The transaction begun at {self.site} has ended: use transaction.detach() for "
                "work that outlives it"
            )
        self._require_committable()

    def _require_committable(self) -> None:
        if self.interrupted:
            raise TransactionAborted(
                "A write of this transaction was cancelled, and it is not known how much of it was "
                "done: put what may be cancelled into a nested transaction() and catch that "
                "around it"
            )
        if self.session.lost_transaction:
            raise TransactionAborted(
                f"The database has ended the transaction begun at {self.site} after a failed or "
                "cancelled statement: run the whole block again"
            )

    def _run_with_journal(self, operation: Operation[T], write: bool) -> Operation[T]:
        journal = self.journal
        try:
            statement = journal.call_with_journal_active(operation.send, None)
        except StopIteration as stop:
            return stop.value
        journal.written = journal.written or write
        try:
            if statement is ATOMIC:
                return (yield from self._run_in_savepoint(operation))
            return (yield from wrap_operation_with_journal(operation, journal, statement))
        # cancelled: a write may have been executed all the same, and the journal cannot tell
        except GeneratorExit:
            self.interrupted = self.interrupted or write
            raise

    def _run_in_savepoint(self, operation: Operation[T]) -> Operation[T]:
        name = self.root.generate_savepoint_name()
        journal = Journal(self.journal)
        yield Statement("script", f"SAVEPOINT {name}")
        try:
            outcome = yield from wrap_operation_with_journal(
                operation, journal, in_own_transaction=True
            )
        # a generator that is being closed may not yield, so that no ROLLBACK TO can be sent
        except GeneratorExit:
            journal.roll_back_instances()
            raise
        except BaseException:
            journal.roll_back_instances()
            # ROLLBACK TO leaves the savepoint itself in place: without RELEASE they would pile up
            yield Statement("script", f"ROLLBACK TO SAVEPOINT {name}")
            yield Statement("script", f"RELEASE SAVEPOINT {name}")
            raise
        # before RELEASE: where that is not answered, the transaction puts it back
        journal.merge_into_parent()
        yield Statement("script", f"RELEASE SAVEPOINT {name}")
        return outcome

    # -- begin and end ----------------------------------------------------------------------------

    def begin_sql(self) -> str:
        """The statement that opens this transaction or savepoint."""
        if self.parent is not None:
            return f"SAVEPOINT {self.savepoint}"
        return self.database.begin_sql(write=self.write, isolation=self.isolation)

    def commit_or_roll_back(self, *, commit: bool) -> Operation[None]:
        """Return the operation that commits or rolls back this transaction.

        Raises:
            TransactionAborted: it could not be committed, because a statement in it had failed or
                was cancelled.
            ConnectionFailed: the connection broke; where COMMIT was sent, it may be committed.
        """
        outcome: Any = None
        if commit:
            self._require_committable()
        elif self.session.lost_transaction:
            return
        # RELEASE is no commit, and nothing reaches the server over a connection that is known to be
        # closed: in both cases the outcome is in no doubt
        sends = commit and self.parent is None and not self.session.is_closed
        try:
            for sql in self._end_sql(commit=commit):
                outcome = yield Statement("script", sql)
        except ConnectionFailed as error:
            self.in_doubt = self.in_doubt or sends
            failure = build_unanswered_commit_error(error) if sends else error
        except GeneratorExit:
            self.in_doubt = self.in_doubt or sends
            raise
        else:
            failure = None
        if failure is not None:
            raise failure
        # COMMIT of a transaction in which a statement failed is no error for PostgreSQL: only the
        # tag of its answer tells
        if commit and outcome == "ROLLBACK":
            raise TransactionAborted(
                "PostgreSQL has rolled the transaction back instead of committing it: a statement "
                "in it had failed, and its error was caught inside; put what may fail into a "
                "nested transaction() and catch its error around that"
            )

    def _end_sql(self, *, commit: bool) -> list[str]:
        if self.parent is None:
            return ["COMMIT" if commit else "ROLLBACK"]
        if commit:
            return [f"RELEASE SAVEPOINT {self.savepoint}"]
        return [f"ROLLBACK TO SAVEPOINT {self.savepoint}", f"RELEASE SAVEPOINT {self.savepoint}"]

    def close_and_collect_hooks(self, *, commit: bool) -> list[Callable[[], Any]]:
        """Close; return the hooks to call now: all of them after the outermost commit, none
        otherwise.
        """
        self.state = State.CLOSED
        if not commit:
            self.journal.roll_back_instances()
            return []
        self.journal.merge_into_parent()
        # a sandbox never commits: to the application, its own outermost transaction is the whole
        if self.parent is not None and self.parent is not self.database.outer:
            self.parent.hooks.extend(self.hooks)
            return []
        return self.hooks

    def close_uncommitted(self) -> None:
        """Close the transaction; restore its instances unless it was committed."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self.journal.roll_back_instances(commit_unanswered=self.in_doubt)


def execute_statements(statements: list[str]) -> Operation[None]:
    """The operation of statements without arguments."""
    for sql in statements:
        yield Statement("script", sql)
