"""PostgreSQL over asyncpg: connections held in a pool of our own, one for each event loop.

A connection goes back as it came; it is reset only after SQL of the caller's own. After a
cancelled or broken call it is closed, never reused. Synchronous calls cross to a loop once for
each operation: to the application's loop where one runs, else to a loop private to the thread.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from treefold_orm._compile._postgres import Postgres
from treefold_orm._statement import Operation, Statement
from treefold_orm.drivers import _postgres_errors
from treefold_orm.drivers._base import Database, Session, finish_anyway, one, refused_write
from treefold_orm.drivers._postgres_pool import LoopPool, PostgresConnection

T = TypeVar("T")
_numbers = itertools.count()
_inherited: list[object] = []
Loop = asyncio.AbstractEventLoop


class PostgresSession(Session):
    """A connection held for a transaction, with the loop it lives on."""

    __slots__ = ("connection", "database", "loop", "pool")

    def __init__(
        self, database: PostgresDatabase, pool: LoopPool, connection: PostgresConnection
    ) -> None:
        self.database = database
        self.pool = pool
        self.connection = connection
        self.loop = pool.loop

    def run(self, operation: Operation[T]) -> T:
        return self.database.block_on(drive(self.connection, operation), self.loop)

    async def arun(self, operation: Operation[T]) -> T:
        return await self._at_home(drive(self.connection, operation))

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def rows(self, sql: str, args: Sequence[Any], *, size: int) -> Iterator[Sequence[Any]]:
        cursor = self.database.block_on(self._opened(sql, args), self.loop)
        while chunk := self.database.block_on(_chunk(cursor, size), self.loop):
            yield chunk

    async def arows(
        self, sql: str, args: Sequence[Any], *, size: int
    ) -> AsyncIterator[Sequence[Any]]:
        cursor = await self._at_home(self._opened(sql, args))
        while chunk := await self._at_home(_chunk(cursor, size)):
            yield chunk

    async def _opened(self, sql: str, args: Sequence[Any]) -> Any:
        try:
            if self.database.pooled:
                return await DeclaredCursor.opened(self.connection.raw, sql, args)
            return await self.connection.raw.cursor(sql, *args)
        except _postgres_errors.FOREIGN as error:
            failure = _postgres_errors.translate(error)
        raise failure


class DeclaredCursor:
    """A cursor by SQL alone, which leaves no prepared statement on a connection behind a pooler."""

    def __init__(self, raw: Any, name: str) -> None:
        self._raw = raw
        self._name = name

    @classmethod
    async def opened(cls, raw: Any, sql: str, args: Sequence[Any]) -> DeclaredCursor:
        """Declare the cursor for a query."""
        name = f"treefold_{next(_numbers)}"
        await raw.fetch(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", *args)
        return cls(raw, name)

    async def fetch(self, size: int) -> list[Any]:
        """The next rows."""
        return await self._raw.fetch(f"FETCH FORWARD {int(size)} FROM {self._name}")


async def drive(connection: PostgresConnection, operation: Operation[T]) -> T:
    """Run an operation to its end on a connection."""
    raw = connection.raw
    connection.started = connection.clock()
    try:
        statement = operation.send(None)
        while True:
            try:
                if statement.kind == "rows":
                    outcome: Any = await raw.fetch(statement.sql, *statement.args)
                else:
                    outcome = await _other(connection, statement)
            except _postgres_errors.FOREIGN as error:
                failure = _postgres_errors.translate(error)
                if isinstance(error, _postgres_errors.CONFUSED):
                    raw.terminate()
            else:
                statement = operation.send(outcome)
                continue
            statement = operation.throw(failure)
    except StopIteration as stop:
        return stop.value
    finally:
        connection.started = 0.0


async def _other(connection: PostgresConnection, statement: Statement) -> Any:
    raw = connection.raw
    if statement.kind == "script":
        return await raw.execute(statement.sql)
    if statement.kind == "raw":
        connection.tainted = True
        prepared = await raw.prepare(statement.sql, name="")
        rows = await prepared.fetch(*statement.args)
        return [attribute.name for attribute in prepared.get_attributes()], rows
    if statement.args:
        return _count(await raw.execute(statement.sql, *statement.args))
    # without arguments execute() would use the many-statement protocol
    prepared = await raw.prepare(statement.sql, name="")
    await prepared.fetch()
    return _count(prepared.get_statusmsg())


def _count(status: str) -> int:
    last = status.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


async def _chunk(cursor: Any, size: int) -> list[Any]:
    try:
        return await cursor.fetch(size)
    except _postgres_errors.FOREIGN as error:
        failure = _postgres_errors.translate(error)
    raise failure


async def drive_atomic(
    connection: PostgresConnection, operation: Operation[T], *, begin: str = "BEGIN"
) -> T:
    """Run an operation inside a transaction of its own."""
    await drive(connection, one(begin))
    try:
        outcome = await drive(connection, operation)
    except Exception:
        if not connection.raw.is_closed():
            await drive(connection, one("ROLLBACK"))
        raise
    await drive(connection, one("COMMIT"))
    return outcome


class PostgresDatabase(Database):
    """One PostgreSQL database."""

    name = "postgres"

    def __init__(
        self,
        alias: str,
        *,
        connect: dict[str, Any],
        size: int,
        timeout: float,
        statement_timeout: float,
        connect_timeout: float,
        pooler: str,
        regex: bool = False,
    ) -> None:
        dialect = Postgres()
        dialect.regex = regex
        super().__init__(alias, dialect)
        self._connect = {**connect, "timeout": connect_timeout}
        self._size = size
        self._timeout = timeout
        self._statement_timeout = statement_timeout
        self._pooler = pooler
        self.pooled = pooler == "transaction"
        self._pools: dict[tuple[Loop, bool], LoopPool] = {}
        self._home: Loop | None = None
        self._private = threading.local()
        self._private_loops: list[Loop] = []
        self._lock = threading.Lock()

    # -- pools and loops --------------------------------------------------------------------------

    def _pool(self, loop: Loop, *, read_only: bool) -> LoopPool:
        pool = self._pools.get((loop, read_only))
        return pool if pool is not None else self._new_pool(loop, read_only=read_only)

    def _new_pool(self, loop: Loop, *, read_only: bool) -> LoopPool:
        with self._lock:
            for key in [key for key in self._pools if key[0].is_closed()]:
                self._pools.pop(key).abandon()
            made = LoopPool(
                loop,
                connect=self._connect,
                size=self._size,
                timeout=self._timeout,
                read_only=read_only,
                statement_timeout=self._statement_timeout,
                pooler=self._pooler,
            )
            self._pools[loop, read_only] = made
            if loop not in self._private_loops:
                self._home = loop
            return made

    def _loop_for_blocking(self) -> Loop:
        home = self._home
        if home is not None and home.is_running() and asyncio._get_running_loop() is not home:
            return home
        loop: Loop | None = getattr(self._private, "loop", None)
        if loop is None or loop.is_closed():
            loop = asyncio.new_event_loop()
            self._private.loop = loop
            self._private_loops.append(loop)
        return loop

    def block_on(self, work: Coroutine[Any, Any, T], loop: Loop) -> T:
        """Run a coroutine on `loop`, blocking this thread."""
        if loop.is_running():
            if asyncio._get_running_loop() is loop:
                work.close()
                raise RuntimeError("A blocking call on the loop that would have to answer it")
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        outer = asyncio._get_running_loop()
        if outer is None:
            return loop.run_until_complete(work)
        asyncio._set_running_loop(
            None
        )  # blocking was allowed here: the private loop runs inside this call
        try:
            return loop.run_until_complete(work)
        finally:
            asyncio._set_running_loop(outer)

    # -- operations -------------------------------------------------------------------------------

    def run(self, operation: Operation[T], *, write: bool, atomic: bool, read_only: bool) -> T:
        work = self.arun(operation, write=write, atomic=atomic, read_only=read_only)
        return self.block_on(work, self._loop_for_blocking())

    async def arun(
        self, operation: Operation[T], *, write: bool, atomic: bool, read_only: bool
    ) -> T:
        if write and read_only:
            raise refused_write()
        loop = asyncio.get_running_loop()
        pool = self._pools.get((loop, read_only)) or self._new_pool(loop, read_only=read_only)
        connection = pool.take_now() or await pool.take()
        try:
            if read_only and self.pooled:  # elsewhere the connection itself is read-only
                outcome = await drive_atomic(connection, operation, begin="BEGIN READ ONLY")
            else:
                outcome = await (drive_atomic if atomic else drive)(connection, operation)
        except Exception:
            await pool.give(connection)
            raise
        except BaseException:  # cancelled in the middle: what the server still sends is nobody's
            # A COMMIT may be on its way: what comes next is not to meet the time before it.
            await finish_anyway(asyncio.wait([pool.discard(connection)]))
            raise
        if connection.tainted or pool.waiting:
            await pool.give(connection)
        else:
            pool.idle.append(connection)
        return outcome

    def checkout(self, *, write: bool) -> PostgresSession:
        return self.block_on(self.acheckout(write=write), self._loop_for_blocking())

    async def acheckout(self, *, write: bool) -> PostgresSession:
        pool = self._pool(asyncio.get_running_loop(), read_only=False)
        return PostgresSession(self, pool, pool.take_now() or await pool.take())

    def checkin(self, session: Session) -> None:
        if isinstance(session, PostgresSession):
            self.block_on(self.acheckin(session), session.loop)

    async def acheckin(self, session: Session) -> None:
        if not isinstance(session, PostgresSession):
            return
        if session.loop is not asyncio.get_running_loop():
            await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self.acheckin(session), session.loop)
            )
        elif session.connection.raw.is_in_transaction():
            session.pool.discard(session.connection)  # the end of the transaction was not reached
        else:
            await session.pool.give(session.connection)

    def begin(self, *, write: bool, isolation: str | None) -> str:
        level = _LEVELS[isolation]
        return f"BEGIN{level}" if write else f"BEGIN{level} READ ONLY"

    # -- the end ----------------------------------------------------------------------------------

    @property
    def in_use(self) -> bool:
        return bool(self._pools)

    def close(self) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            if pool.loop.is_closed():
                pool.abandon()
            elif pool.loop.is_running():
                if asyncio._get_running_loop() is pool.loop:
                    pool.abandon()
                else:
                    asyncio.run_coroutine_threadsafe(pool.close(), pool.loop).result(10)
            elif asyncio._get_running_loop() is None:
                pool.loop.run_until_complete(pool.close())
        for loop in self._private_loops:
            if not loop.is_running():
                loop.close()
        self._private_loops.clear()
        self._home = None

    async def leave_loop(self) -> None:
        here = asyncio.get_running_loop()
        for key in [key for key in self._pools if key[0] is here]:
            await finish_anyway(self._pools.pop(key).close())

    async def aclose(self) -> None:
        await self.leave_loop()
        if any(not loop.is_running() for loop in self._private_loops):
            await asyncio.to_thread(self._close_private)

    def _close_private(self) -> None:
        for loop in [loop for loop in self._private_loops if not loop.is_running()]:
            for key in [key for key in self._pools if key[0] is loop]:
                loop.run_until_complete(self._pools.pop(key).close())
            loop.close()
            self._private_loops.remove(loop)

    def forget(self) -> None:
        # kept alive and never touched: closing them would reach into the parent's event loops
        _inherited.append((self._pools, self._private_loops))
        self._pools = {}
        self._private_loops = []
        self._private = threading.local()
        self._home = None


_LEVELS = {
    None: "",
    "read committed": " ISOLATION LEVEL READ COMMITTED",
    "repeatable read": " ISOLATION LEVEL REPEATABLE READ",
    "serializable": " ISOLATION LEVEL SERIALIZABLE",
}
