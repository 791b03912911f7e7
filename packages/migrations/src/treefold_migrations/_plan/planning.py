"""From tables before and after to the steps between them: the same call for both databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace

from treefold_migrations._plan.changes import TableChange, change_of
from treefold_migrations._plan.conversion import Conversion
from treefold_migrations._plan.postgres import plan_postgres
from treefold_migrations._plan.sqlite import plan_sqlite
from treefold_migrations._plan.step import Step
from treefold_orm.schema import Dialect, TableDef

Version = tuple[int, int, int]


def plan_change(
    before: TableDef | None,
    after: TableDef | None,
    *,
    dialect: Dialect,
    renames: Mapping[str, str] | None = None,
    fills: Mapping[str, str] | None = None,
    conversions: Mapping[str, Conversion] | None = None,
    fresh: bool = False,
    sqlite_version: Version | None = None,
) -> list[Step]:
    """Return the steps from one table to another; None is no table.

    Args:
        before: The table as it is.
        after: The table as it will be.
        dialect: The database's.
        renames: Columns by their old name, with their new one.
        fills: SQL for the value of existing rows, by column after.
        conversions: How stored values change, by column after.
        fresh: True for a table that was created in the same migration.
        sqlite_version: The version to plan for, the one of this interpreter without it.
    """
    change = replace(
        change_of(before, after, renames),
        fills=fills or {},
        conversions=conversions or {},
        fresh=fresh,
    )
    return plan_changes([change], dialect=dialect, sqlite_version=sqlite_version)


def plan_changes(
    changes: Sequence[TableChange], *, dialect: Dialect, sqlite_version: Version | None = None
) -> list[Step]:
    """Return the steps of changes that belong together, such as a table and those that point to
    it.
    """
    real = [c for c in changes if c.before != c.after or c.conversions or c.fills]
    if dialect.name == "postgres":
        return plan_postgres(real, dialect)
    major, minor, patch = sqlite3.sqlite_version_info[:3]
    return plan_sqlite(real, dialect, sqlite_version or (major, minor, patch))
