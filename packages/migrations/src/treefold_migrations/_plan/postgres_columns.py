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
from treefold_migrations._conversions.conversion import Conversion
from treefold_migrations._plan.changes import index_columns_by_name, is_sql_literal
from treefold_migrations._plan.guards import build_no_nulls_guard, build_no_rows_guard
from treefold_migrations._plan.postgres_guards import build_misfit_guard
from treefold_migrations._plan.postgres_parts import EXCLUSIVE, add_validated_constraint
from treefold_migrations._plan.postgres_rewrites import (
    NUMBERS,
    WRITES,
    is_volatile_default,
    type_change_rewrites_rows,
)
from treefold_migrations._plan.statements import alter_table, quote_literal
from treefold_migrations._plan.step import Step
from treefold_orm.schema import ColumnDef, Dialect, TableDef, column_clause, constraint_name, quote

if TYPE_CHECKING:
    from treefold_migrations._plan.alteration import TableAlteration

BATCH = 5000
"""Rows of one UPDATE, which stay locked until it ends."""


def plan_column_changes(work: TableAlteration, dialect: Dialect) -> list[Step]:
    """Bring the columns of a table to their state after."""
    table, steps = work.after, list[Step]()
    # dropped before others are added: a new column may take the name
    for column in work.current.columns:
        if column.name in work.dropped and column.name not in work.change.sources:
            sql = f"DROP COLUMN {quote(column.name)}"
            steps.append(_alter_table(table, sql, f"drop column {table.name}.{column.name}"))
    new = index_columns_by_name(work.after)
    for column in work.current.columns:
        if column.name in work.change.sources:
            steps += _plan_column_change(work, column, new[column.name], dialect)
    for column in work.after.columns:
        if column.name not in work.change.sources:
            steps += _add_column(work, column, dialect)
    return steps


def _alter_table(table: TableDef, clause: str, summary: str) -> Step:
    return alter_table(table.name, clause, summary, lock=EXCLUSIVE)


def _alter_column(table: TableDef, column: ColumnDef, action: str, what: str) -> Step:
    sql = f"ALTER COLUMN {quote(column.name)} {action}"
    return _alter_table(table, sql, f"{what} {table.name}.{column.name}")


def _plan_column_change(
    work: TableAlteration, old: ColumnDef, new: ColumnDef, dialect: Dialect
) -> list[Step]:
    table, steps = work.after, list[Step]()
    conversion = work.change.conversions.get(new.name)
    retyped = old.type != new.type
    default = old.default
    if retyped or (conversion is not None and not conversion.keeps_values):
        if conversion is None and not widens_type(old.type, new.type):
            raise PlanError(
                f"{table.name}.{new.name} cannot change from {old.type} to {new.type} without an "
                "expression for its values: give one with using="
            )
        # an identity column must be an integer, so that the type could not change before
        if old.identity and not new.identity:
            steps.append(_alter_column(table, new, "DROP IDENTITY IF EXISTS", "stop counting"))
        # "default for column cannot be cast automatically": the server does not convert it by USING
        if old.default:
            steps.append(_alter_column(table, new, "DROP DEFAULT", "drop the default of"))
            default = ""
        steps.append(_build_type_change(work, old, new, conversion))
    elif old.identity and not new.identity:
        steps.append(_alter_column(table, new, "DROP IDENTITY IF EXISTS", "stop counting"))
    if default != new.default:
        steps.append(_set_or_drop_default(table, new))
    # behind the default, or a row inserted meanwhile would have NULL again
    if old.null and not new.null:
        steps += _fill_existing_nulls(work, new) + _set_not_null(work, new)
    if new.null and not old.null:
        steps.append(_alter_column(table, new, "DROP NOT NULL", "allow NULL in"))
    if new.identity and not old.identity:
        steps += _add_identity(table, new)
    return steps


def widens_type(old: str, new: str) -> bool:
    """True for a change of type that takes every value as it is."""
    order = ("smallint", "integer", "bigint")
    if old in order and new in order:
        return order.index(old) < order.index(new)
    if not old.startswith("varchar("):
        return False
    return new == "text" or (new.startswith("varchar(") and int(new[8:-1]) >= int(old[8:-1]))


def _build_type_change(
    work: TableAlteration, old: ColumnDef, column: ColumnDef, conversion: Conversion | None
) -> Step:
    name, using, explain = quote(column.name), "", None
    if conversion is not None:
        explain = build_misfit_guard(work.current, name, conversion)
        value = conversion.render_value(name)
        # a row may be written between the guard and this lock: USING refuses it, where a cast would
        # round or cut its value
        if conversion.misfit:
            misfit = conversion.render_misfit_condition(name)
            value = f"CAST({name} AS {column.type})" if conversion.keeps_values else value
            failing = _build_failing_expression(name, column)
            value = f"CASE WHEN {misfit} THEN {failing} ELSE {value} END"
        using = "" if value == name else f" USING {value}"
    what = f"change the type, to {column.type}, of"
    step = _alter_column(work.after, column, f"TYPE {column.type}{using}", what)
    blocks = (using or type_change_rewrites_rows(old.type, column.type)) and not work.is_new
    return replace(step, explain=explain, blocks=WRITES if blocks else "")


def _build_failing_expression(name: str, column: ColumnDef) -> str:
    """An expression that fails, and that the server cannot compute before it reads a row."""
    # 1 / 0 is a constant, which the planner computes although no row reaches the branch
    zero = f"length(CAST({name} AS text)) * 0"
    return f"CAST(CAST(1 / ({zero}) AS text) AS {column.type})"


def _set_or_drop_default(table: TableDef, column: ColumnDef) -> Step:
    if column.default:
        return _alter_column(table, column, f"SET DEFAULT {column.default}", "set the default of")
    return _alter_column(table, column, "DROP DEFAULT", "drop the default of")


def _fill_existing_nulls(work: TableAlteration, column: ColumnDef) -> list[Step]:
    value = work.change.fills.get(column.name)
    if not value:
        return []
    table, name = quote(work.after.name), quote(column.name)
    # a value that is NULL for a row leaves it as it is, and the batches would find it for ever
    where = f"{name} IS NULL" + ("" if is_sql_literal(value) else f" AND ({value}) IS NOT NULL")
    summary = f"fill {work.after.name}.{column.name}"
    if work.is_new:
        sql = f"UPDATE {table} SET {name} = {value} WHERE {where}"
        return [Step(sql, table=work.after.name, summary=summary)]
    # UPDATE has no LIMIT; an array of ctid is read by TID scans, and works without a key
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


def _set_not_null(work: TableAlteration, column: ColumnDef) -> list[Step]:
    table = work.after
    required = _alter_column(table, column, "SET NOT NULL", "require a value in")
    if work.is_new:
        return [required]
    # SET NOT NULL reads the whole table under its lock, unless a valid check proves it
    name = constraint_name("treefold_filled", table.name, column.name)
    clause = f"CONSTRAINT {quote(name)} CHECK ({quote(column.name)} IS NOT NULL)"
    return [
        *add_validated_constraint(
            table, name, clause, failure_guard=build_no_nulls_guard(table, column.name)
        ),
        required,
        _alter_table(table, f"DROP CONSTRAINT {quote(name)}", f"drop constraint {name}"),
    ]


def _add_identity(table: TableDef, column: ColumnDef) -> list[Step]:
    where = (
        f"pg_get_serial_sequence({quote_literal(quote(table.name))}, {quote_literal(column.name)})"
    )
    name, here = quote(column.name), quote(table.name)
    action = "ADD GENERATED BY DEFAULT AS IDENTITY"
    return [
        _alter_column(table, column, action, "generate the values of"),
        Step(
            # HAVING: in an empty table max() is NULL, and a sequence does not take values below 1
            f"SELECT setval({where}, max({name})) FROM {here} HAVING max({name}) > 0",
            table=table.name,
            summary=f"go on counting {table.name}.{column.name} after its greatest value",
        ),
    ]


def _add_column(work: TableAlteration, column: ColumnDef, dialect: Dialect) -> list[Step]:
    table, fresh = work.after, work.is_new
    value = work.change.fills.get(column.name, "")
    # its check is added behind it, NOT VALID: in the clause the server would test it under the lock
    bare = replace(column, checks=(), check_name="")
    summary = f"add column {table.name}.{column.name}"

    def build_add_step(shape: ColumnDef) -> Step:
        # else the clause would say PRIMARY KEY, which the step of
        # `plan_constraint_and_index_additions` adds to the column
        inner = replace(table, primary_key=())
        clause = column_clause(shape, inner, dialect)
        if shape.identity:
            clause += " GENERATED BY DEFAULT AS IDENTITY"
        return _alter_table(table, f"ADD COLUMN {clause}", summary)

    if column.identity:
        return [replace(build_add_step(bare), blocks="" if fresh else NUMBERS)]
    if value and is_sql_literal(value):
        # the value of existing rows is kept in the catalog: no row is written
        steps = [build_add_step(replace(bare, default=value))]
        # the rows that are there keep the value when the default changes
        return steps if column.default == value else [*steps, _set_or_drop_default(table, column)]
    if value:
        # the default comes behind the column: in the clause it would fill the rows instead of the
        # value
        steps = [build_add_step(replace(bare, null=True, default=""))]
        steps += [_set_or_drop_default(table, column)] if column.default else []
        filled = steps + _fill_existing_nulls(work, column)
        return filled if column.null else filled + _set_not_null(work, column)
    if column.null or column.default:
        # a default that is the same for every row is kept in the catalog since PostgreSQL 11
        rewrites = column.default and is_volatile_default(column.default) and not fresh
        return [replace(build_add_step(bare), blocks=WRITES if rewrites else "")]
    explain = None if fresh else build_no_rows_guard(table, column.name)
    return [replace(build_add_step(bare), explain=explain)]
