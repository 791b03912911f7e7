"""Place: an empty database of either engine, for tests of the runner and for their scripts."""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treefold_orm import close_all, configure

ORM_TESTS = Path(__file__).parents[2] / "orm" / "tests"
LONG = os.environ.get("TREEFOLD_MIGRATIONS") == "long"


sys.path.append(str(ORM_TESTS))  # scripts have no conftest
orm_postgres: Any = importlib.import_module("orm_postgres")


class Session:
    """A connection to PostgreSQL of the tests' own, for statements of many tests: to open one takes
    longer than most statements.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None
        self._schema: str | None = None

    def fetch(self, schema: str, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement in a schema; on another connection if the server has ended this one."""
        try:
            return self._loop.run_until_complete(self._fetch(schema, sql))
        except (orm_postgres.driver.PostgresConnectionError, orm_postgres.driver.InterfaceError):
            if self._connection is None or not self._connection.is_closed():
                raise
            self._connection = None
            return self._loop.run_until_complete(self._fetch(schema, sql))

    async def _fetch(self, schema: str, sql: str) -> list[tuple[Any, ...]]:
        if self._connection is None:
            connect = orm_postgres.driver.connect
            # plans of statements do not outlive the tables that tests replace
            self._connection = await connect(self._address, statement_cache_size=0)
            self._schema = None
        if schema != self._schema:
            set_path = "SELECT set_config('search_path', $1, false)"
            await self._connection.execute(set_path, schema)
            self._schema = schema
        return [tuple(row) for row in await self._connection.fetch(sql)]

    def close(self) -> None:
        """Close it; the next statement opens another one."""
        if self._connection is not None:
            self._loop.run_until_complete(self._connection.close())
            self._connection = None


_sessions: dict[tuple[int, int, str], Session] = {}
"""By process and thread, since a forked process and another thread need their own."""


def close_sessions() -> None:
    """Close the connections of this process, before a database is copied or dropped."""
    for (process, _, _), session in list(_sessions.items()):
        if process == os.getpid():
            session.close()


@dataclass(frozen=True)
class Place:
    """One empty database: `address` is a path or a URL, `schema` that of PostgreSQL."""

    engine: str
    address: str
    schema: str = ""

    def configure(self, **options: Any) -> None:
        """Make it the default database."""
        close_all()
        if self.engine == "sqlite":
            configure("sqlite", self.address, **options)
        else:
            settings = {"search_path": self.schema}
            configure(database=self.address, server_settings=settings, **options)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement on a connection of the tests' own."""
        if self.engine == "sqlite":
            connection = sqlite3.connect(self.address, timeout=5)
            try:
                with connection:
                    return connection.execute(sql).fetchall()
            finally:
                connection.close()
        key = (os.getpid(), threading.get_ident(), self.address)
        if key not in _sessions:
            _sessions[key] = Session(self.address)
        return _sessions[key].fetch(self.schema, sql)

    def tables(self) -> set[str]:
        """The names of the tables that are there."""
        if self.engine == "sqlite":
            found = self.ask("SELECT name FROM sqlite_master WHERE type = 'table'")
        else:
            found = self.ask(
                "SELECT relname::text FROM pg_class WHERE relkind = 'r' "
                f"AND relnamespace = '{self.schema}'::regnamespace"
            )
        return {name for (name,) in found} - {"sqlite_sequence"}
