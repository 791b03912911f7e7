"""INSERT, UPDATE and DELETE statements.

Statements over rows of a query touch exactly the rows the query selects: what a plain WHERE cannot
say (slices, joins) is said over the primary keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._compile.clauses import where_clause
from treefold_orm._compile.dialect import Dialect
from treefold_orm._compile.frame import Frame, NeedsJoin
from treefold_orm._compile.plan import Plan, finish
from treefold_orm._compile.select import key_select
from treefold_orm._compile.sql import (
    SQL,
    Builder,
    Encoder,
    column_name,
    column_type,
    join,
    number,
    table_name,
)
from treefold_orm._compile.state import Key, State, replay
from treefold_orm._compile.storage import given, read, stored
from treefold_orm._compile.values import expression, param
from treefold_orm._expressions.nodes import Expr, ParamNode
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Meta
from treefold_orm._fields.structured import ArrayField

AnyField = Field[Any]
Fields = tuple[AnyField, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """What an INSERT does about rows that exist: nothing, or update `update` where `target` is the
    same.
    """

    target: Fields = ()
    update: Fields = ()


def insert_plan(
    dialect: Dialect,
    meta: Meta,
    fields: Fields,
    *,
    returning: Fields = (),
    conflict: Conflict | None = None,
    rows: int = 1,
    encoded: bool = False,
) -> Plan:
    """Insert `rows` rows with one VALUES list; parameters come row by row, with `encoded` in the
    driver's form already.
    """
    builder = Builder()
    width = len(fields)
    encoders = [None if encoded else field.encoder(dialect.name) for field in fields]
    groups = [
        SQL(
            "({})",
            join(
                ", ",
                [
                    _mark(builder, dialect, field, row * width + i, encoders[i])
                    for i, field in enumerate(fields)
                ],
            ),
        )
        for row in range(rows)
    ]
    if not fields:
        source = SQL("DEFAULT VALUES")
    else:
        source = SQL("({}) VALUES {}", join(", ", map(column_name, fields)), join(", ", groups))
    statement = _insert(dialect, meta, source, returning=returning, conflict=conflict)
    return finish(builder, statement, dialect, given=rows * width)


def unnest_plan(
    dialect: Dialect,
    meta: Meta,
    fields: Fields,
    *,
    returning: Fields = (),
    conflict: Conflict | None = None,
) -> Plan:
    """Insert any number of rows on PostgreSQL: one array parameter for each column."""
    builder = Builder()
    marks = [
        SQL("{}::{}[]", builder.param(i, _array_encoder(field, dialect)), _array_type(field))
        for i, field in enumerate(fields)
    ]
    names = [SQL("c{}", number(i)) for i in range(len(fields))]
    values = [given(dialect, name, f) for name, f in zip(names, fields, strict=True)]
    source = SQL(
        "({}) SELECT {} FROM unnest({}) AS given ({})",
        join(", ", map(column_name, fields)),
        join(", ", values),
        join(", ", marks),
        join(", ", names),
    )
    statement = _insert(dialect, meta, source, returning=returning, conflict=conflict)
    return finish(builder, statement, dialect, given=len(fields))


def can_unnest(fields: Fields) -> bool:
    """Return True if all columns may travel as arrays; arrays of arrays would be flattened."""
    return bool(fields) and not any(isinstance(field, ArrayField) for field in fields)


def _mark(
    builder: Builder, dialect: Dialect, field: AnyField, place: int, encode: Encoder | None
) -> SQL:
    return given(dialect, builder.param(place, encode), field)


def _returned(dialect: Dialect, fields: Fields) -> SQL:
    return join(", ", [_returned_column(dialect, field) for field in fields])


def _returned_column(dialect: Dialect, field: AnyField) -> SQL:
    column = column_name(field)
    if dialect.name == "sqlite" and field.internal == "float":
        # it keeps a float without a fraction as an integer, and RETURNING tells that
        column = SQL("CAST({} AS REAL)", column)
    return read(dialect, column, field)


def _insert(
    dialect: Dialect, meta: Meta, source: SQL, *, returning: Fields, conflict: Conflict | None
) -> SQL:
    tail = SQL("") if conflict is None else _conflict(meta, conflict)
    if returning:
        tail = SQL("{} RETURNING {}", tail, _returned(dialect, returning))
    return SQL("INSERT INTO {} {}{}", table_name(meta), source, tail)


def _conflict(meta: Meta, conflict: Conflict) -> SQL:
    target = (
        SQL(" ({})", join(", ", map(column_name, conflict.target))) if conflict.target else SQL("")
    )
    if not conflict.update:
        return SQL(" ON CONFLICT{} DO NOTHING", target)
    sets = [SQL("{} = EXCLUDED.{}", column_name(f), column_name(f)) for f in conflict.update]
    if meta.version is not None and meta.version not in conflict.update:
        sets.append(_next_version(table_name(meta), meta.version))
    return SQL(" ON CONFLICT{} DO UPDATE SET {}", target, join(", ", sets))


def _next_version(table: SQL, version: AnyField) -> SQL:
    return SQL("{} = {}.{} + 1", column_name(version), table, column_name(version))


def _array_type(field: AnyField) -> SQL:
    # a cast to varchar(n) would cut longer text silently; the length was checked, and the column
    # checks again
    return SQL("text") if field.internal == "text" else column_type(field, "postgres")


def _array_encoder(field: AnyField, dialect: Dialect) -> Callable[[Any], Any] | None:
    encode = field.encoder(dialect.name)
    return (
        None
        if encode is None
        else lambda column: [None if v is None else encode(v) for v in column]
    )


def update_row_plan(
    dialect: Dialect, meta: Meta, fields: Fields, *, guard: AnyField | None = None
) -> Plan:
    """Update one row by key: parameters are the new values, the key, and the version expected."""
    builder = Builder()
    sets = [
        SQL("{} = {}", column_name(f), _mark(builder, dialect, f, i, f.encoder(dialect.name)))
        for i, f in enumerate(fields)
    ]
    known = meta.keys if guard is None else (*meta.keys, guard)
    tests = [
        SQL("{} = {}", column_name(f), builder.param(i, f.encoder(dialect.name)))
        for i, f in enumerate(known, len(fields))
    ]
    statement = SQL(
        "UPDATE {} SET {} WHERE {}", table_name(meta), join(", ", sets), join(" AND ", tests)
    )
    return finish(builder, statement, dialect, given=len(fields) + len(known))


def bulk_update_plan(dialect: Dialect, meta: Meta, fields: Fields, *, rows: int) -> Plan:
    """Update several rows by key at once; parameters are the key, the version expected where the
    model has one, and the values, row by row.
    """
    builder = Builder()
    alias = builder.alias()
    known = meta.keys if meta.version is None else (*meta.keys, meta.version)
    columns = (*known, *fields)
    width = len(columns)
    groups: list[SQL] = []
    for row in range(rows):
        cells = [
            dialect.cast(builder.param(row * width + i, f.encoder(dialect.name)), f)
            for i, f in enumerate(columns)
        ]
        groups.append(SQL("({})", join(", ", cells)))
    # both databases name the columns of a bare VALUES list column1, column2 and so on
    sets = [
        SQL("{} = {}", column_name(f), given(dialect, SQL("given.column{}", number(i)), f))
        for i, f in enumerate(fields, len(known) + 1)
    ]
    if meta.version is not None:
        sets.append(_next_version(alias, meta.version))
    same = [
        SQL("{}.{} = given.column{}", alias, column_name(f), number(i))
        for i, f in enumerate(known, 1)
    ]
    statement = SQL(
        "UPDATE {} AS {} SET {} FROM (VALUES {}) AS given WHERE {}",
        table_name(meta),
        alias,
        join(", ", sets),
        join(", ", groups),
        join(" AND ", same),
    )
    return finish(builder, statement, dialect, given=rows * width)


def update_plan(
    dialect: Dialect,
    key: Key,
    sets: tuple[tuple[AnyField, Expr], ...],
    *,
    given: int,
    returning: Fields = (),
) -> Plan:
    """Update the rows of a query; the statement gives `returning` back."""

    def statement(frame: Frame, where: Callable[[Frame], SQL]) -> SQL:
        pairs = [
            SQL("{} = {}", column_name(field), _assigned(frame, field, node))
            for field, node in sets
        ]
        text = SQL(
            "UPDATE {} AS {} SET {}{}",
            table_name(frame.meta),
            frame.alias,
            join(", ", pairs),
            where(frame),
        )
        if not returning:
            return text
        return SQL("{} RETURNING {}", text, _returned(dialect, returning))

    return _over_rows(dialect, key, statement, given=given)


def delete_plan(dialect: Dialect, key: Key, *, given: int) -> Plan:
    """Delete the rows of a query."""

    def statement(frame: Frame, where: Callable[[Frame], SQL]) -> SQL:
        return SQL("DELETE FROM {} AS {}{}", table_name(frame.meta), frame.alias, where(frame))

    return _over_rows(dialect, key, statement, given=given)


def _over_rows(
    dialect: Dialect,
    key: Key,
    statement: Callable[[Frame, Callable[[Frame], SQL]], SQL],
    *,
    given: int,
) -> Plan:
    state = replay(key)
    if state.rows != "instances" or state.combined:
        raise FieldError(
            "update() and delete() work on rows of the model: call them before values() and union()"
        )
    if state.simple and not state.joins:
        try:
            return _attempt(dialect, state, statement, where_clause_of(state), given=given)
        except NeedsJoin:
            pass  # a condition reaches into another table: say it over keys

    def by_keys(frame: Frame) -> SQL:
        return SQL(" WHERE {} IN ({})", frame.own(frame.meta.pk), key_select(frame, key))

    try:
        return _attempt(dialect, state, statement, by_keys, given=given)
    except NeedsJoin:
        raise FieldError("update() cannot take values from another table: use Subquery") from None


def where_clause_of(state: State) -> Callable[[Frame], SQL]:
    """The conditions of a state as a function of the frame they are written for."""
    return lambda frame: where_clause(frame, state)


def _attempt(
    dialect: Dialect,
    state: State,
    statement: Callable[[Frame, Callable[[Frame], SQL]], SQL],
    where: Callable[[Frame], SQL],
    *,
    given: int,
) -> Plan:
    builder = Builder()
    frame = Frame(builder, dialect, state.meta, joinable=False)
    return finish(builder, statement(frame, where), dialect, given=given)


def _assigned(frame: Frame, field: AnyField, node: Expr) -> SQL:
    if isinstance(node, ParamNode):
        return given(frame.dialect, param(frame, node, cast=False), field)
    value = expression(frame, node)
    return stored(frame.dialect, value, field) if field.storage else value
