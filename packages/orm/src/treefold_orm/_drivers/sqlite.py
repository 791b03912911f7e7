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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from treefold_orm._base.errors import ConfigurationError
from treefold_orm._base.statement import CoroutineOf, Operation
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._drivers import sqlite_errors, sqlite_execution as execution
from treefold_orm._drivers.base import (
    Cursor,
    Database,
    Session,
    build_read_only_error,
    finish_despite_cancellation,
)
from treefold_orm._drivers.pool import Pool
from treefold_orm._drivers.sqlite_line import (
    AGAIN,
    Job,
    RunningJob,
    run_job_then_waiting_jobs,
    run_when_connection_free,
)
from treefold_orm._drivers.sqlite_worker import END, Worker
from treefold_orm._sqlite import functions as sqlite_functions
from treefold_orm._sqlite.clock import Connection

T = TypeVar("T")

BUSY_TIMEOUT = 5.0
"""Seconds that a write waits for another process that writes, before it raises `DatabaseLocked`."""
POOL_TIMEOUT = 10.0
"""Seconds that a caller waits for a connection of this process. Longer than `BUSY_TIMEOUT`: what
holds one up may be a write that waits for another process, and ends with an error of its own.
"""
READERS = min(4, os.cpu_count() or 1)
"""Connections that read beside the one that writes; more only wait for the same processors."""


class SQLiteSession(Session):
    """One SQLite connection, usable from any thread but by one caller at a time.

    Attributes:
        pool: the pool that it is of; its worker takes the next job from the line there.
        running: the job that its worker runs.
    """

    __slots__ = ("_connect", "_file", "_job", "_raw", "_worker", "pool", "running")

    def __init__(self, connect: Callable[[], Connection], file: str) -> None:
        self._connect = connect
        self._file = file
        self._raw: Connection | None = None  # opened by the first use
        self._worker: Worker | None = None  # started by the first use from async code
        self._job: Job | None = None  # on its way to the worker
        self.pool: Pool[SQLiteSession] | None = None
        self.running = RunningJob()

    @property
    def connection_if_open(self) -> sqlite3.Connection | None:
        """The connection if it is open."""
        return self._raw

    def ensure_connection(self) -> Connection:
        """The standard library's connection, opened at first use."""
        if self._raw is None:
            try:
                self._raw = self._connect()
            except sqlite3.Error as error:
                failure = sqlite_errors.translate_error(error, self._file)
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
        return execution.execute_operation(self._raw or self.ensure_connection(), operation)

    async def arun(self, operation: Operation[T]) -> T:
        outcome: list[T] = []  # the worker keeps what it returned until it is asked again
        await self.run_on_worker(execution.execute_and_append_outcome, operation, outcome)
        return outcome.pop()

    async def run_on_worker(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function(connection, *args)` on the worker; if cancelled, stop it and wait until it
        has stopped.
        """
        worker = self._worker or await self._start_worker()
        try:
            return await worker.run_function(function, self._raw, *args)
        except asyncio.CancelledError:
            self.ensure_connection().interrupt()
            await finish_despite_cancellation(self._interrupt_until_stopped(worker))
            raise

    async def _interrupt_until_stopped(self, worker: Worker) -> None:
        settled = asyncio.ensure_future(worker.run_function(execution.run_noop_barrier))
        # sqlite3_interrupt() has no effect on a statement that begins after it, so it is repeated
        while not (await asyncio.wait([settled], timeout=AGAIN))[0]:
            self.interrupt_outside_transaction()
        await settled

    def interrupt_outside_transaction(self) -> None:
        """Interrupt what had not begun when it was interrupted first. In a transaction that could
        be its end, which must be reached.
        """
        raw = self._raw
        if raw is not None and raw.is_interruptible:
            raw.interrupt()

    def submit_job(self, job: Job) -> None:
        """Run a job and those behind it on the worker."""
        # not an argument: an error in the job holds the frames below it, and these must not hold it
        self._job = job
        worker = self._worker
        if worker is not None:
            worker.queue_call(self._run_jobs_and_release)
            return
        worker = Worker(self.ensure_connection)
        worker.start_thread()
        worker.queue_call(partial(self._open_and_run_jobs, worker))

    def _pop_job(self) -> Job:
        job, self._job = cast("Job", self._job), None
        return job

    def _open_and_run_jobs(self, worker: Worker) -> object:
        try:
            self._open_on_worker(worker)
        except BaseException as error:  # noqa: BLE001, RUF100 - handed to the caller as it is
            self._pop_job().report_outcome(None, error)
            self._return_to_pool()
            # this worker was never noted as the session's: END stops its thread
            return END
        self._run_jobs_and_release()
        return None

    def _open_on_worker(self, worker: Worker) -> None:
        worker.set_connection_to_close(self.ensure_connection())
        self._worker = worker

    def _run_jobs_and_release(self) -> None:
        try:
            run_job_then_waiting_jobs(self, execution.execute_operation, self._pop_job())
        finally:
            self._return_to_pool()

    def queue_rollback_and_release(self, cursors: list[sqlite3.Cursor]) -> bool:
        """Close cursors on the worker, end their transaction and return this connection."""
        worker = self._worker
        if worker is None:
            return False
        worker.queue_call(partial(self._close_cursors_and_release, cursors))
        return True

    def _close_cursors_and_release(self, cursors: list[sqlite3.Cursor]) -> None:
        try:
            raw = self._raw
            if raw is not None:
                with suppress(sqlite3.Error):  # the next caller notices a broken connection
                    execution.close_cursors(raw, cursors)
                    raw.rollback()
        finally:
            self._return_to_pool()

    def _return_to_pool(self) -> None:
        if self.pool is not None:
            self.pool.return_item(self)

    async def _start_worker(self) -> Worker:
        worker = Worker(self.ensure_connection)
        try:
            await worker.start_and_open_connection(partial(self._open_on_worker, worker))
        except Exception:
            worker.stop_thread(POOL_TIMEOUT)
            raise
        return worker

    def fetch_chunks(
        self, sql: str, args: Sequence[object], *, size: int
    ) -> Iterator[Sequence[Any]]:
        cursor = execution.open_cursor(self.ensure_connection(), sql, args)
        try:
            while chunk := execution.fetch_chunk(self.ensure_connection(), cursor, size):
                yield chunk
        finally:
            cursor.close()

    def create_cursor(self, sql: str, args: Sequence[object]) -> Cursor:
        return SQLiteCursor(self, sql, args)

    def close(self) -> None:
        """Close, and end the worker without waiting for it."""
        worker, self._worker = self._worker, None
        raw, self._raw = self._raw, None
        if worker is not None:
            worker.stop_thread(POOL_TIMEOUT)
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

    def forget_connection(self) -> None:
        """Leave everything to the parent process."""
        if self._worker is not None:
            self._worker.set_connection_to_close(
                None
            )  # its finaliser would warn about a connection that is not ours
        # kept alive: SQLite must not close it here, and Python 3.13 would warn that nothing did
        _inherited.append(self._raw)
        self._worker = self._raw = None


_inherited: list[Connection | None] = []
"""Connections of the process that this one was forked from."""


def _enable_wal(raw: Connection) -> None:
    # a new file that several processes open: SQLite refuses at once, without the busy timeout,
    # while another connection changes the mode
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # the low byte is the primary code, so that SQLITE_BUSY_RECOVERY counts as well
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(0.005)


class SQLiteCursor(Cursor):
    """A cursor of a session's connection."""

    __slots__ = ("args", "opened", "session", "sql")

    def __init__(self, session: SQLiteSession, sql: str, args: Sequence[object]) -> None:
        self.session = session
        self.sql = sql
        self.args = args
        # put here by the call itself, since a cancelled call loses its result: an open cursor would
        # go on reading
        self.opened: list[sqlite3.Cursor] = []

    async def fetch_rows(self, size: int) -> Sequence[Any]:
        call = self.session.run_on_worker
        if not self.opened:
            await call(execution.open_and_append_cursor, self.opened, self.sql, self.args)
        return await call(execution.fetch_chunk, self.opened[0], size)

    async def close(self) -> None:
        await self.session.run_on_worker(execution.close_cursors, self.opened)

    def try_release_without_waiting(self) -> bool:
        return self.session.queue_rollback_and_release(self.opened)


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
        self._create_pools()

    @property
    def database_address(self) -> str:
        """The file; empty for one in memory, which is another one for each alias."""
        return "" if self.single else os.path.realpath(self.database)

    def with_database(self, path: str, *, readers: int | None = None) -> SQLiteDatabase:
        """Return another file under the same alias and options."""
        return SQLiteDatabase(
            self.alias,
            database=path,
            readers=readers or self._readers_wanted,
            timeout=self._timeout,
            regex=self.dialect.regex,
            synchronous=self.synchronous,
        )

    def _create_pools(self) -> None:
        self._writer = Pool(
            self._create_writer, size=1, name="SQLite writer", timeout=self._timeout
        )
        self._readers = (
            self._writer
            if self.single
            else Pool(
                self._create_reader,
                size=self._readers_wanted,
                name="SQLite reader",
                timeout=self._timeout,
            )
        )

    def _create_writer(self) -> SQLiteSession:
        return self._assign_pool(SQLiteSession(self._open_connection, self.database), writer=True)

    def _create_reader(self) -> SQLiteSession:
        return self._assign_pool(
            SQLiteSession(self._open_read_only_connection, self.database), writer=False
        )

    def _assign_pool(self, session: SQLiteSession, *, writer: bool) -> SQLiteSession:
        session.pool = self._writer if writer else self._readers
        return session

    def _open_connection(self) -> Connection:
        raw = sqlite3.connect(
            self.database,
            factory=Connection,
            timeout=BUSY_TIMEOUT,
            # the module would open transactions by itself, deferred ones, before each write
            isolation_level=None,
            # a connection serves threads and its worker by turns, and the pool sees to the turns
            check_same_thread=False,
            cached_statements=1000,
        )
        if sqlite3.sqlite_version_info < (3, 38):
            raise ConfigurationError(
                f"SQLite {sqlite3.sqlite_version} is too old: 3.38 or later is needed"
            )
        # off by default in SQLite, and a setting of each connection
        raw.execute("PRAGMA foreign_keys = ON")
        if not self.single:
            _enable_wal(raw)
            full = self.synchronous == "full"
            raw.execute("PRAGMA synchronous = FULL" if full else "PRAGMA synchronous = NORMAL")
        sqlite_functions.register_functions(raw)
        return raw

    def _open_read_only_connection(self) -> Connection:
        raw = self._open_connection()
        raw.execute("PRAGMA query_only = ON")
        # query_only alone could be switched off by raw SQL with another PRAGMA
        raw.set_authorizer(sqlite_functions.authorize_read_only)
        return raw

    def run(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        if write and read_only:
            raise build_read_only_error()
        pool = self._writer if write else self._readers
        session = pool.take_item_nowait() or pool.take_item()
        try:
            raw = session._raw or session.ensure_connection()
            return execution.execute_operation(raw, operation)
        finally:
            pool.return_item(session)

    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        if write and read_only:
            raise build_read_only_error()
        pool = self._writer if write else self._readers
        session = pool.take_item_nowait()
        if session is None:
            return await run_when_connection_free(
                pool, operation, SQLiteSession.submit_job, self._timeout
            )
        try:
            return await session.arun(operation)
        finally:
            pool.return_item(session)

    def with_own_connections(self) -> SQLiteDatabase:
        return self if self.single else self.with_database(self.database, readers=1)

    def run_coroutine(self, session: Session, work: CoroutineOf[T]) -> T:
        return asyncio.run(work)  # the worker of a connection serves any loop

    def checkout(self, *, write: bool) -> SQLiteSession:
        return (self._writer if write else self._readers).take_item()

    async def acheckout(self, *, write: bool) -> SQLiteSession:
        return await (self._writer if write else self._readers).atake_item()

    def checkin(self, session: Session) -> None:
        if isinstance(session, SQLiteSession) and session.pool is not None:
            raw = session._raw
            if raw is not None and raw.in_transaction:
                try:
                    raw.rollback()  # the end of the transaction was not reached
                except sqlite3.Error:
                    session.close()  # the next one in line gets a connection that works
            session.pool.return_item(session)

    async def acheckin(self, session: Session) -> None:
        self.checkin(session)

    def begin_sql(self, *, write: bool, isolation: str | None) -> str:
        # deferred, a write after a read fails at once with SQLITE_BUSY_SNAPSHOT, without the busy
        # timeout, where another process has written in between
        return "BEGIN IMMEDIATE" if write else "BEGIN DEFERRED"

    @property
    def in_use(self) -> bool:
        return bool(self._writer.all_items or self._readers.all_items)

    def _detach_sessions(self) -> list[SQLiteSession]:
        readers = self._readers.all_items if self._readers is not self._writer else []
        sessions = [*self._writer.all_items, *readers]
        self._create_pools()
        return sessions

    def close(self) -> None:
        for session in self._detach_sessions():
            session.close()

    async def aclose(self) -> None:
        for session in self._detach_sessions():
            await session.aclose()

    def forget_connections(self) -> None:
        for session in self._detach_sessions():
            session.forget_connection()
