"""PostgreSQL over asyncpg: connections held in a pool of our own, one for each event loop.

A connection goes back as it came; it is reset only after SQL of the caller's own. After a
cancelled or broken call it is closed, never reused. Synchronous calls cross to a loop once for
each operation: to the application's loop where one runs, else to a loop private to the thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from treefold_orm._base import interpreter
from treefold_orm._base.errors import ORMError
from treefold_orm._base.statement import CoroutineOf, Operation
from treefold_orm._dialects.postgres import Postgres
from treefold_orm._drivers import postgres_errors
from treefold_orm._drivers.base import (
    Cursor,
    Database,
    Session,
    build_read_only_error,
    finish_despite_cancellation,
    make_statement_operation,
)
from treefold_orm._drivers.postgres_execution import (
    DeclaredCursor,
    execute_atomic,
    execute_operation,
)
from treefold_orm._drivers.postgres_extremes import has_extreme_date, rewrite_dates_as_text
from treefold_orm._drivers.postgres_pool import LoopPool, PostgresConnection

T = TypeVar("T")
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

    @property
    def lost_transaction(self) -> bool:
        raw = self.connection.raw
        return not raw.is_closed() and not raw.is_in_transaction()

    @property
    def is_closed(self) -> bool:
        return bool(self.connection.raw.is_closed())

    def run(self, operation: Operation[T]) -> T:
        return self.database.block_on(execute_operation(self.connection, operation), self.loop)

    async def arun(self, operation: Operation[T]) -> T:
        return await self.run_on_connection_loop(execute_operation(self.connection, operation))

    async def run_on_connection_loop(self, work: CoroutineOf[T]) -> T:
        """Run `work` on the loop of the connection."""
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def fetch_chunks(
        self, sql: str, args: Sequence[object], *, size: int
    ) -> Iterator[Sequence[Any]]:
        cursor = self.database.block_on(self.open_cursor(sql, args), self.loop)
        while chunk := self.database.block_on(self.fetch_chunk(cursor, size), self.loop):
            yield chunk

    def create_cursor(self, sql: str, args: Sequence[object]) -> Cursor:
        return PostgresCursor(self, sql, args)

    async def open_cursor(self, sql: str, args: Sequence[object]) -> Any:
        """Run a statement; return the cursor of the driver."""
        try:
            # raised below, outside of the handler: as the context of the new error, the driver's
            # would show the values that it quotes
            if has_extreme_date(args):
                sql, args = await rewrite_dates_as_text(self.connection.raw, sql, args)
            # a transaction that has a cursor may not be begun again, which would lose it
            self.connection.opening = ()
            if self.database.pooled:
                return await DeclaredCursor.declare_cursor(self.connection.raw, sql, args)
            return await self.connection.raw.cursor(sql, *args)
        except postgres_errors.FOREIGN as error:
            failure = await self.connection.handle_driver_error(error)
        raise failure

    async def roll_back_and_checkin(self) -> None:
        """End a transaction that only read, and return this connection."""
        with suppress(ORMError):  # the next caller that takes a broken connection notices
            await self.arun(make_statement_operation("ROLLBACK"))
        await self.database.acheckin(self)

    async def fetch_chunk(self, cursor: Any, size: int) -> list[Any]:
        """Return the next rows of a cursor of the driver."""
        try:
            return await cursor.fetch(size)
        except postgres_errors.FOREIGN as error:
            failure = await self.connection.handle_driver_error(error)
        raise failure


class PostgresCursor(Cursor):
    """A cursor of a session's transaction, which ends it."""

    __slots__ = ("args", "opened", "session", "sql")

    def __init__(self, session: PostgresSession, sql: str, args: Sequence[object]) -> None:
        self.session = session
        self.sql = sql
        self.args = args
        self.opened: Any = None

    async def fetch_rows(self, size: int) -> Sequence[Any]:
        return await self.session.run_on_connection_loop(self._open_and_fetch(size))

    async def _open_and_fetch(self, size: int) -> list[Any]:
        if self.opened is None:
            self.opened = await self.session.open_cursor(self.sql, self.args)
        return await self.session.fetch_chunk(self.opened, size)

    async def close(self) -> None:
        self.opened = None

    def try_release_without_waiting(self) -> bool:
        session = self.session
        # a task can be made from the thread of its loop only
        if interpreter.running_loop() is not session.loop:
            return False
        session.pool.run_in_background(session.roll_back_and_checkin())
        return True


def parse_database_name(connect: Mapping[str, Any]) -> str:
    """Return the name of the database among the arguments for a connection, or an empty text."""
    address = urlsplit(str(connect.get("dsn") or ""))
    named = connect.get("database") or unquote(address.path[1:])
    named = named or dict(parse_qsl(address.query)).get("dbname")
    return str(named or os.environ.get("PGDATABASE", ""))


def describe_server(connect: dict[str, Any]) -> str:
    """Return host, port and database of the arguments for a connection, without any secret."""
    address = urlsplit(str(connect.get("dsn") or ""))
    query = dict(parse_qsl(address.query))
    # the last "@": a password that is not percent-encoded may hold one
    host = connect.get("host") or address.netloc.rpartition("@")[2] or query.get("host")
    port = connect.get("port") or query.get("port") or os.environ.get("PGPORT") or 5432
    name = parse_database_name(connect)
    host = str(host or os.environ.get("PGHOST") or "this machine's socket")
    # "[::1]" has colons of its own, so that a port is looked for behind the bracket only; the
    # folder of a socket has none
    if ":" not in host.rpartition("]")[2] and "/" not in host:
        host = f"{host}:{port}"
    return f"{host}, database {name or 'of the user'!r}"


class PostgresDatabase(Database):
    """One PostgreSQL database.

    Its connections belong to event loops. Async code uses the pool of its own loop. Blocking code
    of a thread uses the loop of the application (`_home`) if that runs, and else a private one.

    Attributes:
        place: host, port and database, for messages.
        pooled: True behind a pooler that gives each transaction another server connection.
    """

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
        self.place = describe_server(connect)
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

    @property
    def database(self) -> str:
        """The name of the database, as far as it is given."""
        return parse_database_name(self._connect) or "of_the_user"

    @property
    def database_address(self) -> str:
        """The server, the database and its schema, as they are given."""
        settings: Any = self._connect.get("server_settings") or {}
        options = urlsplit(str(self._connect.get("dsn") or "")).query
        return f"{self.place} {settings.get('search_path', '')} {options}"

    @property
    def connect_arguments(self) -> dict[str, Any]:
        """The arguments for a connection of the driver outside of any pool here."""
        return dict(self._connect)

    def with_database(self, name: str) -> PostgresDatabase:
        """Return another database of the same server under the same alias, login and options."""
        connect = {k: v for k, v in self._connect.items() if k not in ("database", "timeout")}
        if "dsn" in connect:
            address = urlsplit(str(connect["dsn"]))
            query = [pair for pair in parse_qsl(address.query) if pair[0] != "dbname"]
            connect["dsn"] = address._replace(
                path=f"/{quote(name, safe='')}", query=urlencode(query)
            ).geturl()
        else:
            connect["database"] = name
        return self._copy_with_options(connect, self._size, self._statement_timeout)

    def _copy_with_options(
        self, connect: dict[str, Any], size: int, statement_timeout: float
    ) -> PostgresDatabase:
        return PostgresDatabase(
            self.alias,
            connect=connect,
            size=size,
            timeout=self._timeout,
            statement_timeout=statement_timeout,
            connect_timeout=self._connect["timeout"],
            pooler=self._pooler,
            regex=self.dialect.regex,
        )

    # -- pools and loops --------------------------------------------------------------------------

    def _find_or_create_pool(self, loop: Loop, *, read_only: bool) -> LoopPool:
        pool = self._pools.get((loop, read_only))
        return pool if pool is not None else self._create_pool(loop, read_only=read_only)

    def _create_pool(self, loop: Loop, *, read_only: bool) -> LoopPool:
        with self._lock:
            # loops that ended without aclose(), as of asyncio.run(): nothing else frees the sockets
            for key in [key for key in self._pools if key[0].is_closed()]:
                self._pools.pop(key).abandon_connections()
            made = LoopPool(
                loop,
                connect=self._connect,
                place=self.place,
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

    def _find_or_create_blocking_loop(self) -> Loop:
        home = self._home
        # its connections are open already; from its own thread it would wait for itself for ever
        if home is not None and home.is_running() and interpreter.running_loop() is not home:
            return home
        loop: Loop | None = getattr(self._private, "loop", None)
        if loop is None or loop.is_closed():
            loop = asyncio.new_event_loop()
            self._private.loop = loop
            self._private_loops.append(loop)
        return loop

    def block_on(self, work: CoroutineOf[T], loop: Loop) -> T:
        """Run a coroutine on `loop`, blocking this thread."""
        if loop.is_running():
            if interpreter.running_loop() is loop:
                # else Python warns of a coroutine that was never awaited
                work.close()
                raise RuntimeError("A blocking call on the loop that would have to answer it")
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        if interpreter.running_loop() is None:
            return loop.run_until_complete(work)
        with interpreter.leave_running_loop():  # blocking was allowed: the private loop runs inside
            return loop.run_until_complete(work)

    # -- operations -------------------------------------------------------------------------------

    def run(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        work = self.arun(operation, write=write, read_only=read_only)
        return self.block_on(work, self._find_or_create_blocking_loop())

    async def arun(self, operation: Operation[T], *, write: bool, read_only: bool) -> T:
        if write and read_only:
            raise build_read_only_error()
        loop = asyncio.get_running_loop()
        pool = self._pools.get((loop, read_only)) or self._create_pool(loop, read_only=read_only)
        connection = pool.take_idle_connection() or await pool.take_connection()
        try:
            if read_only and self.pooled:  # elsewhere the connection itself is read-only
                outcome = await execute_atomic(connection, operation, begin="BEGIN READ ONLY")
            else:
                outcome = await execute_operation(connection, operation)
        except Exception:
            await pool.return_connection(connection)
            raise
        except (
            BaseException
        ):  # cancelled in the middle: no caller reads what the server still sends
            # A COMMIT may be on its way: what comes next is not to meet the time before it.
            await finish_despite_cancellation(asyncio.wait([pool.discard_connection(connection)]))
            raise
        # what return_connection() does, without a coroutine for each statement; a connection that
        # was closed meanwhile is noticed when it is taken
        if connection.tainted or pool.waiting:
            await pool.return_connection(connection)
        else:
            pool.idle.append(connection)
        return outcome

    def with_own_connections(self) -> PostgresDatabase:
        connect: dict[str, Any] = {k: v for k, v in self._connect.items() if k != "timeout"}
        # "0" and not left out, or a limit of the role or the database would apply
        settings = {**connect.get("server_settings", {}), "statement_timeout": "0"}
        if self.pooled:  # a pooler refuses connections with a setting that it does not know
            del settings["statement_timeout"]
        connect["server_settings"] = settings
        # a schema change makes prepared statements invalid, which a transaction does not survive
        connect["statement_cache_size"] = 0
        return self._copy_with_options(connect, 2, 0)

    def run_coroutine(self, session: Session, work: CoroutineOf[T]) -> T:
        assert isinstance(session, PostgresSession)  # noqa: S101 - it is one of this database
        return self.block_on(work, session.loop)

    def checkout(self, *, write: bool) -> PostgresSession:
        return self.block_on(self.acheckout(write=write), self._find_or_create_blocking_loop())

    async def acheckout(self, *, write: bool) -> PostgresSession:
        pool = self._find_or_create_pool(asyncio.get_running_loop(), read_only=False)
        connection = pool.take_idle_connection() or await pool.take_connection()
        return PostgresSession(self, pool, connection)

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
        else:  # one that is closed, or whose transaction did not reach its end, is not used again
            await session.pool.return_connection(session.connection)

    def begin_sql(self, *, write: bool, isolation: str | None) -> str:
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
                pool.abandon_connections()
            elif pool.loop.is_running():
                # this thread runs the loop, and would wait for a task that cannot start meanwhile
                if interpreter.running_loop() is pool.loop:
                    pool.abandon_connections()
                else:
                    asyncio.run_coroutine_threadsafe(pool.close(), pool.loop).result(10)
            # run_until_complete() refuses a thread that runs another loop
            elif interpreter.running_loop() is None:
                pool.loop.run_until_complete(pool.close())
        for loop in self._private_loops:
            if not loop.is_running():
                loop.close()
        self._private_loops.clear()
        self._home = None

    async def close_loop_connections(self) -> None:
        here = asyncio.get_running_loop()
        for key in [key for key in self._pools if key[0] is here]:
            await finish_despite_cancellation(self._pools.pop(key).close())

    async def aclose(self) -> None:
        await self.close_loop_connections()
        if any(not loop.is_running() for loop in self._private_loops):
            # in a thread without a loop, for run_until_complete() refuses one inside of another
            await asyncio.to_thread(self._close_private_loops)

    def _close_private_loops(self) -> None:
        for loop in [loop for loop in self._private_loops if not loop.is_running()]:
            for key in [key for key in self._pools if key[0] is loop]:
                loop.run_until_complete(self._pools.pop(key).close())
            loop.close()
            self._private_loops.remove(loop)

    def forget_connections(self) -> None:
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
