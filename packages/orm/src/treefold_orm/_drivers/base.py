"""Database and Session: the contract between operations and a database, in both halves.

`Database` stands for one alias; a `Session` is a connection held for the length of a transaction.
Drivers translate every foreign error into this package's own, without chaining: driver messages
quote stored values.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, TypeVar

from treefold_orm._base.errors import ORMError, ReadOnlyViolation
from treefold_orm._base.statement import CoroutineOf, Operation, Statement
from treefold_orm._decode.plan import PlanCache
from treefold_orm._dialects.dialect import Dialect

T = TypeVar("T")


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
