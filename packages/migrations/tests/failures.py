"""Failures at one statement of a run: killed, refused, locked, cut off, out of space, and rows that
another program writes at that moment.

All of them are real: a signal, an error that the server raises, a lock or a row of another
connection, a limit of pages. `failing` counts the statements of its block, and lets one fail.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from run_place import Place, orm_postgres

KINDS = {
    "sqlite": ("kill", "error", "full", "lock", "row"),
    "postgres": ("kill", "flying", "error", "full", "lost", "lock", "row"),
}
ERRORS = {"error": "XX000", "full": "53100"}  # internal_error, disk_full: appendix A of PostgreSQL
RAISE = "DO $$ BEGIN RAISE EXCEPTION 'a failure of the test' USING ERRCODE = '{code}'; END $$"


@dataclass
class Failure:
    """One failure: its kind, and the number of the statement from 1; 0 for none.

    Attributes:
        statements: how many statements have been sent.
        row: SQL of the row that another program writes, for the kind "row".
        written: True once it is written.
    """

    kind: str
    at: int
    row: str = ""
    statements: int = 0
    written: bool = False

    def due(self) -> bool:
        """Count a statement; return True where it is to fail."""
        self.statements += 1
        return self.statements == self.at


@contextmanager
def failing(place: Place, failure: Failure) -> Generator[None]:
    """Make a failure at one statement of the block."""
    make = failing_sqlite if place.engine == "sqlite" else failing_postgres
    with make(place, failure):
        yield


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# -- SQLite ---------------------------------------------------------------------------------------


@contextmanager
def failing_sqlite(place: Place, failure: Failure) -> Generator[None]:
    connect, others = sqlite3.connect, list[sqlite3.Connection]()

    def act(raw: Any) -> None:
        """Make the failure, before the statement of a connection."""
        if failure.kind == "kill":
            die()
        elif failure.kind == "error":
            raw.create_function("failure_of_the_test", 0, fail)
            sqlite3.Connection.execute(raw, "SELECT failure_of_the_test()")
        elif failure.kind == "full":
            pages = sqlite3.Connection.execute(raw, "PRAGMA page_count").fetchone()[0]
            sqlite3.Connection.execute(raw, f"PRAGMA max_page_count = {pages}")
        else:
            other = connect(place.address, timeout=0, isolation_level=None)
            others.append(other)
            sqlite3.Connection.execute(raw, "PRAGMA busy_timeout = 10")
            with suppress(sqlite3.Error):
                other.execute(failure.row if failure.kind == "row" else "BEGIN IMMEDIATE")
                failure.written = failure.kind == "row"

    def counted_connect(*args: Any, factory: Any = sqlite3.Connection, **options: Any) -> Any:
        class Counted(factory):
            def execute(self, *given: Any) -> Any:
                if failure.due():
                    act(self)
                parent: Any = super()
                return parent.execute(*given)

        return connect(*args, factory=Counted, **options)

    sqlite3.connect = counted_connect
    try:
        yield
    finally:
        sqlite3.connect = connect
        for other in others:
            other.close()


def fail() -> None:
    raise ValueError


# -- PostgreSQL -----------------------------------------------------------------------------------


@contextmanager
def failing_postgres(place: Place, failure: Failure) -> Generator[None]:
    import asyncpg.connection  # pyright: ignore[reportMissingTypeStubs] - it has no type information

    kind: Any = asyncpg.connection.Connection
    originals = {name: getattr(kind, name) for name in ("execute", "fetch")}
    beside = Beside(place)

    async def act(raw: Any, call: Callable[[], Any]) -> None:
        """Make the failure, before the statement of a connection, or while it runs."""
        if failure.kind in ERRORS:
            await originals["execute"](raw, RAISE.format(code=ERRORS[failure.kind]))
        elif failure.kind in ("kill", "flying"):
            if failure.kind == "flying":
                await asyncio.wait([asyncio.ensure_future(call())], timeout=0.001)
            die()
        elif failure.kind == "lost":
            beside.ask(f"SELECT pg_terminate_backend({raw.get_server_pid()}, 1000)")
        elif failure.kind == "row":
            failure.written = beside.ask(failure.row)
        else:
            beside.hold_tables()

    def counted(method: Any) -> Any:
        async def call(self: Any, *args: Any, **options: Any) -> Any:
            if asyncio.get_running_loop() is not beside.loop and failure.due():
                await act(self, lambda: method(self, *args, **options))
            return await method(self, *args, **options)

        return call

    for name, method in originals.items():
        setattr(kind, name, counted(method))
    try:
        yield
    finally:
        for name, method in originals.items():
            setattr(kind, name, method)
        beside.close()


class Beside:
    """Connections of another program, on a loop of their own."""

    def __init__(self, place: Place) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._place = place
        self._made: list[Any] = []

    def ask(self, sql: str) -> bool:
        """Run a statement; return False where it fails."""
        return self._wait(self._ask(sql))

    def hold_tables(self) -> None:
        """Lock each table of the project that can be had without waiting."""
        self.ask("SELECT 1")
        for (table,) in self._wait(self._made[-1].fetch(TABLES)):
            self._wait(self._ask("BEGIN", f'LOCK TABLE "{table}" IN {MODE} NOWAIT'))

    def close(self) -> None:
        for connection in self._made:
            self._wait(connection.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _ask(self, *statements: str) -> bool:
        settings = {"search_path": self._place.schema, "lock_timeout": "20ms", **LEFT}
        made: Any = await orm_postgres.driver.connect(self._place.address, server_settings=settings)
        self._made.append(made)
        try:
            for sql in statements:
                await made.execute(sql)
        except orm_postgres.driver.PostgresError:
            return False
        return True

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)


LEFT = {"idle_in_transaction_session_timeout": "300ms"}
"""The end of a lock: a step without a limit waits for it."""
MODE = "ACCESS EXCLUSIVE MODE"
TABLES = (
    "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname NOT LIKE 'treefold%' "
    "AND relnamespace = current_schema()::regnamespace"
)
