"""Statements of other packages, in the SQL of the driver, over the connections of the ORM.

A package that brings SQL of its own, such as a queue, sends it where the queries of the current
code go: inside a transaction it is part of it. On PostgreSQL:

    fetch_rows("default", "SELECT $1::int AS n", [1], async_name="...")  ->  [{"n": 1}]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.errors import ConfigurationError
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._runtime.connections import Backend, database_for
from treefold_orm._runtime.run import arun, run

if TYPE_CHECKING:
    from treefold_orm._drivers.postgres import PostgresDatabase

Rows = list[dict[str, Any]]


def fetch_rows(alias: str, sql: str, args: Sequence[object] = (), *, async_name: str) -> Rows:
    """Send one statement that may write, blocking this thread; return its rows by column.

    Args:
        alias: the database.
        sql: one statement, with the placeholders of the driver: `$1` or `?`. It must leave the
            settings of the session as they are.
        args: the values of the placeholders.
        async_name: the call for async code, which the error names: "`await aenqueue()`".

    Raises:
        SyncCallInAsync: this thread runs an event loop.
        DatabaseError: the database refuses the statement; `code` is the one of the server.
    """
    return run(alias, _fetch_dictionaries(alias, sql, args), async_name, write=True)


async def afetch_rows(alias: str, sql: str, args: Sequence[object] = ()) -> Rows:
    """`fetch_rows` for async code."""
    return await arun(alias, _fetch_dictionaries(alias, sql, args), write=True)


def _fetch_dictionaries(alias: str, sql: str, args: Sequence[object]) -> Operation[Rows]:
    if backend_of(alias) == "postgres":
        # "raw" would reset the session of the connection, a round trip after each statement
        return [dict(row) for row in (yield Statement("rows", sql, args))]
    names, rows = yield Statement("raw", sql, args)
    return [dict(zip(names, row, strict=True)) for row in rows]


def backend_of(alias: str) -> Backend:
    """Return the kind of a configured database, "sqlite" or "postgres".

    Raises:
        ConfigurationError: no database is configured under the alias.
    """
    return cast("Backend", database_for(alias).name)


def connect_arguments_of(alias: str) -> dict[str, Any]:
    """Return the arguments of `asyncpg.connect()` for a connection outside of the pool of the ORM.

    For what a connection of the pool cannot do, such as LISTEN. They hold the password.

    Raises:
        ConfigurationError: the database is not PostgreSQL.
    """
    if backend_of(alias) != "postgres":
        raise ConfigurationError(f"Database {alias!r} is SQLite, which has no server to connect to")
    return cast("PostgresDatabase", database_for(alias)).connect_arguments
