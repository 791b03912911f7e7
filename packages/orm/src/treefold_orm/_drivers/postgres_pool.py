"""The pool of asyncpg connections of one event loop: last in, first out, reset only where needed.

It is used on its loop alone and needs no locks. A watch looks after statements that take long: it
asks whether the server still answers anybody, which is how a network that swallows packets is
noticed, and closes connections whose statement has run far longer than the server allows.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information

from treefold_orm._base.errors import ConnectionFailed, ORMError, PoolTimeout
from treefold_orm._base.statement import CoroutineOf
from treefold_orm._drivers.base import finish_despite_cancellation
from treefold_orm._drivers.postgres_errors import (
    CONFUSED,
    FOREIGN,
    OUTDATED,
    POSTGRES,
    translate_connect_error,
    translate_error,
)

_connect: Any = cast("Any", asyncpg).connect
# seconds the server has to stop a statement by itself before the connection is given up
GRACE = 2.0
# seconds of silence after which the pool looks whether the server still answers
SILENCE = 3.0


class PostgresConnection:
    """One asyncpg connection and its state in the pool.

    Attributes:
        raw: the connection of the driver.
        clock, place: the clock of its loop, and the server for messages.
        started: when its statement began, by that clock; 0.0 while none runs.
        tainted: True once SQL of the application's own ran on it, which may have left settings.
        opening: BEGIN and the savepoints, as long as nothing else has run in the transaction.
    """

    __slots__ = ("clock", "opening", "place", "pool", "raw", "started", "tainted")

    def __init__(self, raw: Any, pool: LoopPool) -> None:
        self.raw = raw
        self.pool = pool
        self.clock = pool.loop.time
        self.place = pool.place
        self.started = 0.0
        self.tainted = False
        self.opening: tuple[str, ...] = ()

    async def handle_driver_error(
        self, error: BaseException, *, is_schema_statement: bool = False
    ) -> ORMError:
        """Return the error to raise for one of the driver's, after acting on it."""
        self.opening = ()
        if isinstance(error, CONFUSED):
            self.raw.terminate()
        elif isinstance(error, OUTDATED):
            await self.pool.drop_prepared_statements()
        return translate_error(error, self.place, is_schema_statement=is_schema_statement)


# a connection  is in                            and comes there
# being opened  `_opening`, as a task            where fewer than `size` are open
# in use        `_all`                           by `take_connection()`
# idle          `_all` and `idle`                by `return_connection()`, if no task waits
# being closed  `_closing`, as a task            broken, in a transaction, or at the end
class LoopPool:
    """At most `size` connections for one loop.

    Attributes:
        idle: connections to be taken, the last returned first.
        waiting: tasks in line; each gets a connection, or None where a place became free.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        connect: dict[str, Any],
        place: str,
        size: int,
        timeout: float,
        statement_timeout: float,
        read_only: bool,
        pooler: str,
    ) -> None:
        self.loop = loop
        self.idle: list[PostgresConnection] = []
        self.waiting: deque[asyncio.Future[PostgresConnection | None]] = deque()
        self._size = size
        self._timeout = timeout
        self._statement_timeout = statement_timeout
        self._all: set[PostgresConnection] = set()
        self.place = place
        self._opening: set[asyncio.Task[PostgresConnection]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._end_of_loop: AsyncGenerator[None] | None = None
        # the timer that looks for slow statements, the task that asks whether the server answers
        # anybody, and when the last one ended
        self._watch: asyncio.TimerHandle | None = None
        self._probe: asyncio.Task[None] | None = None
        self._probed = 0.0
        self._shared = pooler == "transaction"
        self._arguments = _build_connect_arguments(
            connect, statement_timeout=statement_timeout, read_only=read_only, pooler=pooler
        )

    @property
    def connection_count(self) -> int:
        """How many connections are open or being opened."""
        return len(self._all) + len(self._opening)

    def take_idle_connection(self) -> PostgresConnection | None:
        """Take an idle connection if there is one that is still open."""
        while self.idle:
            connection = self.idle.pop()
            if not connection.raw.is_closed():
                return connection
            self._all.discard(connection)
        return None

    async def take_connection(self) -> PostgresConnection:
        """Take a connection, opening or waiting for one; `PoolTimeout` after the waiting time."""
        deadline = self.loop.time() + self._timeout
        while True:
            connection = self.take_idle_connection()
            if connection is not None:
                return connection
            if self.connection_count < self._size:
                return await self._open_connection_shielded()
            given = await self._wait_for_connection(deadline)
            # None: a place became free, which another task may take before this one runs
            if given is not None:
                return given

    async def _wait_for_connection(self, deadline: float) -> PostgresConnection | None:
        future: asyncio.Future[PostgresConnection | None] = self.loop.create_future()
        self.waiting.append(future)
        try:
            async with asyncio.timeout_at(deadline):
                return await future
        # of _terminate_and_fail_waiters(): the future holds no connection that had to be passed on
        except ORMError:
            raise
        except TimeoutError:
            self._withdraw_waiter_and_pass_on(future)
            raise PoolTimeout(
                f"No PostgreSQL connection became free within {self._timeout:g} s: raise "
                "pool_size or shorten transactions"
            ) from None
        except BaseException:
            self._withdraw_waiter_and_pass_on(future)
            raise

    def _withdraw_waiter_and_pass_on(
        self, future: asyncio.Future[PostgresConnection | None]
    ) -> None:
        if future in self.waiting:
            self.waiting.remove(future)
        # given a connection or a place just before it left: the next in line gets it
        elif future.done() and not future.cancelled():
            connection = future.result()
            if connection is None:
                self._wake_waiter(None)
            else:
                self._release_connection(connection)

    async def _open_connection_shielded(self) -> PostgresConnection:
        # A task of its own, and of no caller's context: a connection that no caller waits for any
        # more is opened all the same and left to the others, for one that is cancelled halfway
        # leaves futures of the driver behind, and a login for nothing.
        opening = self.loop.create_task(self._connect_to_server(), context=contextvars.Context())
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # cancelled by close() of the pool, not by the caller: that one must see another error
            if opening.cancelled() and not _is_current_task_cancelled():
                raise self._build_connection_error(
                    "the pool was closed while it was opened"
                ) from None
            opening.add_done_callback(self._reclaim_opened_connection)
            raise

    async def _connect_to_server(self) -> PostgresConnection:
        try:
            raw = await _connect(**self._arguments)
        except FOREIGN as error:
            failure = translate_connect_error(error, self.place)
        except BaseException:
            self.loop.call_soon(self._wake_waiter, None)
            raise
        else:
            connection = PostgresConnection(raw, self)
            self._all.add(connection)
            if self._end_of_loop is None:
                self._end_of_loop = self._await_closings_at_loop_end()
                # the first step tells the loop of the generator (PEP 525), to be closed at its end
                await anext(self._end_of_loop)
            self._schedule_watch()
            return connection
        self.loop.call_soon(self._wake_waiter, None)  # once this one does not count any more
        raise failure

    def _reclaim_opened_connection(self, opening: asyncio.Task[PostgresConnection]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._release_connection(opening.result())

    def _build_connection_error(self, reason: str) -> ORMError:
        return ConnectionFailed(f"The connection to PostgreSQL at {self.place} failed: {reason}")

    async def return_connection(self, connection: PostgresConnection) -> None:
        """Return a connection to the pool; reset it if SQL of the caller's own ran on it."""
        if connection.raw.is_closed() or connection.raw.is_in_transaction():
            self.discard_connection(connection)
            return
        if connection.tainted and self._shared:
            connection.tainted = False  # a reset would reach a server connection of another client
        if connection.tainted:
            connection.tainted = False
            try:
                await finish_despite_cancellation(connection.raw.reset())
            except FOREIGN:
                self.discard_connection(connection)
                return
            except BaseException:  # cancelled, and the reset is complete all the same
                self._release_connection(connection)
                raise
        self._release_connection(connection)

    def _release_connection(self, connection: PostgresConnection) -> None:
        if not self._wake_waiter(connection):
            self.idle.append(connection)

    def _wake_waiter(self, connection: PostgresConnection | None) -> bool:
        while self.waiting:
            future = self.waiting.popleft()
            if not future.done():
                future.set_result(connection)
                return True
        return False

    def discard_connection(self, connection: PostgresConnection) -> asyncio.Task[None]:
        """Close a connection that may be in the middle of something; its place is free at once.

        The task is done when the server is through with what it was asked.
        """
        self._all.discard(connection)
        task = self.run_in_background(_close_raw_connection(connection.raw))
        self._wake_waiter(None)
        return task

    def run_in_background(self, work: CoroutineOf[None]) -> asyncio.Task[None]:
        """Run work that no caller waits for, and that a loop which ends waits for."""
        task = self.loop.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _await_closings_at_loop_end(self) -> AsyncGenerator[None]:
        # a loop that ends cancels its tasks, and then closes its generators: the streams that
        # were read until then end their transactions in tasks that it would leave unfinished
        try:
            yield
        finally:
            await asyncio.sleep(0)  # until each of those streams is closed
            while self._closing:
                await asyncio.wait(self._closing)

    async def drop_prepared_statements(self) -> None:
        """Drop the prepared statements of all connections, for the tables have changed."""
        # without a pool of asyncpg each connection has to be told; reload_schema_state() does not
        # suspend, so that the set stays the same
        for connection in self._all:
            await connection.raw.reload_schema_state()

    def abandon_connections(self) -> None:
        """Drop all connections without waiting: their loop has ended or cannot be waited for."""
        self._stop_watch()
        for connection in self._all:
            # terminate() has the loop close the transport, which one that is closed refuses
            if self.loop.is_closed():
                # a transport of TLS has no socket of its own, and one that is closed has None
                with suppress(AttributeError):
                    connection.raw._transport._sock.close()
            else:
                connection.raw.terminate()
        self._all.clear()
        self.idle.clear()

    async def close(self) -> None:
        """Close all connections."""
        probes = [] if self._probe is None else [self._probe]
        self._stop_watch()
        connections, self._all = self._all, set()
        self.idle.clear()
        closing = [_close_raw_connection(connection.raw) for connection in connections]
        for opening in self._opening:
            opening.cancel()
        waiting = (*self._closing, *self._opening, *probes)
        await asyncio.gather(*closing, *waiting, return_exceptions=True)

    # -- the watch --------------------------------------------------------------------------------

    def _schedule_watch(self) -> None:
        if self._watch is None:
            self._watch = self.loop.call_later(1.0, self._terminate_overdue_connections)

    def _stop_watch(self) -> None:
        if self._watch is not None and not self.loop.is_closed():
            self._watch.cancel()
        self._watch = None
        if self._probe is not None and not self.loop.is_closed():
            self._probe.cancel()

    def _terminate_overdue_connections(self) -> None:
        self._watch = None
        now = self.loop.time()
        # 0.0 finds none: without a limit, a statement may take as long as it does
        limit = now - self._statement_timeout - GRACE if self._statement_timeout > 0 else 0.0
        for connection in self._find_long_running_connections(limit):
            connection.raw.terminate()
        if (
            now - self._probed > SILENCE
            and self._find_long_running_connections(now - SILENCE)
            and self._probe is None
        ):
            self._probe = self.loop.create_task(self._probe_server_and_terminate())
        if self._all:
            self._schedule_watch()

    def _find_long_running_connections(self, started_before: float) -> list[PostgresConnection]:
        # 0.0 says that no statement runs
        return [c for c in self._all if 0.0 < c.started < started_before]

    async def _probe_server_and_terminate(self) -> None:
        suspects = self._find_long_running_connections(self.loop.time() - SILENCE)
        try:
            raw = await _connect(**self._arguments)
        except FOREIGN as error:
            if not isinstance(error, POSTGRES):  # that would have been an answer
                # the idle ones too: each would keep the caller that takes it waiting
                self._terminate_and_fail_waiters(
                    {*suspects, *self.idle}, translate_connect_error(error, self.place)
                )
        else:
            await _close_raw_connection(raw)
        finally:
            self._probed = self.loop.time()
            self._probe = None

    def _terminate_and_fail_waiters(
        self, connections: set[PostgresConnection], failure: ORMError
    ) -> None:
        for connection in connections & self._all:
            connection.raw.terminate()
        waiting, self.waiting = self.waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_exception(failure)


def _build_connect_arguments(
    connect: dict[str, Any], *, statement_timeout: float, read_only: bool, pooler: str
) -> dict[str, Any]:
    # 100 and 300 seconds in asyncpg: rare statements would be prepared again and again
    cache = {"statement_cache_size": 1000, "max_cached_statement_lifetime": 0}
    arguments: dict[str, Any] = {**cache, **connect}
    if pooler == "transaction":  # the server connection behind it changes: nothing may stay there
        return {**arguments, "statement_cache_size": 0}
    settings = {"application_name": "treefold", **arguments.pop("server_settings", {})}
    if statement_timeout > 0:
        # milliseconds, as PostgreSQL reads a number without a unit
        settings.setdefault("statement_timeout", str(int(statement_timeout * 1000)))
    if read_only:
        settings["default_transaction_read_only"] = "on"
    return {**arguments, "server_settings": settings}


def _is_current_task_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _close_raw_connection(raw: Any) -> None:
    if raw.is_closed():
        return
    try:
        await raw.close(timeout=2.0)
    except (*FOREIGN, asyncio.CancelledError):
        raw.terminate()
