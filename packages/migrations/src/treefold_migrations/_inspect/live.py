"""`read_schema` and `compare_database`: a live database in the ORM's records, and beside others.

PostgreSQL prints stored expressions in its own words. So that both sides are printed alike, the
wanted tables are created in the session's temporary schema, in a transaction that is always rolled
back: no list of rewriting rules is needed, whatever the server's version. SQLite keeps text as it
was written; there both texts are read by the same code and compared token by token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from treefold_migrations._inspect.compare import Comparison, Difference
from treefold_migrations._inspect.found import Catalog, InspectedTable, InspectError
from treefold_migrations._inspect.postgres import (
    create_and_read_temporary_tables,
    read_current_schema_oid,
    read_postgres_catalog,
)
from treefold_migrations._inspect.spelling import restore_wanted_spelling
from treefold_migrations._inspect.sql_text import canonicalize_sql
from treefold_migrations._inspect.sqlite import build_expected_tables, read_sqlite
from treefold_orm import DatabaseError
from treefold_orm.schema import HeldConnection, Operation, Statement, TableDef

Wanted = Mapping[str, TableDef]


def _return_unchanged(text: str) -> str:
    return text


def make_comparison(engine: str) -> Comparison:
    """Return how definitions of an engine are compared."""
    return Comparison(canonicalize_sql if engine == "sqlite" else _return_unchanged, engine)


def read_catalog_and_expected(
    engine: str, wanted: Wanted
) -> Operation[tuple[Catalog, dict[str, InspectedTable]]]:
    """Read a catalog, and the wanted tables as the same database would print them.

    The connection must be held, and outside of a transaction; none is left open, whatever happens:
    it would block others, such as a CREATE INDEX CONCURRENTLY, which waits for all of them.

    Raises `InspectError` where the database refuses a temporary table.
    """
    if engine == "sqlite":
        catalog = yield from read_sqlite()
        return catalog, build_expected_tables(wanted.values())
    # one snapshot for all queries: a table that is altered between two of them would not fit itself
    yield Statement("script", "BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        found = yield from _read_postgres_catalog_and_expected(wanted)
    except Exception:
        with suppress(DatabaseError):  # a lost connection has ended its transaction
            yield Statement("script", "ROLLBACK")
        raise
    yield Statement("script", "ROLLBACK")
    return found


def _read_postgres_catalog_and_expected(
    wanted: Wanted,
) -> Operation[tuple[Catalog, dict[str, InspectedTable]]]:
    schema = yield from read_current_schema_oid()
    if schema is None:
        raise InspectError(
            "The search_path must begin with a schema that exists; create it, or correct "
            "search_path"
        )
    try:
        printed = yield from create_and_read_temporary_tables(wanted.values())
    except DatabaseError as error:
        raise InspectError(
            "The tables of the history cannot be created as temporary tables, which the "
            f"comparison needs (it always rolls them back): {error}"
        ) from error
    catalog = yield from read_postgres_catalog(
        schema
    )  # with the same search_path: names print alike
    with_keys = {
        # temporary tables have none: a reference of theirs cannot point to a permanent table
        name: replace(found, table=replace(found.table, foreign_keys=wanted[name].foreign_keys))
        for name, found in printed.items()
    }
    return catalog, with_keys


def read_schema(alias: str = "default", wanted: Wanted | None = None) -> dict[str, TableDef]:
    """Return the tables behind an alias as the ORM's records.

    Args:
        alias: the database.
        wanted: tables whose spelling is taken over where the database means the same; without it,
            SQL is as the database prints it, and checks are checks of the table.

    Raises `InspectError` for a catalog that cannot be read.
    """
    with HeldConnection(alias) as held:
        return held.run(_read_tables_in_wanted_spelling(held.dialect.name, wanted or {}))


async def aread_schema(alias: str = "default", wanted: Wanted | None = None) -> dict[str, TableDef]:
    """`read_schema` for async code."""
    async with HeldConnection(alias) as held:
        return await held.arun(_read_tables_in_wanted_spelling(held.dialect.name, wanted or {}))


def compare_database(
    wanted: Wanted, alias: str = "default", *, ignored: Iterable[str] = ()
) -> list[Difference]:
    """Return how the database behind an alias differs from tables.

    Args:
        wanted: the tables that should be there.
        alias: the database.
        ignored: further tables that may be there, such as those of models with `managed = False`.

    Raises `InspectError` for a catalog that cannot be read or not be compared.
    """
    with HeldConnection(alias) as held:
        return held.run(_compare_catalog(held.dialect.name, wanted, frozenset(ignored)))


async def acompare_database(
    wanted: Wanted, alias: str = "default", *, ignored: Iterable[str] = ()
) -> list[Difference]:
    """`compare_database` for async code."""
    async with HeldConnection(alias) as held:
        return await held.arun(_compare_catalog(held.dialect.name, wanted, frozenset(ignored)))


def _compare_catalog(
    engine: str, wanted: Wanted, ignored: frozenset[str]
) -> Operation[list[Difference]]:
    catalog, printed = yield from read_catalog_and_expected(engine, wanted)
    return list(make_comparison(engine).compare_tables(printed, catalog, ignored=ignored))


def _read_tables_in_wanted_spelling(engine: str, wanted: Wanted) -> Operation[dict[str, TableDef]]:
    catalog, printed = yield from read_catalog_and_expected(engine, wanted)
    how = make_comparison(engine)
    return {
        name: restore_wanted_spelling(how, found, printed[name], wanted[name])
        if name in printed
        else found.table
        for name, found in catalog.tables.items()
    }
