"""SQLite: the standard module for sync code, aiosqlite's worker for async code, one pool for both.

A whole operation crosses to the worker once. Writes go through a single connection that everyone
waits for in one line, and start with BEGIN IMMEDIATE; reads use their own connections, which
cannot write.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import aiosqlite

from treefold_orm._compile._sqlite import SQLite
from treefold_orm._errors import ConfigurationError
from treefold_orm._pool import Pool
from treefold_orm._statement import Operation, Statement
from treefold_orm.drivers import _sqlite_errors, _sqlite_functions
from treefold_orm.drivers._base import Database, Session, finish_anyway, one, refused_write

T = TypeVar("T")

BUSY_TIMEOUT = 5.0
POOL_TIMEOUT = 10.0
READERS = min(4, os.cpu_count() or 1)


class SQLiteSession(Session):
    """One SQLite connection, usable from any thread but by one caller at a time."""

    __slots__ = ("_connect", "_raw", "_worker", "pool")

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._raw: sqlite3.Connection | None = None
        self._worker: Any = None  # an aiosqlite.Connection; its one-hop call has no types
        self.pool: Pool[SQLiteSession] | None = None

    def raw(self) -> sqlite3.Connection:
        """The standard library's connection, opened at first use."""
        if self._raw is None:
            try:
                self._raw = self._connect()
            except sqlite3.Error as error:
                failure = _sqlite_errors.translate(error)
            else:
                return self._raw
            raise failure
        return self._raw

    def run(self, operation: Operation[T]) -> T:
        return drive(self._raw or self.raw(), operation)

    async def arun(self, operation: Operation[T]) -> T:
        return await self.call(drive, operation)

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function(connection, *args)` on the worker; if cancelled, stop it and wait until it
        has stopped.
        """
        worker = self._worker or await self._start()
        try:
            return await worker._execute(function, self._raw, *args)
        except asyncio.CancelledError:
            raw = self.raw()
            raw.interrupt()
            await finish_anyway(worker._execute(_settle))
            raise

    async def _start(self) -> Any:
        worker: Any = aiosqlite.Connection(self.raw, 64)
        # a forgotten connection must not keep the interpreter from exiting
        getattr(worker, "_thread", worker).daemon = True
        try:
            await finish_anyway(_opened_worker(worker))
        except asyncio.CancelledError:
            self._worker = worker  # it did open; whoever comes next will use it
            raise
        except Exception:  # its thread ends by itself, and must have done so before this loop does
            await asyncio.to_thread(getattr(worker, "_thread", worker).join, POOL_TIMEOUT)
            raise
        self._worker = worker
        return worker

    def rows(self, sql: str, args: Sequence[Any], *, size: int) -> Iterator[Sequence[Any]]:
        cursor = _opened(self.raw(), sql, args)
        try:
            while chunk := _chunk(self.raw(), cursor, size):
                yield chunk
        finally:
            cursor.close()

    async def arows(
        self, sql: str, args: Sequence[Any], *, size: int
    ) -> AsyncIterator[Sequence[Any]]:
        # kept here, since a cancelled call loses its result: an open cursor would go on reading
        cursors: list[sqlite3.Cursor] = []
        try:
            await self.call(_opened_into, cursors, sql, args)
            while chunk := await self.call(_chunk, cursors[0], size):
                yield chunk
        finally:
            await finish_anyway(self.call(_closed, cursors))

    def close(self) -> None:
        """Close, and end the worker without waiting for it."""
        worker, self._worker = self._worker, None
        raw, self._raw = self._raw, None
        if worker is not None:
            stop_worker(worker)
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
            self._worker._connection = (
                None  # its finaliser would complain about a connection that is not ours
            )
        self._worker = self._raw = None


async def _opened_worker(worker: Any) -> None:
    await worker


def stop_worker(worker: Any) -> None:
    """End a worker thread from outside of any loop, closing its connection there."""

    def last() -> object:
        connection, worker._connection = worker._connection, None
        if connection is not None:
            connection.close()
        return cast("Any", aiosqlite.core)._STOP_RUNNING_SENTINEL

    worker._running = False
    worker._tx.put_nowait((None, last))
    getattr(worker, "_thread", worker).join(POOL_TIMEOUT)


def drive(raw: sqlite3.Connection, operation: Operation[T]) -> T:
    """Run an operation to its end on an open connection."""
    execute = raw.execute
    try:
        statement = operation.send(None)
        while True:
            try:
                cursor = execute(statement.sql, statement.args)
                outcome: Any = (
                    cursor.fetchall() if statement.kind == "rows" else _other(statement, cursor)
                )
            except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
                failure = _sqlite_errors.translate(error)
            else:
                statement = operation.send(outcome)
                continue
            statement = operation.throw(failure)
    except StopIteration as stop:
        return stop.value


def _other(statement: Statement, cursor: sqlite3.Cursor) -> Any:
    if statement.kind == "raw":
        return [column[0] for column in cursor.description or ()], cursor.fetchall()
    if statement.kind == "count" and cursor.rowcount == -1:
        # the module counts statements that begin with their verb only, and this began with WITH
        return cursor.connection.execute("SELECT changes()").fetchone()[0]
    return cursor.rowcount


def drive_atomic(raw: sqlite3.Connection, operation: Operation[T]) -> T:
    """Run an operation inside a transaction of its own."""
    drive(raw, one("BEGIN IMMEDIATE"))
    try:
        outcome = drive(raw, operation)
        drive(raw, one("COMMIT"))
    except BaseException:
        if raw.in_transaction:
            raw.rollback()
        raise
    return outcome


def _settle() -> None:
    return None  # in line behind the interrupted call: when this has run, that one has stopped


def _opened(raw: sqlite3.Connection, sql: str, args: Sequence[Any]) -> sqlite3.Cursor:
    try:
        return raw.execute(sql, args)
    except sqlite3.Error as error:
        failure = _sqlite_errors.translate(error)
    raise failure


def _opened_into(
    raw: sqlite3.Connection, cursors: list[sqlite3.Cursor], sql: str, args: Sequence[Any]
) -> None:
    cursors.append(_opened(raw, sql, args))


def _chunk(raw: sqlite3.Connection, cursor: sqlite3.Cursor, size: int) -> list[Any]:
    try:
        return cursor.fetchmany(size)
    except sqlite3.Error as error:
        failure = _sqlite_errors.translate(error)
    raise failure


def _closed(raw: sqlite3.Connection, cursors: list[sqlite3.Cursor]) -> None:
    for cursor in cursors:
        cursor.close()


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
    ) -> None:
        dialect = SQLite()
        dialect.regex = regex
        super().__init__(alias, dialect)
        self.database = database
        self._timeout = timeout
        self.single = database == ":memory:"
        self._readers_wanted = readers
        self._fill()

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
        return self._in_pool(SQLiteSession(self._connect), writer=True)

    def _new_reader(self) -> SQLiteSession:
        return self._in_pool(SQLiteSession(self._connect_reader), writer=False)

    def _in_pool(self, session: SQLiteSession, *, writer: bool) -> SQLiteSession:
        session.pool = self._writer if writer else self._readers
        return session

    def _connect(self) -> sqlite3.Connection:
        raw = sqlite3.connect(
            self.database,
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
            raw.execute("PRAGMA journal_mode = WAL")
            raw.execute("PRAGMA synchronous = NORMAL")
        _sqlite_functions.register(raw)
        return raw

    def _connect_reader(self) -> sqlite3.Connection:
        raw = self._connect()
        raw.execute("PRAGMA query_only = ON")
        raw.set_authorizer(_sqlite_functions.readers_only)
        return raw

    def run(self, operation: Operation[T], *, write: bool, atomic: bool, read_only: bool) -> T:
        if write and read_only:
            raise refused_write()
        pool = self._writer if write else self._readers
        session = pool.take_now() or pool.take()
        try:
            raw = session._raw or session.raw()
            return drive_atomic(raw, operation) if atomic else drive(raw, operation)
        finally:
            pool.give(session)

    async def arun(
        self, operation: Operation[T], *, write: bool, atomic: bool, read_only: bool
    ) -> T:
        if write and read_only:
            raise refused_write()
        pool = self._writer if write else self._readers
        session = pool.take_now() or await pool.atake()
        try:
            return await session.call(drive_atomic if atomic else drive, operation)
        finally:
            pool.give(session)

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
