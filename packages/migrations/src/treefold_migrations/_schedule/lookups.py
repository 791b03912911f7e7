"""Lookups before step 1 of a file that commits between its steps: what can be known of its failure.

`AddField("book", "author", ForeignKey(..., db_default=99))` on PostgreSQL commits the column,
builds an index, and fails at the reference: so the row 99 of `author` is looked up first. Tables
and columns that the operations need, and modules that functions import, are looked up too. They
run as guards of the first unit.
"""

from __future__ import annotations

import dis
import importlib.util
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from treefold_migrations._base.errors import RunError
from treefold_migrations._files.history import LoadedMigration
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.columns import AddField, AlterField, DropField
from treefold_migrations._operations.custom import (
    RunPython,
    RunSQL,
    SeparateStateAndDatabase,
    may_change_schema_by_sql,
)
from treefold_migrations._plan.guards import escape_braces
from treefold_migrations._plan.statements import quote_literal
from treefold_migrations._plan.step import Step
from treefold_migrations._schedule.expanded import OperationsWithStates
from treefold_migrations._state.rendering import render_fill_sql, render_table
from treefold_migrations._state.schema_state import SchemaState, derive_column_name
from treefold_orm.schema import MISSING, Dialect, literal, quote


def build_prerequisite_checks(work: OperationsWithStates, dialect: Dialect) -> list[Step]:
    """Return steps that only verify: each fails where the file would fail later.

    Args:
        work: the operations of the file, or of one of its phases.
        dialect: the database's.
    """
    steps: list[Step] = []
    operations, states = work.operations, work.states
    # by the state before the file: a table that it creates itself cannot be missing
    touched = _find_needed_tables(operations, states[0])
    wanted = [pair for name in touched for pair in _list_columns(states[0], name)]
    if wanted:
        steps.append(_build_missing_column_guard(wanted, dialect))
    if dialect.name == "postgres":
        changed = list(_list_dropped_or_retyped_columns(work, dialect))
        steps += [_build_no_dependents_check(changed)] if changed else []
    for place, operation in enumerate(operations):
        if isinstance(operation, (RunPython, RunSQL, SeparateStateAndDatabase)):
            break  # which may make the rows that are missing
        if isinstance(operation, AddField) and operation.table in states[0]:
            steps += _build_default_target_row_check(
                operation, states[0], states[place + 1], dialect
            )
    return steps


def require_importable_modules(item: LoadedMigration, functions: Sequence[Any]) -> None:
    """Find each module that functions import, without running it.

    Raises:
        RunError: the module that is missing.
    """
    for function in functions:
        for module in _find_imported_modules(getattr(function, "__code__", None)):
            if not _module_exists(module):
                raise RunError(
                    f"Migration {item.name!r}: {function.__name__} imports {module!r}, which does "
                    "not exist; nothing of this file was applied. Correct the import"
                )


def _module_exists(module: str) -> bool:
    try:
        # imports the packages around the module, and raises where one of them is missing
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _find_imported_modules(code: CodeType | None) -> Iterator[str]:
    if code is None:
        return
    level: Any = 0
    before: list[Any] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            # IMPORT_NAME takes the level and the names from the two instructions in front of it
            level = before[-2] if len(before) > 1 else 0
            if level == 0:
                yield str(instruction.argval)
        before.append(instruction.argval)
    # functions inside of a function are constants of its code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _find_imported_modules(constant)


def _find_needed_tables(operations: Sequence[Operation], before: SchemaState) -> list[str]:
    """The tables that are there before the operations and that these need, each once."""
    found: dict[str, None] = {}
    for operation in operations:
        for name in sorted((operation.touches() or set()) | operation.relies_on()):
            table = name.partition("#")[0].partition(".")[0]
            if table in before and before.table(table).options.managed:
                found[table] = None
    return list(found)


def _list_columns(state: SchemaState, table: str) -> list[tuple[str, str]]:
    fields = state.table(table).fields.items()
    return [(table, derive_column_name(name, field)) for name, field in fields]


def _build_missing_column_guard(wanted: list[tuple[str, str]], dialect: Dialect) -> Step:
    values = ", ".join(f"({literal(t, dialect)}, {literal(c, dialect)})" for t, c in wanted)
    if dialect.name == "postgres":
        rows = f"(VALUES {values}) AS wanted (t, c)"
        there = (
            "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(t)) "
            # a dropped column keeps its row in the catalog
            "AND attname = c AND attnum > 0 AND NOT attisdropped"
        )
    else:
        rows = f"(SELECT column1 AS t, column2 AS c FROM (VALUES {values}))"  # noqa: S608 - literals
        # table_info leaves out generated columns; names of SQLite do not differ by case
        there = "SELECT 1 FROM pragma_table_xinfo(t) AS i WHERE lower(i.name) = lower(c)"
    return Step(
        "",
        summary="look for the tables and columns that the file needs",
        verify=f"SELECT t, c FROM {rows} WHERE NOT EXISTS ({there}) LIMIT 1",  # noqa: S608 - literals
        problem=(
            "the database has no column {0}.{1}, which an earlier file made; `migrations drift` "
            "lists what is missing. Bring it back by hand, and run again"
        ),
    )


def _list_dropped_or_retyped_columns(
    work: OperationsWithStates, dialect: Dialect
) -> Iterator[tuple[str, str]]:
    """The tables and columns there before the file that it drops or gives another type."""
    first = work.states[0]
    for place, operation in enumerate(work.operations):
        if may_change_schema_by_sql(operation):
            return  # which may drop the view that is in the way
        if not isinstance(operation, AlterField | DropField):
            continue
        before, after = work.states[place], work.states[place + 1]
        table, field = operation.table, before.table(operation.table).field(operation.name)
        column = derive_column_name(operation.name, field)
        if table not in first or (table, column) not in _list_columns(first, table):
            continue
        old, new = (
            {c.name: c.type for c in render_table(state, table, dialect).columns}
            for state in (before, after)
        )
        if old[column] != new.get(column):
            yield table, column


_FIND_DEPENDENTS = (
    "WITH wanted (t, c) AS (VALUES %s) "
    "SELECT t, c, pg_describe_object(d.classid, d.objid, d.objsubid) FROM wanted "
    "JOIN pg_attribute AS a ON a.attrelid = to_regclass(quote_ident(t)) AND a.attname = c "
    "JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass "
    "AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum "
    "LEFT JOIN pg_attrdef AS g ON d.classid = 'pg_attrdef'::regclass AND g.oid = d.objid "
    "WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_trigger'::regclass) "
    # a generated column; the default of the column itself goes with it
    "OR g.adnum <> a.attnum OR (d.classid = 'pg_class'::regclass "
    "AND d.objid = a.attrelid AND d.objsubid NOT IN (0, a.attnum)) LIMIT 1"
)


def _build_no_dependents_check(columns: list[tuple[str, str]]) -> Step:
    """The check that no view, rule, policy, trigger or generated column uses columns."""
    values = ", ".join(f"({quote_literal(t)}, {quote_literal(c)})" for t, c in columns)
    return Step(
        "",
        summary="look for what uses the columns that the file drops or converts",
        verify=_FIND_DEPENDENTS % values,
        problem=(
            "{0}.{1} is used by {2}, so that PostgreSQL refuses to drop the column or to change "
            "its type; drop what uses it with RunSQL before, and create it again behind"
        ),
    )


def _build_default_target_row_check(
    operation: AddField, before: SchemaState, after: SchemaState, dialect: Dialect
) -> Iterator[Step]:
    """The check that the row exists which the rows there will refer to."""
    column = derive_column_name(operation.name, operation.field)
    table = render_table(after, operation.table, dialect)
    keys = [key for key in table.foreign_keys if key.column == column]
    # a target that the same file creates has no rows yet
    if not keys or keys[0].target not in before:
        return
    value = next(c.default for c in table.columns if c.name == column)
    if operation.fill is not MISSING:
        value = render_fill_sql(after, operation.table, operation.name, operation.fill, dialect)
    # NULL refers to no row
    if not value or value == "NULL":
        return
    key = keys[0]
    target, here = quote(key.target), quote(operation.table)
    there = f"{quote(key.target_column)} = {value}"
    found = f"SELECT 1 FROM {target} WHERE {there}"  # noqa: S608 - quoted
    yield Step(
        "",
        table=key.target,
        summary=f"look for the default of {operation.table}.{operation.name}",
        verify=f"SELECT 1 FROM {here} WHERE NOT EXISTS ({found}) LIMIT 1",  # noqa: S608 - quoted
        problem=(
            f"the rows of {escape_braces(operation.table)} would refer to "
            f"{escape_braces(key.target)} "
            f"{escape_braces(value)}, which does not exist; create that row first, or choose "
            "another value"
        ),
    )
