"""Place: an empty database of either engine, for tests of the runner and for their scripts."""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treefold_orm import close_all, configure

ORM_TESTS = Path(__file__).parents[2] / "orm" / "tests"
LONG = os.environ.get("TREEFOLD_MIGRATIONS") == "long"


sys.path.append(str(ORM_TESTS))  # scripts have no conftest
orm_postgres: Any = importlib.import_module("orm_postgres")


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
        return asyncio.run(self._fetch(sql))

    async def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        settings = {"search_path": self.schema}
        connection: Any = await orm_postgres.driver.connect(self.address, server_settings=settings)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

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
