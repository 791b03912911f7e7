"""Names that PostgreSQL gives by itself, after a table or column: primary keys, sequences and, from
version 18, NOT NULL constraints.

They follow a rename, so that a renamed table equals one that was created under its new name. The
name they have is looked up, since a database that migrations did not create may have others.

Example, a query finds each name, and writes the statement that the runner sends:

    >>> RenameTable("book", "volume")
    PostgreSQL: ALTER TABLE "book" RENAME TO "volume"
    PostgreSQL: SELECT format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', ... 'volume_pkey')
    FROM pg_constraint ...
"""

from __future__ import annotations

from treefold_migrations._plan.changes import TableChange
from treefold_migrations._plan.statements import quote_literal
from treefold_migrations._plan.step import Step
from treefold_orm.schema import MAX_IDENTIFIER, TableDef, quote


def derive_postgres_object_name(table: str, column: str, label: str) -> str:
    """The name that PostgreSQL chooses: `table_column_label`, both cut where it is too long."""
    first, second = table.encode(), column.encode()
    room = MAX_IDENTIFIER - len(label) - 1 - (1 if column else 0)
    one, two = len(first), len(second)
    # as makeObjectName of PostgreSQL: the longer one loses a byte, and the second one if both are
    # even
    while one + two > room:
        if one > two:
            one -= 1
        else:
            two -= 1
    # the limit counts bytes, and the server never cuts inside of a character
    parts = [first[:one].decode(errors="ignore"), second[:two].decode(errors="ignore"), label]
    return "_".join(part for part in parts if part)


def rename_implicit_objects(change: TableChange) -> list[Step]:
    """The steps after a table or its columns were renamed."""
    before, after = change.before, change.after
    if before is None or after is None:
        return []
    moved = before.name != after.name
    steps: list[Step] = []
    if moved:
        steps.append(_rename_primary_key(after))
    old = {column.name: column for column in before.columns}
    kept = [
        column
        for column in after.columns
        if column.name in change.sources and (moved or change.sources[column.name] != column.name)
    ]
    counted = [c.name for c in kept if old[change.sources[c.name]].identity]
    steps += [_rename_sequence(after, name) for name in counted]
    required = [c.name for c in kept if not old[change.sources[c.name]].null]
    return steps + ([_rename_not_null_constraints(after, required)] if required else [])


def _build_rename_step(sql: str, table: TableDef, object_label: str) -> Step:
    return Step(
        sql,
        lock="ACCESS EXCLUSIVE",
        table=table.name,
        summary=f"rename the {object_label} of {table.name}",
        generates=True,
    )


def _rename_primary_key(table: TableDef) -> Step:
    wanted = quote_literal(derive_postgres_object_name(table.name, "", "pkey"))
    return _build_rename_step(
        f"SELECT format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', conrelid::regclass, conname, "
        f"{wanted}) FROM pg_constraint WHERE conrelid = "
        f"{quote_literal(quote(table.name))}::regclass AND contype = 'p' AND conname <> {wanted}",
        table,
        "primary key",
    )


def _rename_sequence(table: TableDef, column: str) -> Step:
    wanted = quote_literal(derive_postgres_object_name(table.name, column, "seq"))
    return _build_rename_step(
        f"SELECT format('ALTER SEQUENCE %s RENAME TO %I', found.oid::regclass, {wanted}) "
        "FROM pg_class AS found WHERE found.oid = "
        f"pg_get_serial_sequence({quote_literal(quote(table.name))}, "
        f"{quote_literal(column)})::regclass AND found.relname <> {wanted}",
        table,
        f"sequence of {column}",
    )


def _rename_not_null_constraints(table: TableDef, columns: list[str]) -> Step:
    # PostgreSQL before 18 has no constraint 'n', so that the query finds none
    wanted = ", ".join(
        f"({quote_literal(column)},"
        f" {quote_literal(derive_postgres_object_name(table.name, column, 'not_null'))})"
        for column in columns
    )
    rename = "format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', conrelid::regclass, {}, {})"
    aside = "'renamed_' || oid"  # two columns may take over each other's names
    return _build_rename_step(
        "WITH found AS (SELECT c.oid, c.conrelid, c.conname, wanted.name FROM pg_constraint AS c "
        "JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] JOIN "
        f"(VALUES {wanted}) AS wanted (col, name) ON wanted.col = a.attname "
        f"WHERE c.conrelid = {quote_literal(quote(table.name))}::regclass AND c.contype = 'n' "
        f"AND c.conname <> wanted.name) SELECT sql FROM (SELECT 1 AS place, "
        f"{rename.format('conname', aside)} AS sql FROM found UNION ALL "
        f"SELECT 2, {rename.format(aside, 'name')} FROM found) AS renames ORDER BY place",
        table,
        "NOT NULL constraints",
    )
