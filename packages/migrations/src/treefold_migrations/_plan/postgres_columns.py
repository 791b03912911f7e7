"""Columns on PostgreSQL: added, dropped and altered.

A new column takes its value for existing rows as a default, which rewrites nothing; NOT NULL is
proved by a validated check first. A change of type that writes every row again refuses the values
that its conversion would round, cut or guess, where a row was written after the guard in front.

Example, a nullable column is filled in batches, and no row is read while the table is locked: the
constraint is validated beside running queries, and proves NOT NULL:

    >>> AlterField("book", "pages", fields.IntegerField(), fill=0)
    PostgreSQL: UPDATE "book" SET "pages" = 0 WHERE ctid = ANY (... LIMIT 5000))
    PostgreSQL: ALTER TABLE "book" ADD CONSTRAINT "treefold_filled_book_pages" CHECK (...) NOT VALID
    PostgreSQL: ALTER TABLE "book" VALIDATE CONSTRAINT "treefold_filled_book_pages"
    PostgreSQL: ALTER TABLE "book" ALTER COLUMN "pages" SET NOT NULL
    PostgreSQL: ALTER TABLE "book" DROP CONSTRAINT "treefold_filled_book_pages"
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from treefold_migrations._base.errors import PlanError
from treefold_migrations._plan.changes import columns_by_name, is_constant
from treefold_migrations._plan.conversion import Conversion
from treefold_migrations._plan.guards import no_nulls, no_rows
from treefold_migrations._plan.postgres_guards import misfits
from treefold_migrations._plan.postgres_parts import EXCLUSIVE, validated
from treefold_migrations._plan.postgres_rewrites import (
    NUMBERS,
    WRITES,
    is_volatile,
    rewrites_rows,
)
from treefold_migrations._plan.statements import alter, text
from treefold_migrations._plan.step import Step
from treefold_orm.schema import ColumnDef, Dialect, TableDef, column_clause, constraint_name, quote

if TYPE_CHECKING:
    from treefold_migrations._plan.alteration import Alteration

BATCH = 5000


def change_columns(work: Alteration, dialect: Dialect) -> list[Step]:
    """Bring the columns of a table to their state after."""
    table, steps = work.after, list[Step]()
    for column in work.current.columns:
        if column.name in work.dropped and column.name not in work.change.sources:
            sql = f"DROP COLUMN {quote(column.name)}"
            steps.append(_alter(table, sql, f"drop column {table.name}.{column.name}"))
    new = columns_by_name(work.after)
    for column in work.current.columns:
        if column.name in work.change.sources:
            steps += _change(work, column, new[column.name], dialect)
    for column in work.after.columns:
        if column.name not in work.change.sources:
            steps += _add(work, column, dialect)
    return steps


def _alter(table: TableDef, clause: str, summary: str) -> Step:
    return alter(table.name, clause, summary, lock=EXCLUSIVE)


def _of(table: TableDef, column: ColumnDef, action: str, what: str) -> Step:
    sql = f"ALTER COLUMN {quote(column.name)} {action}"
    return _alter(table, sql, f"{what} {table.name}.{column.name}")


def _change(work: Alteration, old: ColumnDef, new: ColumnDef, dialect: Dialect) -> list[Step]:
    table, steps = work.after, list[Step]()
    conversion = work.change.conversions.get(new.name)
    retyped = old.type != new.type
    default = old.default
    if retyped or (conversion is not None and not conversion.keeps):
        if conversion is None and not widens(old.type, new.type):
            raise PlanError(
                f"{table.name}.{new.name} cannot change from {old.type} to {new.type} without an "
                "expression for its values: give one with using="
            )
        if old.identity and not new.identity:
            steps.append(_of(table, new, "DROP IDENTITY IF EXISTS", "stop counting"))
        if old.default:
            steps.append(_of(table, new, "DROP DEFAULT", "drop the default of"))
            default = ""
        steps.append(_retype(work, old, new, conversion))
    elif old.identity and not new.identity:
        steps.append(_of(table, new, "DROP IDENTITY IF EXISTS", "stop counting"))
    if default != new.default:
        steps.append(_set_default(table, new))
    if old.null and not new.null:
        steps += _fill(work, new) + _require(work, new)
    if new.null and not old.null:
        steps.append(_of(table, new, "DROP NOT NULL", "allow NULL in"))
    if new.identity and not old.identity:
        steps += _count(table, new)
    return steps


def widens(old: str, new: str) -> bool:
    """True for a change of type that takes every value as it is."""
    order = ("smallint", "integer", "bigint")
    if old in order and new in order:
        return order.index(old) < order.index(new)
    if not old.startswith("varchar("):
        return False
    return new == "text" or (new.startswith("varchar(") and int(new[8:-1]) >= int(old[8:-1]))


def _retype(
    work: Alteration, old: ColumnDef, column: ColumnDef, conversion: Conversion | None
) -> Step:
    name, using, explain = quote(column.name), "", None
    if conversion is not None:
        explain = misfits(work.current, name, conversion)
        value = conversion.of(name)
        if conversion.misfit:
            misfit = conversion.misfit_of(name)
            value = f"CAST({name} AS {column.type})" if conversion.keeps else value
            value = f"CASE WHEN {misfit} THEN {_refusal(name, column)} ELSE {value} END"
        using = "" if value == name else f" USING {value}"
    what = f"change the type, to {column.type}, of"
    step = _of(work.after, column, f"TYPE {column.type}{using}", what)
    blocks = (using or rewrites_rows(old.type, column.type)) and not work.fresh
    return replace(step, explain=explain, blocks=WRITES if blocks else "")


def _refusal(name: str, column: ColumnDef) -> str:
    """An expression that fails, and that the server cannot compute before it reads a row."""
    zero = f"length(CAST({name} AS text)) * 0"
    return f"CAST(CAST(1 / ({zero}) AS text) AS {column.type})"


def _set_default(table: TableDef, column: ColumnDef) -> Step:
    if column.default:
        return _of(table, column, f"SET DEFAULT {column.default}", "set the default of")
    return _of(table, column, "DROP DEFAULT", "drop the default of")


def _fill(work: Alteration, column: ColumnDef) -> list[Step]:
    value = work.change.fills.get(column.name)
    if not value:
        return []
    table, name = quote(work.after.name), quote(column.name)
    where = f"{name} IS NULL" + ("" if is_constant(value) else f" AND ({value}) IS NOT NULL")
    summary = f"fill {work.after.name}.{column.name}"
    if work.fresh:
        sql = f"UPDATE {table} SET {name} = {value} WHERE {where}"
        return [Step(sql, table=work.after.name, summary=summary)]
    batch = f"SELECT ctid FROM {table} WHERE {where} LIMIT {BATCH}"
    return [
        Step(
            f"UPDATE {table} SET {name} = {value} WHERE ctid = ANY (ARRAY({batch}))",
            transactional=False,
            lock="ROW EXCLUSIVE",
            table=work.after.name,
            summary=f"{summary} in batches",
            repeat=True,
        )
    ]


def _require(work: Alteration, column: ColumnDef) -> list[Step]:
    table = work.after
    required = _of(table, column, "SET NOT NULL", "require a value in")
    if work.fresh:
        return [required]
    name = constraint_name("treefold_filled", table.name, column.name)
    clause = f"CONSTRAINT {quote(name)} CHECK ({quote(column.name)} IS NOT NULL)"
    return [
        *validated(table, name, clause, explain=no_nulls(table, column.name)),
        required,
        _alter(table, f"DROP CONSTRAINT {quote(name)}", f"drop constraint {name}"),
    ]


def _count(table: TableDef, column: ColumnDef) -> list[Step]:
    where = f"pg_get_serial_sequence({text(quote(table.name))}, {text(column.name)})"
    name, here = quote(column.name), quote(table.name)
    action = "ADD GENERATED BY DEFAULT AS IDENTITY"
    return [
        _of(table, column, action, "generate the values of"),
        Step(
            f"SELECT setval({where}, max({name})) FROM {here} HAVING max({name}) > 0",
            table=table.name,
            summary=f"go on counting {table.name}.{column.name} after its greatest value",
        ),
    ]


def _add(work: Alteration, column: ColumnDef, dialect: Dialect) -> list[Step]:
    table, fresh = work.after, work.fresh
    value = work.change.fills.get(column.name, "")
    bare = replace(column, checks=(), check_name="")
    summary = f"add column {table.name}.{column.name}"

    def added(shape: ColumnDef) -> Step:
        inner = replace(table, primary_key=())
        clause = column_clause(shape, inner, dialect)
        if shape.identity:
            clause += " GENERATED BY DEFAULT AS IDENTITY"
        return _alter(table, f"ADD COLUMN {clause}", summary)

    if column.identity:
        return [replace(added(bare), blocks="" if fresh else NUMBERS)]
    if value and is_constant(value):
        # the value of existing rows is kept in the catalog: no row is written
        steps = [added(replace(bare, default=value))]
        return steps if column.default == value else [*steps, _set_default(table, column)]
    if value:
        steps = [added(replace(bare, null=True, default=""))]
        steps += [_set_default(table, column)] if column.default else []
        return steps + _fill(work, column) + ([] if column.null else _require(work, column))
    if column.null or column.default:
        rewrites = column.default and is_volatile(column.default) and not fresh
        return [replace(added(bare), blocks=WRITES if rewrites else "")]
    return [replace(added(bare), explain=None if fresh else no_rows(table, column.name))]
