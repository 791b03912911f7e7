"""HeldConnection: one connection to the database of an alias, kept for a whole schema change.

It is not of the pool: no limit on statements applies to it, and it stays the same connection for
locks and settings of a session. Transactions opened on it are found by every query of the alias
that runs inside of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, Self, TypeVar

from treefold_orm._base.errors import ConfigurationError, ORMError, TransactionClosed
from treefold_orm._base.statement import CoroutineOf, Operation
from treefold_orm._drivers.base import (
    Database,
    Session,
    finish_despite_cancellation,
    make_statement_operation,
)
from treefold_orm._runtime.connections import aliases, database_for
from treefold_orm._runtime.context import current, is_read_only
from treefold_orm._runtime.open_transaction import Transaction
from treefold_orm._runtime.run import require_blocking_allowed
from treefold_orm._runtime.transactions import transaction

T = TypeVar("T")


class HeldConnection:
    """A connection of its own, as `with` or `async with`; `run` and `arun` use it in one half.

    Attributes:
        alias: the alias of the database.
        dialect: the SQL of the database.
        pooled: True behind a pooler that hands out server connections per transaction, where
            settings and locks of a session do not last.
        single: True for a database in memory, whose only connection this is.

    Raises `ConfigurationError` inside a transaction or a sandbox of the same alias.
    """

    def __init__(self, alias: str = "default") -> None:
        real = database_for(alias)
        context = current.get()
        if real.outer is not None or (context is not None and alias in context.transactions):
            raise ConfigurationError(
                f"Database {alias!r} is inside of a transaction or sandbox here: change its schema "
                "before that begins"
            )
        self.alias = alias
        self.dialect = real.dialect
        self.single = real.single
        self.pooled: bool = getattr(real, "pooled", False)
        self._real = real
        self._database = _HeldDatabase(real)

    # -- opening ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        require_blocking_allowed("`async with`")
        held = self._database
        held.own = self._real.with_own_connections()
        held.held_session = held.own.checkout(write=True)
        return self

    def __exit__(self, *_: object) -> None:
        own, session = self._database.detach_session()
        own.checkin(session)
        # a database in memory is its own one, and would lose its rows
        if own is not self._real:
            own.close()

    async def __aenter__(self) -> Self:
        held = self._database
        held.own = self._real.with_own_connections()
        held.held_session = await held.own.acheckout(write=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        own, session = self._database.detach_session()
        await finish_despite_cancellation(own.acheckin(session))
        if own is not self._real:
            await finish_despite_cancellation(own.aclose())

    # -- statements -------------------------------------------------------------------------------

    def run(self, operation: Operation[T]) -> T:
        """Run an operation, in the open transaction if there is one, blocking this thread."""
        active = self._find_transaction()
        if active is not None:
            return active.run(operation, write=True, read_only=is_read_only())
        return self._database.run(operation, write=True, read_only=False)

    async def arun(self, operation: Operation[T]) -> T:
        """Run an operation, in the open transaction if there is one."""
        active = self._find_transaction()
        if active is not None:
            return await active.arun(operation, write=True, read_only=is_read_only())
        return await self._database.arun(operation, write=True, read_only=False)

    def _find_transaction(self) -> Transaction | None:
        context = current.get()
        return None if context is None else context.transactions.get(self.alias)

    def transaction(self) -> transaction:
        """Open a transaction on this connection, as `with` or `async with`."""
        return _HeldTransaction(self._database)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a sync or async function that may query the database, blocking this thread."""
        result = function(*args)
        if inspect.isawaitable(result):
            return self._database.run_coroutine(
                self._database.held_session, self._await_and_close_connections(result)
            )
        return result

    async def _await_and_close_connections(self, work: Awaitable[T]) -> T:
        try:
            return await work
        finally:  # what it asked outside of a transaction went through the pools of this loop
            await self._real.close_loop_connections()
            for alias in aliases():
                await database_for(alias).close_loop_connections()

    async def acall(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a sync or async function that may query the database, a sync one in a thread, which
        is waited for even where this task is cancelled.
        """
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        # to_thread() copies the context, so that the function finds the open transaction
        result = await finish_despite_cancellation(asyncio.to_thread(function, *args))
        return await result if inspect.isawaitable(result) else result


class _HeldDatabase(Database):
    """A database whose transactions all take one connection."""

    def __init__(self, real: Database) -> None:
        super().__init__(real.alias, real.dialect)
        self.name = real.name
        self.own: Database | None = None
        self._session: Session | None = None

    @property
    def held_session(self) -> Session:
        if self._session is None:
            raise TransactionClosed(
                f"The connection held for database {self.alias!r} is not open: use it inside its "
                "with block"
            )
        return self._session

    @held_session.setter
    def held_session(self, session: Session) -> None:
        self._session = session

    def detach_session(self) -> tuple[Database, Session]:
        own, session = self.with_own_connections(), self.held_session
        self._session = None
        return own, session

    def with_own_connections(self) -> Database:
        return self if self.own is None else self.own

    def run_coroutine(self, session: Session, work: CoroutineOf[T]) -> T:
        return self.with_own_connections().run_coroutine(session, work)

    def run(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        return self.held_session.run(operation)

    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        return await self.held_session.arun(operation)

    def checkout(self, *, write: bool) -> Session:
        return self.held_session

    async def acheckout(self, *, write: bool) -> Session:
        return self.held_session

    def checkin(self, session: Session) -> None:
        if not session.lost_transaction:  # its end was not reached
            with contextlib.suppress(ORMError):  # report the error that led here
                session.run(make_statement_operation("ROLLBACK"))

    async def acheckin(self, session: Session) -> None:
        if not session.lost_transaction:
            with contextlib.suppress(ORMError):
                await session.arun(make_statement_operation("ROLLBACK"))

    def begin_sql(self, *, write: bool, isolation: str | None) -> str:
        return self.with_own_connections().begin_sql(write=write, isolation=isolation)

    @property
    def in_use(self) -> bool:
        return self._session is not None

    def _refuse_close(self) -> NoReturn:
        raise RuntimeError(f"The connection held for {self.alias!r} ends with its with block")

    close = aclose = forget_connections = _refuse_close


class _HeldTransaction(transaction):
    """A transaction on a held connection."""

    def __init__(self, database: _HeldDatabase) -> None:
        super().__init__(database.alias)
        self._database = database

    def _create_transaction(self) -> Transaction:
        context = current.get()
        if context is not None and self._using in context.transactions:
            return super()._create_transaction()
        return Transaction(
            self._using,
            parent=None,
            write=True,
            isolation=None,
            rollback=False,
            database=self._database,
        )
