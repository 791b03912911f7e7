"""Steps that both databases take in the same words: tables created, altered and renamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from treefold_migrations._plan.changes import TableChange, ordered_renames
from treefold_migrations._plan.step import Step
from treefold_orm import schema
from treefold_orm.schema import quote


def text(value: str) -> str:
    """A literal."""
    return "'" + value.replace("'", "''") + "'"


def alter(table: str, clause: str, summary: str, *, lock: str = "") -> Step:
    """One ALTER TABLE."""
    sql = f"ALTER TABLE {quote(table)} {clause}"
    return Step(sql, lock=lock, table=table, summary=summary)


def carry_out(
    operation: schema.SchemaOperation, dialect: schema.Dialect, table: str, summary: str
) -> list[Step]:
    """The statements of an operation of the ORM."""
    return [
        Step(sql, table=table, summary=summary) for sql in schema.statements(operation, dialect)
    ]


def bare(table: schema.TableDef) -> schema.TableDef:
    """A table without what is created after it: its indexes and searches."""
    constraints = tuple(unique for unique in table.uniques if not unique.is_index)
    return replace(table, uniques=constraints, indexes=(), searches=())


def create_table(table: schema.TableDef, dialect: schema.Dialect) -> list[Step]:
    """Create a table without its indexes and searches."""
    create = schema.CreateTable(bare(table))
    return carry_out(create, dialect, table.name, f"create table {table.name}")


def create_indexes(
    table: str, creates: Iterable[schema.CreateIndex], dialect: schema.Dialect
) -> list[Step]:
    """Create indexes of a table."""
    return [
        step
        for create in creates
        for step in carry_out(create, dialect, table, f"create index {create.index.name}")
    ]


def create_searches(
    table: str, searches: Iterable[schema.SearchDef], dialect: schema.Dialect
) -> list[Step]:
    """Create searches of a table."""
    return [
        step
        for search in searches
        for step in carry_out(
            schema.CreateSearchIndex(search), dialect, table, f"create search {search.name}"
        )
    ]


def rename_tables(changes: Sequence[TableChange], *, lock: str = "") -> list[Step]:
    """Rename the tables that stay."""
    pairs = [(c.before.name, c.after.name) for c in changes if c.before and c.after]
    return [
        alter(old, f"RENAME TO {quote(new)}", f"rename table {old} to {new}", lock=lock)
        for old, new in ordered_renames(pairs, "treefold_table_")
    ]


def rename_columns(table: str, sources: Mapping[str, str], *, lock: str = "") -> list[Step]:
    """Rename the columns of a table, which are given with their names before."""
    pairs = [(old, new) for new, old in sources.items()]
    return [
        alter(
            table,
            f"RENAME COLUMN {quote(old)} TO {quote(new)}",
            f"rename column {table}.{old} to {new}",
            lock=lock,
        )
        for old, new in ordered_renames(pairs, "treefold_column_")
    ]
