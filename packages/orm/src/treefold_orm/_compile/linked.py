"""Rows of a many-to-many relation with the keys they are connected to, in one statement."""

from __future__ import annotations

from dataclasses import replace

from treefold_orm._compile import hydrate
from treefold_orm._compile.clauses import set_grouping
from treefold_orm._compile.ctes import attach
from treefold_orm._compile.dialect import Dialect
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.outputs import instance_columns
from treefold_orm._compile.plan import Plan, finish
from treefold_orm._compile.select import select
from treefold_orm._compile.sql import SQL, Builder, column_name, table_name
from treefold_orm._compile.state import Key, replay
from treefold_orm._fields.meta import Relation


def linked_plan(
    dialect: Dialect, key: Key, relation: Relation, *, given: int, alias: str = "default"
) -> Plan:
    """The plan that returns instances, each row followed by a key that it is connected to.

    The last parameter is the list of keys on the other side.
    """
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    builder = Builder()
    state = replay(key)
    frame = Frame(builder, dialect, state.meta)
    attach(frame, state)
    set_grouping(frame, state, few=True)
    columns, shape = instance_columns(frame, state)
    link, source = builder.alias(), relation.source_field
    keys = builder.param(given - 1, dialect.list_encoder(source))
    connected = SQL("{}.{}", link, column_name(source))
    frame.joins.append(
        SQL(
            "JOIN {} AS {} ON {}.{} = {} AND {}",
            table_name(relation.through),
            link,
            link,
            column_name(relation.target_field),
            frame.own(state.meta.pk),
            dialect.in_list(connected, keys, source),
        )
    )
    statement = select(frame, state, [*columns, connected])
    shape = replace(shape, spare=1)
    decode, decode_lazy = hydrate.both(shape, dialect.name, alias=alias)
    plan = finish(builder, statement, dialect, given=given, decode=decode, decode_lazy=decode_lazy)
    plan.key_place = shape.key
    return plan
