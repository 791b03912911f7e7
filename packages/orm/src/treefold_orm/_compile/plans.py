"""The plans of a query: its rows, one of them, how many there are, and whether there is any; and
the rows of a many-to-many relation with the keys they are connected to.

Example, one query and the plans for what is asked of it:

    >>> Writer.objects.get(id=1)
    SELECT t0."id", t0."name", t0."born", t0."boss_id" FROM "writer" AS t0 WHERE t0."id" = ?

    >>> Writer.objects.filter(name="Ann").count()
    SELECT COUNT(*) FROM "writer" AS t0 WHERE t0."name" = ?

    >>> Writer.objects.filter(name="Ann").exists()
    SELECT 1 FROM "writer" AS t0 WHERE t0."name" = ? LIMIT 1
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._base.records import copy_with_changes
from treefold_orm._compile.clauses import (
    build_output_columns,
    build_where_clause,
    configure_aggregation,
)
from treefold_orm._compile.ctes import build_statement_frame
from treefold_orm._compile.frame import Frame, build_through_from_item
from treefold_orm._compile.outputs import build_instance_columns, compile_values_decoder
from treefold_orm._compile.state import State
from treefold_orm._compile.writing import (
    build_aliased_select,
    build_partitioned_select,
    build_select,
)
from treefold_orm._decode import hydrate
from treefold_orm._decode.plan import Plan, build_plan_from_statement
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL, build_qualified_column
from treefold_orm._expressions.nodes import Compare, Key
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Relation


def build_get_plan(dialect: Dialect, key: Key, *, given: int, alias: str = "default") -> Plan:
    """The plan that returns at most two rows: enough to tell one from several."""
    return build_rows_plan(dialect, key, given=given, alias=alias, for_one=True)


def build_rows_plan(
    dialect: Dialect, key: Key, *, given: int, alias: str = "default", for_one: bool = False
) -> Plan:
    """The plan that returns a query's rows as what the query asks for; instances know that they
    are of the database `alias`.
    """
    frame, state = build_statement_frame(dialect, key)
    # A slice has its LIMIT, and a second one is a syntax error; a unique value leaves one row
    # without any.
    at_most_two = (
        for_one and not state.is_sliced and state.lock is None and not _has_unique_filter(state)
    )
    if at_most_two:
        # which two rows these are does not matter, two are an error; `distinct(fields)` chooses
        # its rows by the order
        state.order = () if not state.combined and not state.distinct_on else state.order
    configure_aggregation(frame, state, needs_few_rows=for_one)
    if state.rows == "instances":
        columns, shape = build_instance_columns(frame, state)
        decode, decode_lazy = hydrate.compile_async_and_sync_decoders(
            shape, dialect.name, alias=alias
        )
        decode_one = None
        if for_one:
            decode_one = hydrate.compile_single_instance_decoder(shape, dialect.name, alias=alias)
    else:
        columns = build_output_columns(frame, state)
        decode = decode_lazy = compile_values_decoder(state, dialect)
        decode_one = hydrate.make_single_row_decoder(decode)
    statement = build_select(frame, state, columns)
    if at_most_two:
        statement = SQL("{} LIMIT 2", statement)
    plan = build_plan_from_statement(
        frame.builder, statement, dialect, given=given, decode=decode, decode_lazy=decode_lazy
    )
    plan.locks = state.lock is not None
    if for_one:
        plan.decode_one = decode_one
    return plan


def _has_unique_filter(state: State) -> bool:
    # the rows of the other parts do not have to meet this filter
    if state.combined:
        return False
    lookups = [node.lookup for node in state.where if isinstance(node, Compare)]
    return any(
        look.op == "exact" and look.column.unique and not look.hops and not look.transforms
        for look in lookups
    )


def build_count_plan(dialect: Dialect, key: Key, *, given: int, alias: str = "default") -> Plan:
    """The plan that counts a query's rows."""
    text = "SELECT COUNT(*) FROM {}{}", "SELECT COUNT(*) FROM ({}) AS counted"
    return _build_count_or_exists_plan(dialect, key, *text, given=given)


def build_exists_plan(dialect: Dialect, key: Key, *, given: int, alias: str = "default") -> Plan:
    """The plan that returns one row if the query has any."""
    text = "SELECT 1 FROM {}{} LIMIT 1", "SELECT 1 FROM ({}) AS found LIMIT 1"
    return _build_count_or_exists_plan(dialect, key, *text, given=given)


def _build_count_or_exists_plan(
    dialect: Dialect,
    key: Key,
    table_template: LiteralString,
    subquery_template: LiteralString,
    *,
    given: int,
) -> Plan:
    frame, state = build_statement_frame(dialect, key)
    state.lock = None  # what only counts locks nothing
    # annotations change no number of rows, so that they are not computed
    if state.is_where_only and state.rows == "instances":
        where = build_where_clause(frame, state)
        statement = SQL(table_template, frame.build_from(), where)
    else:
        statement = SQL(subquery_template, _build_rows_subquery(frame, state))
    return build_plan_from_statement(frame.builder, statement, dialect, given=given)


def _build_rows_subquery(frame: Frame, state: State) -> SQL:
    if state.rows == "instances":
        # the key tells rows apart, unless they are of several parts or a joined CTE repeats them
        several = bool(state.combined or state.joins)
        configure_aggregation(frame, state)
        keys = [frame.build_own_column(key) for key in state.meta.keys]
        columns = build_instance_columns(frame, state)[0] if several else keys
    else:
        configure_aggregation(frame, state)
        columns = build_output_columns(frame, state)
    return build_aliased_select(frame, state, columns)


def build_many_to_many_plan(
    dialect: Dialect, key: Key, relation: Relation, *, given: int, alias: str = "default"
) -> Plan:
    """The plan that returns instances, each row followed by a key that it is connected to.

    The last parameter is the list of keys on the other side.
    """
    frame, state = build_statement_frame(dialect, key)
    builder = frame.builder
    configure_aggregation(frame, state, needs_few_rows=True)
    columns, shape = build_instance_columns(frame, state)
    through_alias, source = builder.generate_table_alias(), relation.source_field
    keys = builder.bind_param(given - 1, dialect.list_encoder(source))
    connected = build_qualified_column(through_alias, source)
    table = build_through_from_item(relation, through_alias)
    theirs = build_qualified_column(through_alias, relation.target_field)
    own = frame.build_own_column(state.meta.pk)
    test = dialect.build_in_list(connected, keys, source)
    frame.joins.append(SQL("JOIN {} ON {} = {} AND {}", table, theirs, own, test))
    columns = [*columns, connected]
    # a LIMIT would cut the rows of all owners together, `[:2]` means two for each of them
    if state.is_sliced:
        statement = build_partitioned_select(frame, state, columns, connected)
    else:
        statement = build_select(frame, state, columns)
    # the last cell says which owner the row goes to; the instance has no attribute for it
    shape = copy_with_changes(shape, spare=1)
    decode, decode_lazy = hydrate.compile_async_and_sync_decoders(shape, dialect.name, alias=alias)
    plan = build_plan_from_statement(
        builder, statement, dialect, given=given, decode=decode, decode_lazy=decode_lazy
    )
    plan.key_place = shape.key
    return plan


def build_partitioned_plan(
    dialect: Dialect, key: Key, field: AnyField, *, given: int, alias: str = "default"
) -> Plan:
    """The plan that returns the slice of a query among the rows of each value of a column."""
    frame, state = build_statement_frame(dialect, key)
    configure_aggregation(frame, state, needs_few_rows=True)
    columns, shape = build_instance_columns(frame, state)
    decode, decode_lazy = hydrate.compile_async_and_sync_decoders(shape, dialect.name, alias=alias)
    statement = build_partitioned_select(frame, state, columns, frame.build_own_column(field))
    return build_plan_from_statement(
        frame.builder, statement, dialect, given=given, decode=decode, decode_lazy=decode_lazy
    )
