"""Sandbox: a database of which nothing is kept, for as long as a test runs.

One transaction holds everything that any thread or event loop does with the database, and is rolled
back at the end. Transactions of the code under test become savepoints of it. The connection lives
on a loop in a thread of its own, so that test, application and worker threads all reach it.

    with sandbox():                            BEGIN
        client.post("/v1/articles", ...)       SAVEPOINT s1 ... RELEASE SAVEPOINT s1
        assert Article.objects.count() == 1    SAVEPOINT s2 ... RELEASE SAVEPOINT s2
                                               ROLLBACK
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import NoReturn, TypeVar

from treefold_orm._base.errors import ConfigurationError
from treefold_orm._base.statement import Operation
from treefold_orm._drivers.base import Database
from treefold_orm._runtime.connections import _databases, aliases, database_for
from treefold_orm._runtime.open_transaction import Transaction
from treefold_orm._runtime.transactions import transaction

T = TypeVar("T")


class Sandbox(Database):
    """Takes the place of a database; all operations go through one open transaction."""

    def __init__(self, real: Database, outer: Transaction) -> None:
        super().__init__(real.alias, real.dialect)
        self.name = real.name
        self.real = real
        self.outer = outer
        self.single = True

    # Each operation is a savepoint: where PostgreSQL refuses one, the others go on as they would.

    def run(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        with transaction(self.alias, read_only=read_only) as own:
            # or select_for_update() without a transaction would pass in tests and fail elsewhere
            own.journal.single = True
            return own.run(operation, write=write)

    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        async with transaction(self.alias, read_only=read_only) as own:
            own.journal.single = True
            return await own.arun(operation, write=write)

    def _refuse_direct_use(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError(f"Database {self.alias!r} is in a sandbox and has one connection only")

    with_own_connections = run_coroutine = begin_sql = _refuse_direct_use
    checkout = acheckout = checkin = acheckin = _refuse_direct_use

    @property
    def in_use(self) -> bool:
        return self.real.in_use

    def close(self) -> None:
        """Do nothing: the opener of the sandbox ends it."""

    async def aclose(self) -> None:
        """Nothing, as `close`."""

    def forget_connections(self) -> None:
        self.real.forget_connections()


@contextmanager
def sandbox(*names: str) -> Generator[None]:
    """Undo at the end all changes of this block in the named databases (with all, without names).

    Works across threads and event loops: handlers that a test client calls are inside as well.
    Hooks of `on_commit` run where the application's own outermost transaction ends. Raises
    `ConfigurationError` where no database is configured, or a named one is not.
    """
    chosen = names or tuple(aliases())
    if not chosen:
        raise ConfigurationError("No database is configured: call configure() first")
    with ExitStack() as stack:
        for alias in chosen:
            stack.enter_context(_open_sandbox(database_for(alias)))
        yield


@contextmanager
def _open_sandbox(real: Database) -> Generator[None]:
    held = _TransactionThread(real)
    made = Sandbox(real, held.opened.result())
    _databases[real.alias] = made
    try:
        yield
    finally:
        if _databases.get(real.alias) is made:
            _databases[real.alias] = real
        held.roll_back_and_join()


class _TransactionThread:
    """A transaction on a loop in a thread of its own, open until it is released."""

    def __init__(self, real: Database) -> None:
        self.opened: Future[Transaction] = Future()
        self._real = real
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._hold_transaction()),
            name="treefold-sandbox",
            daemon=True,
        )
        self._thread.start()

    def roll_back_and_join(self) -> None:
        """Roll back, and wait until that is done."""
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()

    async def _hold_transaction(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        try:
            async with transaction(self._real.alias, rollback=True) as outer:
                self.opened.set_result(outer)
                await self._done.wait()
        except BaseException as error:
            # an error before `opened` was set is raised in the test that waits for it
            if self.opened.done():
                raise
            self.opened.set_exception(error)
        finally:
            await self._real.close_loop_connections()
