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

from collections.abc import Callable
from dataclasses import replace
from typing import LiteralString

from treefold_orm._compile import hydrate
from treefold_orm._compile.clauses import output_columns, set_grouping, where_clause
from treefold_orm._compile.ctes import open_statement
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.links import links_of
from treefold_orm._compile.outputs import instance_columns, row_decoder
from treefold_orm._compile.plan import Plan, finish_plan
from treefold_orm._compile.state import Key, State
from treefold_orm._compile.writing import build_select, numbered_select, select_parts
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL, column_of
from treefold_orm._expressions.nodes import Compare
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Relation


def get_plan(dialect: Dialect, key: Key, *, given: int, alias: str = "default") -> Plan:
    """The plan that returns at most two rows: enough to tell one from several."""
    return rows_plan(dialect, key, given=given, alias=alias, for_one=True)


def rows_plan(
    dialect: Dialect, key: Key, *, given: int, alias: str = "default", for_one: bool = False
) -> Plan:
    """The plan that returns a query's rows as what the query asks for; instances know that they
    are of the database `alias`.
    """
    frame, state = open_statement(dialect, key)
    at_most_two = for_one and not state.is_sliced and state.lock is None and not _names_one(state)
    if at_most_two:
        state.order = () if not state.combined and not state.distinct_on else state.order
    set_grouping(frame, state, few=for_one)
    if state.rows == "instances":
        columns, shape = instance_columns(frame, state)
        decode, decode_lazy = hydrate.compile_both(shape, dialect.name, alias=alias)
        decode_one = hydrate.compile_instance(shape, dialect.name, alias=alias) if for_one else None
    else:
        columns = output_columns(frame, state)
        decode = decode_lazy = row_decoder(state, dialect)
        decode_one = hydrate.first_of(decode)
    statement = build_select(frame, state, columns)
    if at_most_two:
        statement = SQL("{} LIMIT 2", statement)
    plan = finish_plan(
        frame.builder, statement, dialect, given=given, decode=decode, decode_lazy=decode_lazy
    )
    plan.locks = state.lock is not None
    if for_one:
        plan.decode_one = decode_one
    return plan


def _names_one(state: State) -> bool:
    if state.combined:
        return False
    lookups = [node.lookup for node in state.where if isinstance(node, Compare)]
    return any(
        look.op == "exact" and look.column.unique and not look.hops and not look.transforms
        for look in lookups
    )


def count_plan(dialect: Dialect, key: Key, *, given: int, alias: str = "default") -> Plan:
    """The plan that counts a query's rows."""
    text = "SELECT COUNT(*) FROM {}{}", "SELECT COUNT(*) FROM ({}) AS counted"
    return _whole_plan(dialect, key, *text, given=given)


def exists_plan(dialect: Dialect, key: Key, *, given: int, alias: str = "default") -> Plan:
    """The plan that returns one row if the query has any."""
    text = "SELECT 1 FROM {}{} LIMIT 1", "SELECT 1 FROM ({}) AS found LIMIT 1"
    return _whole_plan(dialect, key, *text, given=given)


def _whole_plan(
    dialect: Dialect, key: Key, plain: LiteralString, nested: LiteralString, *, given: int
) -> Plan:
    frame, state = open_statement(dialect, key)
    state.lock = None  # what only counts locks nothing
    if state.is_simple and state.rows == "instances":
        where = where_clause(frame, state)
        statement = SQL(plain, frame.build_from(), where)
    else:
        statement = SQL(nested, _build_numbered_rows(frame, state))
    return finish_plan(frame.builder, statement, dialect, given=given)


def _build_numbered_rows(frame: Frame, state: State) -> SQL:
    if state.rows == "instances":
        # the key tells rows apart, unless they are of several parts or a joined CTE repeats them
        several = bool(state.combined or state.joins)
        set_grouping(frame, state)
        keys = [frame.build_own_column(key) for key in state.meta.keys]
        columns = instance_columns(frame, state)[0] if several else keys
    else:
        set_grouping(frame, state)
        columns = output_columns(frame, state)
    return numbered_select(frame, state, columns)


def linked_plan(
    dialect: Dialect, key: Key, relation: Relation, *, given: int, alias: str = "default"
) -> Plan:
    """The plan that returns instances, each row followed by a key that it is connected to.

    The last parameter is the list of keys on the other side.
    """
    frame, state = open_statement(dialect, key)
    builder = frame.builder
    set_grouping(frame, state, few=True)
    columns, shape = instance_columns(frame, state)
    link, source = builder.new_alias(), relation.source_field
    keys = builder.bind_param(given - 1, dialect.list_encoder(source))
    connected, table = column_of(link, source), links_of(relation, link)
    theirs, own = column_of(link, relation.target_field), frame.build_own_column(state.meta.pk)
    test = dialect.in_list(connected, keys, source)
    frame.joins.append(SQL("JOIN {} ON {} = {} AND {}", table, theirs, own, test))
    columns = [*columns, connected]
    if state.is_sliced:
        statement = select_parts(frame, state, columns, connected)
    else:
        statement = build_select(frame, state, columns)
    shape = replace(shape, spare=1)
    decode, decode_lazy = hydrate.compile_both(shape, dialect.name, alias=alias)
    plan = finish_plan(
        builder, statement, dialect, given=given, decode=decode, decode_lazy=decode_lazy
    )
    plan.key_place = shape.key
    return plan


def parted_plan(
    dialect: Dialect, key: Key, field: AnyField, *, given: int, alias: str = "default"
) -> Plan:
    """The plan that returns the slice of a query among the rows of each value of a column."""
    frame, state = open_statement(dialect, key)
    set_grouping(frame, state, few=True)
    columns, shape = instance_columns(frame, state)
    decode, decode_lazy = hydrate.compile_both(shape, dialect.name, alias=alias)
    statement = select_parts(frame, state, columns, frame.build_own_column(field))
    return finish_plan(
        frame.builder, statement, dialect, given=given, decode=decode, decode_lazy=decode_lazy
    )


PLANS: dict[str, Callable[..., Plan]] = {
    "get": get_plan,
    "rows": rows_plan,
    "count": count_plan,
    "exists": exists_plan,
}
"""The functions that make plans, by the method of the query that runs them."""
