"""SQLite: the standard module for sync code, aiosqlite's worker for async code, one pool for both.

A whole operation crosses to the worker once. Writes go through a single connection that everyone
waits for in one line, and start with BEGIN IMMEDIATE; reads use their own connections, which
cannot write.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from treefold_orm._base.errors import ConfigurationError
from treefold_orm._base.statement import Operation
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._drivers import sqlite_errors, sqlite_execution as execution
from treefold_orm._drivers.base import Cursor, Database, Session, finish_anyway, refused_write
from treefold_orm._drivers.pool import Pool
from treefold_orm._drivers.sqlite_line import AGAIN, Job, Running, run_line, wait_in_line
from treefold_orm._drivers.sqlite_worker import END, Worker
from treefold_orm._sqlite import functions as sqlite_functions
from treefold_orm._sqlite.clock import Connection

T = TypeVar("T")

BUSY_TIMEOUT = 5.0
POOL_TIMEOUT = 10.0
READERS = min(4, os.cpu_count() or 1)


class SQLiteSession(Session):
    """One SQLite connection, usable from any thread but by one caller at a time."""

    __slots__ = ("_connect", "_file", "_job", "_raw", "_worker", "pool", "running")

    def __init__(self, connect: Callable[[], Connection], file: str) -> None:
        self._connect = connect
        self._file = file
        self._raw: Connection | None = None
        self._worker: Worker | None = None
        self._job: Job | None = None
        self.pool: Pool[SQLiteSession] | None = None
        self.running = Running()

    @property
    def opened(self) -> sqlite3.Connection | None:
        """The connection if it is open."""
        return self._raw

    def raw(self) -> Connection:
        """The standard library's connection, opened at first use."""
        if self._raw is None:
            try:
                self._raw = self._connect()
            except sqlite3.Error as error:
                failure = sqlite_errors.translate(error, self._file)
            else:
                return self._raw
            raise failure
        return self._raw

    @property
    def lost_transaction(self) -> bool:
        return self._raw is not None and not self._raw.in_transaction

    @property
    def is_closed(self) -> bool:
        return self._raw is None

    def run(self, operation: Operation[T]) -> T:
        return execution.execute(self._raw or self.raw(), operation)

    async def arun(self, operation: Operation[T]) -> T:
        outcome: list[T] = []  # the worker keeps what it returned until it is asked again
        await self.call(execution.execute_into, operation, outcome)
        return outcome.pop()

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function(connection, *args)` on the worker; if cancelled, stop it and wait until it
        has stopped.
        """
        worker = self._worker or await self._start()
        try:
            return await worker.execute(function, self._raw, *args)
        except asyncio.CancelledError:
            self.raw().interrupt()
            await finish_anyway(self._stopped(worker))
            raise

    async def _stopped(self, worker: Worker) -> None:
        settled = asyncio.ensure_future(worker.execute(execution.settle))
        while not (await asyncio.wait([settled], timeout=AGAIN))[0]:
            self.interrupt_again()
        await settled

    def interrupt_again(self) -> None:
        """Interrupt what had not begun when it was interrupted first. In a transaction that could
        be its end, which must be reached.
        """
        raw = self._raw
        if raw is not None and not raw.in_transaction:
            raw.interrupt()

    def take_on(self, job: Job) -> None:
        """Run a job and those behind it on the worker."""
        # not an argument: an error in the job holds the frames below it, and these must not hold it
        self._job = job
        worker = self._worker
        if worker is not None:
            worker.put(self._run_line)
            return
        worker = Worker(self.raw)
        worker.start()
        worker.put(partial(self._open_and_run, worker))

    def _take_job(self) -> Job:
        job, self._job = cast("Job", self._job), None
        return job

    def _open_and_run(self, worker: Worker) -> object:
        try:
            self._open(worker)
        except BaseException as error:  # noqa: BLE001, RUF100 - handed to the caller as it is
            self._take_job().finish(None, error)
            self._back()
            return END
        self._run_line()
        return None

    def _open(self, worker: Worker) -> None:
        worker.hold(self.raw())
        self._worker = worker

    def _run_line(self) -> None:
        try:
            run_line(self, execution.execute, self._take_job())
        finally:
            self._back()

    def abandon(self, cursors: list[sqlite3.Cursor]) -> bool:
        """Close cursors on the worker, end their transaction and return this connection."""
        worker = self._worker
        if worker is None:
            return False
        worker.put(partial(self._end_reading, cursors))
        return True

    def _end_reading(self, cursors: list[sqlite3.Cursor]) -> None:
        try:
            raw = self._raw
            if raw is not None:
                with suppress(sqlite3.Error):  # the next caller notices a broken connection
                    execution.close_cursors(raw, cursors)
                    raw.rollback()
        finally:
            self._back()

    def _back(self) -> None:
        if self.pool is not None:
            self.pool.give(self)

    async def _start(self) -> Worker:
        worker = Worker(self.raw)
        try:
            await worker.open(partial(self._open, worker))
        except Exception:
            worker.stop(POOL_TIMEOUT)
            raise
        return worker

    def rows(self, sql: str, args: Sequence[Any], *, size: int) -> Iterator[Sequence[Any]]:
        cursor = execution.open_cursor(self.raw(), sql, args)
        try:
            while chunk := execution.fetch_chunk(self.raw(), cursor, size):
                yield chunk
        finally:
            cursor.close()

    def acursor(self, sql: str, args: Sequence[Any]) -> Cursor:
        return SQLiteCursor(self, sql, args)

    def close(self) -> None:
        """Close, and end the worker without waiting for it."""
        worker, self._worker = self._worker, None
        raw, self._raw = self._raw, None
        if worker is not None:
            worker.stop(POOL_TIMEOUT)
        elif raw is not None:
            raw.close()

    async def aclose(self) -> None:
        """Close, and wait until the worker has ended."""
        worker, self._worker = self._worker, None
        if worker is None:
            self.close()
            return
        self._raw = None
        await worker.close()

    def forget(self) -> None:
        """Leave everything to the parent process."""
        if self._worker is not None:
            self._worker.hold(None)  # its finaliser would warn about a connection that is not ours
        # kept alive: SQLite must not close it here, and Python 3.13 would warn that nothing did
        _inherited.append(self._raw)
        self._worker = self._raw = None


_inherited: list[Connection | None] = []
"""Connections of the process that this one was forked from."""


def _use_wal(raw: Connection) -> None:
    # a new file that several processes open: SQLite refuses at once, without the busy timeout,
    # while another connection changes the mode
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(0.005)


class SQLiteCursor(Cursor):
    """A cursor of a session's connection."""

    __slots__ = ("args", "opened", "session", "sql")

    def __init__(self, session: SQLiteSession, sql: str, args: Sequence[Any]) -> None:
        self.session = session
        self.sql = sql
        self.args = args
        # put here by the call itself, since a cancelled call loses its result: an open cursor would
        # go on reading
        self.opened: list[sqlite3.Cursor] = []

    async def fetch(self, size: int) -> Sequence[Any]:
        call = self.session.call
        if not self.opened:
            await call(execution.open_cursor_into, self.opened, self.sql, self.args)
        return await call(execution.fetch_chunk, self.opened[0], size)

    async def close(self) -> None:
        await self.session.call(execution.close_cursors, self.opened)

    def abandon(self) -> bool:
        return self.session.abandon(self.opened)


class SQLiteDatabase(Database):
    """A database file, or one kept in memory, which then has a single connection."""

    name = "sqlite"

    def __init__(
        self,
        alias: str,
        *,
        database: str,
        readers: int = READERS,
        timeout: float = POOL_TIMEOUT,
        regex: bool = False,
        synchronous: str = "normal",
    ) -> None:
        dialect = SQLite()
        dialect.regex = regex
        super().__init__(alias, dialect)
        self.database = database
        self._timeout = timeout
        self.single = database == ":memory:"
        self._readers_wanted = readers
        self.synchronous = synchronous
        self._fill()

    @property
    def address(self) -> str:
        """The file; empty for one in memory, which is another one for each alias."""
        return "" if self.single else os.path.realpath(self.database)

    def at(self, path: str, *, readers: int | None = None) -> SQLiteDatabase:
        """Return another file under the same alias and options."""
        return SQLiteDatabase(
            self.alias,
            database=path,
            readers=readers or self._readers_wanted,
            timeout=self._timeout,
            regex=self.dialect.regex,
            synchronous=self.synchronous,
        )

    def _fill(self) -> None:
        self._writer = Pool(self._new_writer, size=1, name="SQLite writer", timeout=self._timeout)
        self._readers = (
            self._writer
            if self.single
            else Pool(
                self._new_reader,
                size=self._readers_wanted,
                name="SQLite reader",
                timeout=self._timeout,
            )
        )

    def _new_writer(self) -> SQLiteSession:
        return self._in_pool(SQLiteSession(self._connect, self.database), writer=True)

    def _new_reader(self) -> SQLiteSession:
        return self._in_pool(SQLiteSession(self._connect_reader, self.database), writer=False)

    def _in_pool(self, session: SQLiteSession, *, writer: bool) -> SQLiteSession:
        session.pool = self._writer if writer else self._readers
        return session

    def _connect(self) -> Connection:
        raw = sqlite3.connect(
            self.database,
            factory=Connection,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=1000,
        )
        if sqlite3.sqlite_version_info < (3, 38):
            raise ConfigurationError(
                f"SQLite {sqlite3.sqlite_version} is too old: 3.38 or later is needed"
            )
        raw.execute("PRAGMA foreign_keys = ON")
        if not self.single:
            _use_wal(raw)
            full = self.synchronous == "full"
            raw.execute("PRAGMA synchronous = FULL" if full else "PRAGMA synchronous = NORMAL")
        sqlite_functions.register(raw)
        return raw

    def _connect_reader(self) -> Connection:
        raw = self._connect()
        raw.execute("PRAGMA query_only = ON")
        raw.set_authorizer(sqlite_functions.readers_only)
        return raw

    def run(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        if write and read_only:
            raise refused_write()
        pool = self._writer if write else self._readers
        session = pool.take_now() or pool.take()
        try:
            raw = session._raw or session.raw()
            return execution.execute(raw, operation)
        finally:
            pool.give(session)

    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        if write and read_only:
            raise refused_write()
        pool = self._writer if write else self._readers
        session = pool.take_now()
        if session is None:
            return await wait_in_line(pool, operation, SQLiteSession.take_on, self._timeout)
        try:
            return await session.arun(operation)
        finally:
            pool.give(session)

    def apart(self) -> SQLiteDatabase:
        return self if self.single else self.at(self.database, readers=1)

    def complete(self, session: Session, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)  # the worker of a connection serves any loop

    def checkout(self, *, write: bool) -> SQLiteSession:
        return (self._writer if write else self._readers).take()

    async def acheckout(self, *, write: bool) -> SQLiteSession:
        return await (self._writer if write else self._readers).atake()

    def checkin(self, session: Session) -> None:
        if isinstance(session, SQLiteSession) and session.pool is not None:
            raw = session._raw
            if raw is not None and raw.in_transaction:
                try:
                    raw.rollback()  # the end of the transaction was not reached
                except sqlite3.Error:
                    session.close()  # the next one in line gets a connection that works
            session.pool.give(session)

    async def acheckin(self, session: Session) -> None:
        self.checkin(session)

    def begin(self, *, write: bool, isolation: str | None) -> str:
        return "BEGIN IMMEDIATE" if write else "BEGIN DEFERRED"

    @property
    def in_use(self) -> bool:
        return bool(self._writer.items or self._readers.items)

    def _drain(self) -> list[SQLiteSession]:
        sessions = [
            *self._writer.items,
            *(self._readers.items if self._readers is not self._writer else []),
        ]
        self._fill()
        return sessions

    def close(self) -> None:
        for session in self._drain():
            session.close()

    async def aclose(self) -> None:
        for session in self._drain():
            await session.aclose()

    def forget(self) -> None:
        for session in self._drain():
            session.forget()
