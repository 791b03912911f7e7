"""Database and Session: the contract between operations and a database, in both halves.

`Database` stands for one alias; a `Session` is a connection held for the length of a transaction.
Drivers translate every foreign error into this package's own, without chaining: driver messages
quote stored values.
"""

from __future__ import annotations

import asyncio
import importlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, TypeVar

from treefold_orm._base.errors import ORMError, ReadOnlyViolation
from treefold_orm._base.statement import CoroutineOf, Operation, Statement
from treefold_orm._decode.plan import Plan, PlanCache
from treefold_orm._dialects.dialect import Dialect

T = TypeVar("T")

_BUILDERS = {
    "get": "plans.build_get_plan",
    "rows": "plans.build_rows_plan",
    "count": "plans.build_count_plan",
    "exists": "plans.build_exists_plan",
    "linked": "plans.build_many_to_many_plan",
    "parted": "plans.build_partitioned_plan",
    "aggregate": "aggregate_query.build_aggregate_plan",
    "insert": "writes.build_insert_plan",
    "unnest": "writes.build_unnest_insert_plan",
    "save": "writes.build_row_update_plan",
    "update": "writes.build_update_plan",
    "delete": "writes.build_delete_plan",
    "bulk update": "writes.build_bulk_update_plan",
}
"""The functions of the compiler that build plans, by what they are for; `linked` and `parted` are
rows of each value of a column. Their modules are imported with the first plan of each.
"""


class Session(ABC):
    """A connection that belongs to one transaction."""

    @property
    @abstractmethod
    def lost_transaction(self) -> bool:
        """True where the connection is open and its transaction has ended by itself."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """True where the connection is known to be closed, so that nothing reaches the server."""

    @abstractmethod
    def run(self, operation: Operation[T]) -> T:
        """Run an operation, blocking this thread."""

    @abstractmethod
    async def arun(self, operation: Operation[T]) -> T:
        """Run an operation."""

    @abstractmethod
    def fetch_chunks(
        self, sql: str, args: Sequence[object], *, size: int
    ) -> Iterator[Sequence[Any]]:
        """Yield chunks of rows from a cursor, blocking this thread."""

    @abstractmethod
    def create_cursor(self, sql: str, args: Sequence[object]) -> Cursor:
        """Return a cursor; the statement runs when it is first read."""


class Cursor(ABC):
    """The rows of one statement, read a chunk at a time.

    No generator: an event loop that ends closes all asynchronous generators at once, and one that
    another one reads cannot be closed.
    """

    @abstractmethod
    async def fetch_rows(self, size: int) -> Sequence[Any]:
        """Return the next rows, none at the end."""

    @abstractmethod
    async def close(self) -> None:
        """Close what would outlive the transaction."""

    def try_release_without_waiting(self) -> bool:
        """Close, end the transaction and return the connection, all without waiting; False where
        one has to wait for it.
        """
        return False


class Database(ABC):
    """One configured database.

    Attributes:
        name: the kind of database, "sqlite" or "postgres".
        alias: the name under which the application has configured it.
        dialect: how statements are written for it.
        plans: compiled statements; each database has its own, since instances know its alias.
        outer: the transaction that everything happens in while the database is in a sandbox.
        single: True if there is one connection, which no task may keep from the others.
    """

    name: str
    outer: Any = None
    single = False

    def __init__(self, alias: str, dialect: Dialect) -> None:
        self.alias = alias
        self.dialect = dialect
        self.plans = PlanCache()

    def find_plan(self, key: tuple[Any, ...], *parts: Any, **options: Any) -> Plan:
        """Return the plan of a key; without one, build it of the parts, and keep it.

        Args:
            key: a name in `_BUILDERS`, and all that plans of that kind differ by.
            parts, options: the arguments of the function that builds it, after the dialect.
        """
        plan = self.plans.get(key)
        if plan is None:
            module, _, name = _BUILDERS[key[0]].partition(".")
            build = getattr(importlib.import_module(f"treefold_orm._compile.{module}"), name)
            plan = self.plans.keep_plan(key, build(self.dialect, *parts, **options))
        return plan

    @property
    def database_address(self) -> str:
        """Text that two aliases of one database have in common; empty where that is not known."""
        return ""

    @abstractmethod
    def run(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        """Run an operation outside of a transaction, blocking this thread.

        `write` says that it changes data.
        """

    @abstractmethod
    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        """Run an operation outside of a transaction."""

    @abstractmethod
    def with_own_connections(self) -> Database:
        """Return the same database with connections of its own and no limit on statements; itself
        where there can be one connection only.
        """

    @abstractmethod
    def run_coroutine(self, session: Session, work: CoroutineOf[T]) -> T:
        """Run a coroutine that uses the connection of a session, blocking this thread."""

    @abstractmethod
    def checkout(self, *, write: bool) -> Session:
        """Take a connection for a transaction, blocking this thread."""

    @abstractmethod
    async def acheckout(self, *, write: bool) -> Session:
        """Take a connection for a transaction."""

    @abstractmethod
    def checkin(self, session: Session) -> None:
        """Return a connection to the pool, blocking this thread."""

    @abstractmethod
    async def acheckin(self, session: Session) -> None:
        """Return a connection to the pool."""

    @abstractmethod
    def begin_sql(self, *, write: bool, isolation: str | None) -> str:
        """The statement that starts a transaction."""

    @property
    @abstractmethod
    def in_use(self) -> bool:
        """True once a connection was opened."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection, blocking this thread."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close every connection that belongs to this loop or to none."""

    async def close_loop_connections(self) -> None:  # noqa: B027 - most have nothing that belongs to a loop
        """Close the connections of this event loop, which is about to end."""

    @abstractmethod
    def forget_connections(self) -> None:
        """Drop every connection without touching it: it belongs to the process this one was forked
        from.
        """


async def finish_despite_cancellation(work: Awaitable[T]) -> T:
    """Run `work` to its end even while this task is being cancelled; the cancellation follows
    afterwards.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            # the work was cancelled, not this task, as by a loop that ends: its own error goes on
            if task.cancelled():
                raise
            cancelled = error
        except GeneratorExit:  # the loop has ended, and nothing will wake this up
            raise
        except BaseException:  # noqa: BLE001, RUF100, S110 - the outcome is read from the task below
            pass
    # an error of the work outranks the cancellation: a failed COMMIT must not pass as cancelled
    if cancelled is not None and not task.cancelled() and task.exception() is None:
        raise cancelled
    return task.result()


def make_statement_operation(sql: str) -> Operation[None]:
    """The operation of a single statement without arguments."""
    yield Statement("script", sql)


def build_read_only_error() -> ORMError:
    """The error for a write in read-only mode."""
    return ReadOnlyViolation("This block is read-only: move the write out of read_only()")
