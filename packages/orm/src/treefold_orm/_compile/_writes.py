"""INSERT, UPDATE and DELETE statements.

Statements over rows of a query touch exactly the rows the query selects: what a plain WHERE cannot
say (slices, joins) is said over the primary keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treefold_orm._compile._clauses import where_clause
from treefold_orm._compile._dialect import Dialect
from treefold_orm._compile._frame import Frame, NeedsJoin
from treefold_orm._compile._nodes import Expr, ParamNode
from treefold_orm._compile._plan import Plan, finish
from treefold_orm._compile._select import key_select
from treefold_orm._compile._sql import (
    SQL,
    Builder,
    column_name,
    column_type,
    join,
    number,
    table_name,
)
from treefold_orm._compile._state import Key, State, replay
from treefold_orm._compile._values import expression, param
from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field
from treefold_orm._fields._structured import ArrayField
from treefold_orm._meta import Meta

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
) -> Plan:
    """Insert `rows` rows with one VALUES list; parameters come row by row."""
    builder = Builder()
    width = len(fields)
    encoders = [field.encoder(dialect.name) for field in fields]
    groups = [
        SQL("({})", join(", ", [builder.param(row * width + i, encoders[i]) for i in range(width)]))
        for row in range(rows)
    ]
    if not fields:
        source = SQL("DEFAULT VALUES")
    else:
        source = SQL("({}) VALUES {}", join(", ", map(column_name, fields)), join(", ", groups))
    statement = _insert(meta, source, fields, returning=returning, conflict=conflict)
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
    source = SQL(
        "({}) SELECT {} FROM unnest({}) AS given ({})",
        join(", ", map(column_name, fields)),
        join(", ", names),
        join(", ", marks),
        join(", ", names),
    )
    statement = _insert(meta, source, fields, returning=returning, conflict=conflict)
    return finish(builder, statement, dialect, given=len(fields))


def can_unnest(fields: Fields) -> bool:
    """Whether every column may travel as an array; arrays of arrays would be flattened."""
    return bool(fields) and not any(isinstance(field, ArrayField) for field in fields)


def _insert(
    meta: Meta, source: SQL, fields: Fields, *, returning: Fields, conflict: Conflict | None
) -> SQL:
    tail = SQL("") if conflict is None else _conflict(meta, conflict)
    if returning:
        tail = SQL("{} RETURNING {}", tail, join(", ", map(column_name, returning)))
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
        SQL("{} = {}", column_name(f), builder.param(i, f.encoder(dialect.name)))
        for i, f in enumerate(fields)
    ]
    where = SQL(
        "{} = {}", column_name(meta.pk), builder.param(len(fields), meta.pk.encoder(dialect.name))
    )
    if guard is not None:
        where = SQL(
            "{} AND {} = {}", where, column_name(guard), builder.param(len(fields) + 1, None)
        )
    statement = SQL("UPDATE {} SET {} WHERE {}", table_name(meta), join(", ", sets), where)
    return finish(builder, statement, dialect, given=len(fields) + 1 + (guard is not None))


def bulk_update_plan(dialect: Dialect, meta: Meta, fields: Fields, *, rows: int) -> Plan:
    """Update several rows by key at once; parameters are the key, the version expected where the
    model has one, and the values, row by row.
    """
    builder = Builder()
    alias = builder.alias()
    known = (meta.pk,) if meta.version is None else (meta.pk, meta.version)
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
        SQL("{} = given.column{}", column_name(f), number(i))
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
    dialect: Dialect, key: Key, sets: tuple[tuple[AnyField, Expr], ...], *, given: int
) -> Plan:
    """Update the rows of a query."""

    def statement(frame: Frame, where: Callable[[Frame], SQL]) -> SQL:
        pairs = [
            SQL("{} = {}", column_name(field), _assigned(frame, field, node))
            for field, node in sets
        ]
        return SQL(
            "UPDATE {} AS {} SET {}{}",
            table_name(frame.meta),
            frame.alias,
            join(", ", pairs),
            where(frame),
        )

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
        return param(frame, node, cast=False)
    value = expression(frame, node)
    if frame.dialect.name == "sqlite":
        from treefold_orm._compile._sqlite_arithmetic import rescaled

        return rescaled(value, node.field, field)
    return value
