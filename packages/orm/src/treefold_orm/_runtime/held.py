"""HeldConnection: one connection to the database of an alias, kept for a whole schema change.

It is not of the pool: no limit on statements applies to it, and it stays the same connection for
locks and settings of a session. Transactions opened on it are found by every query of the alias
that runs inside of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, Self, TypeVar

from treefold_orm._base.errors import ConfigurationError, ORMError, TransactionClosed
from treefold_orm._base.statement import Operation
from treefold_orm._drivers.base import Database, Session, finish_anyway, one
from treefold_orm._runtime.connections import aliases, database_for
from treefold_orm._runtime.context import current, is_read_only
from treefold_orm._runtime.open_transaction import Transaction
from treefold_orm._runtime.run import check_blocking
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
        self._database = _Held(real)

    # -- opening ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        check_blocking("`async with`")
        held = self._database
        held.own = self._real.apart()
        held.session = held.own.checkout(write=True)
        return self

    def __exit__(self, *_: object) -> None:
        own, session = self._database.left()
        own.checkin(session)
        if own is not self._real:
            own.close()

    async def __aenter__(self) -> Self:
        held = self._database
        held.own = self._real.apart()
        held.session = await held.own.acheckout(write=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        own, session = self._database.left()
        await finish_anyway(own.acheckin(session))
        if own is not self._real:
            await finish_anyway(own.aclose())

    # -- statements -------------------------------------------------------------------------------

    def run(self, operation: Operation[T]) -> T:
        """Run an operation, in the open transaction if there is one, blocking this thread."""
        active = self._active()
        if active is not None:
            return active.run(operation, write=True, read_only=is_read_only())
        return self._database.run(operation, write=True, read_only=False)

    async def arun(self, operation: Operation[T]) -> T:
        """Run an operation, in the open transaction if there is one."""
        active = self._active()
        if active is not None:
            return await active.arun(operation, write=True, read_only=is_read_only())
        return await self._database.arun(operation, write=True, read_only=False)

    def _active(self) -> Transaction | None:
        context = current.get()
        return None if context is None else context.transactions.get(self.alias)

    def transaction(self) -> transaction:
        """Open a transaction on this connection, as `with` or `async with`."""
        return _HeldTransaction(self._database)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a sync or async function that may query the database, blocking this thread."""
        result = function(*args)
        if inspect.isawaitable(result):
            return self._database.complete(self._database.session, self._awaited(result))
        return result

    async def _awaited(self, work: Awaitable[T]) -> T:
        try:
            return await work
        finally:  # what it asked outside of a transaction went through the pools of this loop
            await self._real.leave_loop()
            for alias in aliases():
                await database_for(alias).leave_loop()

    async def acall(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a sync or async function that may query the database, a sync one in a thread, which
        is waited for even where this task is cancelled.
        """
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        result = await finish_anyway(asyncio.to_thread(function, *args))
        return await result if inspect.isawaitable(result) else result


class _Held(Database):
    """A database whose transactions all take one connection."""

    def __init__(self, real: Database) -> None:
        super().__init__(real.alias, real.dialect)
        self.name = real.name
        self.own: Database | None = None
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        if self._session is None:
            raise TransactionClosed(
                f"The connection held for database {self.alias!r} is not open: use it inside its "
                "with block"
            )
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        self._session = session

    def left(self) -> tuple[Database, Session]:
        own, session = self.apart(), self.session
        self._session = None
        return own, session

    def apart(self) -> Database:
        return self if self.own is None else self.own

    def complete(self, session: Session, work: Coroutine[Any, Any, T]) -> T:
        return self.apart().complete(session, work)

    def run(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        return self.session.run(operation)

    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        return await self.session.arun(operation)

    def checkout(self, *, write: bool) -> Session:
        return self.session

    async def acheckout(self, *, write: bool) -> Session:
        return self.session

    def checkin(self, session: Session) -> None:
        if not session.lost_transaction:  # its end was not reached
            with contextlib.suppress(ORMError):  # report the error that led here
                session.run(one("ROLLBACK"))

    async def acheckin(self, session: Session) -> None:
        if not session.lost_transaction:
            with contextlib.suppress(ORMError):
                await session.arun(one("ROLLBACK"))

    def begin(self, *, write: bool, isolation: str | None) -> str:
        return self.apart().begin(write=write, isolation=isolation)

    @property
    def in_use(self) -> bool:
        return self._session is not None

    def _kept(self) -> NoReturn:
        raise RuntimeError(f"The connection held for {self.alias!r} ends with its with block")

    close = aclose = forget = _kept


class _HeldTransaction(transaction):
    """A transaction on a held connection."""

    def __init__(self, database: _Held) -> None:
        super().__init__(database.alias)
        self._database = database

    def _make(self) -> Transaction:
        context = current.get()
        if context is not None and self._using in context.transactions:
            return super()._make()
        return Transaction(
            self._using,
            parent=None,
            write=True,
            isolation=None,
            rollback=False,
            database=self._database,
        )
