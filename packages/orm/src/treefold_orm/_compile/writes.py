"""INSERT, UPDATE and DELETE statements.

Statements over rows of a query touch exactly the rows the query selects: what a plain WHERE cannot
say (slices, joins) is said over the primary keys.

Example, plain rows, and rows that only their keys can tell from others:

    >>> Article.objects.filter(title="x").update(views=F("views") + 1)
    SQLite: UPDATE "article" AS t0 SET "views" = treefold_fit(treefold_whole((t0."views" + ?)), 0,
    -2147483648, 2147483647) WHERE t0."title" = ?
    PostgreSQL: UPDATE "article" AS t0 SET "views" = ((t0."views")::bigint + ($1)::bigint) WHERE
    t0."title" = $2

    >>> Article.objects.order_by("views")[:1].delete()
    SQLite: DELETE FROM "article" AS t0 WHERE t0."id" IN (SELECT t1."id" FROM "article" AS t1 ORDER
    BY t1."views" ASC LIMIT ?)
    PostgreSQL: DELETE FROM "article" AS t0 WHERE t0."id" IN (SELECT t1."id" FROM "article" AS t1
    ORDER BY t1."views" ASC LIMIT $1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._compile.clauses import build_where_clause
from treefold_orm._compile.frame import Frame, NeedsJoin
from treefold_orm._compile.state import replay_steps
from treefold_orm._compile.values import build_param
from treefold_orm._compile.writing import build_expression, build_primary_key_select
from treefold_orm._decode.plan import Plan, build_plan_from_statement
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import (
    SQL,
    Encoder,
    StatementBuilder,
    join_sql,
    quote_column,
    quote_table,
    render_integer,
    render_query_type,
)
from treefold_orm._dialects.storage import (
    convert_from_storage_if_needed,
    convert_param_to_storage,
    convert_to_storage,
)
from treefold_orm._expressions.nodes import Expr, Key, ParamNode
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.meta import Meta
from treefold_orm._fields.structured import ArrayField

Where = Callable[[Frame], SQL]


@dataclass(frozen=True, slots=True)
class Conflict:
    """The action of an INSERT on rows that exist: nothing, or update `update` where `target` is the
    same.
    """

    target: Fields = ()
    update: Fields = ()


def build_insert_plan(
    dialect: Dialect,
    meta: Meta,
    fields: Fields,
    *,
    returning: Fields = (),
    conflict: Conflict | None = None,
    row_count: int = 1,
    params_encoded: bool = False,
) -> Plan:
    """Insert `row_count` rows with one VALUES list; parameters come row by row, with
    `params_encoded` in the driver's form already.
    """
    builder = StatementBuilder()
    # neither database takes `() VALUES ()`
    source = SQL("DEFAULT VALUES")
    if fields:
        pairs = [
            (f, None if params_encoded else f.encoder(dialect.name)) for f in fields
        ] * row_count
        places = enumerate(pairs)
        cells = [_build_placeholder(builder, dialect, f, i, encode) for i, (f, encode) in places]
        names = join_sql(", ", map(quote_column, fields))
        values = _build_value_rows(cells, len(fields))
        source = SQL("({}) VALUES {}", names, values)
    statement = _build_insert(dialect, meta, source, returning=returning, conflict=conflict)
    return build_plan_from_statement(builder, statement, dialect, given=row_count * len(fields))


def build_unnest_insert_plan(
    dialect: Dialect,
    meta: Meta,
    fields: Fields,
    *,
    returning: Fields = (),
    conflict: Conflict | None = None,
) -> Plan:
    """Insert any number of rows on PostgreSQL: one array parameter for each column."""
    builder = StatementBuilder()
    marks = [
        SQL(
            "{}::{}[]",
            builder.bind_param(i, _make_array_encoder(field, dialect)),
            _build_array_element_type(field),
        )
        for i, field in enumerate(fields)
    ]
    names = [SQL("c{}", render_integer(i)) for i in range(len(fields))]
    values = [
        convert_param_to_storage(dialect, name, f) for name, f in zip(names, fields, strict=True)
    ]
    source = SQL(
        "({}) SELECT {} FROM unnest({}) AS given ({})",
        join_sql(", ", map(quote_column, fields)),
        join_sql(", ", values),
        join_sql(", ", marks),
        join_sql(", ", names),
    )
    statement = _build_insert(dialect, meta, source, returning=returning, conflict=conflict)
    return build_plan_from_statement(builder, statement, dialect, given=len(fields))


def can_unnest(fields: Fields) -> bool:
    """Return True if all columns may travel as arrays; arrays of arrays would be flattened."""
    return bool(fields) and not any(isinstance(field, ArrayField) for field in fields)


def _build_value_rows(cells: list[SQL], width: int) -> SQL:
    """The rows of a VALUES list."""
    starts = range(0, len(cells), width)
    return join_sql(", ", [SQL("({})", join_sql(", ", cells[at : at + width])) for at in starts])


def _build_placeholder(
    builder: StatementBuilder, dialect: Dialect, field: AnyField, place: int, encode: Encoder | None
) -> SQL:
    return convert_param_to_storage(dialect, builder.bind_param(place, encode), field)


def _build_returning(dialect: Dialect, fields: Fields) -> SQL:
    return join_sql(", ", [_build_returned_column(dialect, field) for field in fields])


def _build_returned_column(dialect: Dialect, field: AnyField) -> SQL:
    column = quote_column(field)
    if dialect.name == "sqlite" and field.internal == "float":
        # it keeps a float without a fraction as an integer, and RETURNING tells that
        column = SQL("CAST({} AS REAL)", column)
    return convert_from_storage_if_needed(dialect, column, field)


def _build_insert(
    dialect: Dialect, meta: Meta, source: SQL, *, returning: Fields, conflict: Conflict | None
) -> SQL:
    tail = SQL("") if conflict is None else _build_conflict_clause(meta, conflict)
    if returning:
        tail = SQL("{} RETURNING {}", tail, _build_returning(dialect, returning))
    return SQL("INSERT INTO {} {}{}", quote_table(meta), source, tail)


def _build_conflict_clause(meta: Meta, conflict: Conflict) -> SQL:
    target = SQL("")
    if conflict.target:
        target = SQL(" ({})", join_sql(", ", map(quote_column, conflict.target)))
    if not conflict.update:
        return SQL(" ON CONFLICT{} DO NOTHING", target)
    sets = [SQL("{} = EXCLUDED.{}", quote_column(f), quote_column(f)) for f in conflict.update]
    # an upsert counts as a write: a save() of what was read before it has to be refused
    if meta.version is not None and meta.version not in conflict.update:
        sets.append(_build_version_increment(quote_table(meta), meta.version))
    return SQL(" ON CONFLICT{} DO UPDATE SET {}", target, join_sql(", ", sets))


def _build_version_increment(table: SQL, version: AnyField) -> SQL:
    # the bare name would be ambiguous beside EXCLUDED
    return SQL("{} = {}.{} + 1", quote_column(version), table, quote_column(version))


def _build_array_element_type(field: AnyField) -> SQL:
    # a cast to varchar(n) would cut longer text silently; the length was checked, and the column
    # checks again
    return SQL("text") if field.internal == "text" else render_query_type(field, "postgres")


def _make_array_encoder(field: AnyField, dialect: Dialect) -> Callable[[Any], Any] | None:
    encode = field.encoder(dialect.name)
    if encode is None:
        return None
    return lambda column: [None if v is None else encode(v) for v in column]


def build_row_update_plan(
    dialect: Dialect, meta: Meta, fields: Fields, *, version_field: AnyField | None = None
) -> Plan:
    """Update one row by key: parameters are the new values, the key, and the version expected."""
    builder = StatementBuilder()
    given = [(f, f.encoder(dialect.name)) for f in fields]
    values = [_build_placeholder(builder, dialect, f, i, e) for i, (f, e) in enumerate(given)]
    sets = [SQL("{} = {}", quote_column(f), v) for f, v in zip(fields, values, strict=True)]
    known = meta.keys if version_field is None else (*meta.keys, version_field)
    tests = [
        SQL("{} = {}", quote_column(f), builder.bind_param(i, f.encoder(dialect.name)))
        for i, f in enumerate(known, len(fields))
    ]
    where = join_sql(" AND ", tests)
    statement = SQL("UPDATE {} SET {} WHERE {}", quote_table(meta), join_sql(", ", sets), where)
    return build_plan_from_statement(builder, statement, dialect, given=len(fields) + len(known))


def build_bulk_update_plan(dialect: Dialect, meta: Meta, fields: Fields, *, row_count: int) -> Plan:
    """Update several rows by key at once; parameters are the key, the version expected where the
    model has one, and the values, row by row.
    """
    builder = StatementBuilder()
    alias = builder.generate_table_alias()
    known = meta.keys if meta.version is None else (*meta.keys, meta.version)
    columns = (*known, *fields)
    width = len(columns)
    cells = [
        # PostgreSQL takes a bare parameter of a VALUES list in FROM for text
        dialect.cast(builder.bind_param(i, f.encoder(dialect.name)), f)
        for i, f in enumerate(columns * row_count)
    ]
    # both databases name the columns of a bare VALUES list column1, column2 and so on
    sets = [
        SQL(
            "{} = {}",
            quote_column(f),
            convert_param_to_storage(dialect, SQL("given.column{}", render_integer(i)), f),
        )
        for i, f in enumerate(fields, len(known) + 1)
    ]
    if meta.version is not None:
        sets.append(_build_version_increment(alias, meta.version))
    same = [
        SQL("{}.{} = given.column{}", alias, quote_column(f), render_integer(i))
        for i, f in enumerate(known, 1)
    ]
    statement = SQL(
        "UPDATE {} AS {} SET {} FROM (VALUES {}) AS given WHERE {}",
        quote_table(meta),
        alias,
        join_sql(", ", sets),
        _build_value_rows(cells, width),
        join_sql(" AND ", same),
    )
    return build_plan_from_statement(builder, statement, dialect, given=row_count * width)


def build_update_plan(
    dialect: Dialect,
    key: Key,
    sets: tuple[tuple[AnyField, Expr], ...],
    *,
    given: int,
    returning: Fields = (),
) -> Plan:
    """Update the rows of a query; the statement gives `returning` back."""

    def build_update(frame: Frame, where: Where) -> SQL:
        pairs = [
            # no alias before the column: PostgreSQL would look for a part of a composite type
            SQL("{} = {}", quote_column(field), _build_assigned_value(frame, field, node))
            for field, node in sets
        ]
        table, changed = quote_table(frame.meta), join_sql(", ", pairs)
        text = SQL("UPDATE {} AS {} SET {}{}", table, frame.alias, changed, where(frame))
        if not returning:
            return text
        return SQL("{} RETURNING {}", text, _build_returning(dialect, returning))

    return _build_write_plan(dialect, key, build_update, given=given)


def build_delete_plan(dialect: Dialect, key: Key, *, given: int) -> Plan:
    """Delete the rows of a query."""

    def build_delete(frame: Frame, where: Where) -> SQL:
        return SQL("DELETE FROM {} AS {}{}", quote_table(frame.meta), frame.alias, where(frame))

    return _build_write_plan(dialect, key, build_delete, given=given)


def _build_write_plan(
    dialect: Dialect, key: Key, build_statement: Callable[[Frame, Where], SQL], *, given: int
) -> Plan:
    state = replay_steps(key)
    if state.rows != "instances" or state.combined:
        raise FieldError(
            "update() and delete() work on rows of the model: call them before values() and union()"
        )

    def build_plan_with_filter(where: Where) -> Plan:
        # a builder for each attempt: one that failed has bound parameters and taken aliases
        frame = Frame(StatementBuilder(), dialect, state.meta, joinable=False)
        return build_plan_from_statement(
            frame.builder, build_statement(frame, where), dialect, given=given
        )

    if state.is_where_only and not state.joins:
        try:
            return build_plan_with_filter(lambda frame: build_where_clause(frame, state))
        except NeedsJoin:
            pass  # a condition reaches into another table: say it over keys

    def build_key_filter(frame: Frame) -> SQL:
        own = frame.build_own_column(frame.meta.pk)
        return SQL(" WHERE {} IN ({})", own, build_primary_key_select(frame, key))

    try:
        return build_plan_with_filter(build_key_filter)
    except NeedsJoin:
        raise FieldError("update() cannot take values from another table: use Subquery") from None


def _build_assigned_value(frame: Frame, field: AnyField, node: Expr) -> SQL:
    if isinstance(node, ParamNode):
        # no cast: the column gives the parameter its type, and checks its length and places
        return convert_param_to_storage(frame.dialect, build_param(frame, node, cast=False), field)
    value = build_expression(frame, node)
    return convert_to_storage(frame.dialect, value, field) if field.storage else value
