"""Empty databases for tests of catalogs, each under an alias of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from treefold_orm import close_all, configure
from treefold_orm.schema import (
    Meta,
    Operation,
    Statement,
    TableDef,
    database_for,
    plan_tables,
    run,
    statements,
    table_of,
)

_numbers = itertools.count()


class Place:
    """An empty database (SQLite) or schema (PostgreSQL), under an alias of its own."""

    def __init__(self, engine: str, alias: str) -> None:
        self.engine = engine
        self.alias = alias
        self.dialect = database_for(alias).dialect

    def do(self, *statements: str) -> None:
        """Run statements."""

        def done() -> Operation[None]:
            for sql in statements:
                yield Statement("script", sql)

        run(self.alias, done(), "", write=True)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""

        def asked() -> Operation[list[tuple[Any, ...]]]:
            rows = yield Statement("rows", sql)
            return [tuple(row) for row in rows]

        return run(self.alias, asked(), "")

    def create(self, metas: Iterable[Meta]) -> dict[str, TableDef]:
        """Create tables as `create_all` does; return their records."""
        found = list(metas)
        for operation in plan_tables(found, self.dialect):
            self.do(*statements(operation, self.dialect))
        return {meta.table_name: table_of(meta, self.dialect) for meta in found}


@pytest.fixture
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    """Make an empty database of an engine."""
    schemas: list[Place] = []

    def make(engine: str) -> Place:
        alias = f"inspect{next(_numbers)}"
        if engine == "sqlite":
            configure("sqlite", str(tmp_path / f"{alias}.sqlite3"), alias=alias)
            return Place("sqlite", alias)
        dsn: str = request.getfixturevalue("postgres_dsn")
        configure("postgres", dsn, alias=alias, server_settings={"search_path": alias})
        schemas.append(Place("postgres", alias))
        schemas[-1].do(f"CREATE SCHEMA {alias}")
        return schemas[-1]

    yield make
    for made in schemas:
        made.do(f"DROP SCHEMA {made.alias} CASCADE")
    close_all()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, make_place: Callable[[str], Place]) -> Place:
    return make_place(request.param)
