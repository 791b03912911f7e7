"""CTEs as they stand in WITH, recursive ones among them.

A recursive one ends by itself: UNION drops rows that it has seen, and where rows are kept apart by
their depth, either the depth is limited or no way meets a row twice.

Example, `_define_recursive_cte` receives the first rows and the relation to follow:

    >>> CTE.recursive(Writer.objects.filter(id=1), "reports").objects.values("name")
    WITH RECURSIVE w0 (c0) AS (SELECT t2."id" FROM "writer" AS t2 WHERE t2."id" = ? UNION SELECT
    t4."id" FROM w0 AS t3, "writer" AS t4 WHERE t4."boss_id" = t3.c0) SELECT t0."name" FROM "writer"
    AS t0 JOIN w0 AS t1 ON t1.c0 = t0."id"
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._compile.clauses import build_output_columns, configure_aggregation
from treefold_orm._compile.ctes import attach_ctes
from treefold_orm._compile.frame import Frame, Hops
from treefold_orm._compile.rules import DEFINITIONS, build_condition, build_expression
from treefold_orm._compile.select import build_select
from treefold_orm._compile.state import State, replay_steps
from treefold_orm._dialects.sql import SQL, join_sql, render_integer
from treefold_orm._expressions.cte_nodes import Recursion, Source
from treefold_orm._expressions.nodes import PREVIOUS
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import INTEGER

# the way to a row: where it begins, how it goes on, and whether a key is not on it yet
_WAYS: dict[str, tuple[LiteralString, LiteralString, LiteralString]] = {
    "postgres": ("ARRAY[({})::text]", "{} || ({})::text", "({})::text <> ALL({})"),
    "sqlite": (
        # hex() leaves no comma in a key of text, and commas around each keep 1 apart from 11
        "',' || hex({}) || ','",
        "{} || hex({}) || ','",
        "instr({1}, ',' || hex({0}) || ',') = 0",
    ),
}


def define_cte(frame: Frame, source: Source, param_offset: int) -> SQL:
    """Write a CTE, whose parameters start at `param_offset`; return its name."""
    return (_define_nonrecursive_cte if source.recursion is None else _define_recursive_cte)(
        frame, source, param_offset
    )


def _build_cte_frame(frame: Frame, source: Source, param_offset: int) -> tuple[Frame, State]:
    state = replay_steps(source.key)
    if not state.is_sliced and not state.distinct_on:
        # an order inside of WITH orders nothing outside: only a slice or DISTINCT ON depends on it
        state.order = ()
    made = Frame(frame.builder, frame.dialect, state.meta, offset=param_offset)
    attach_ctes(made, state)
    configure_aggregation(made, state)
    return made, state


def _define_nonrecursive_cte(frame: Frame, source: Source, param_offset: int) -> SQL:
    inner, state = _build_cte_frame(frame, source, param_offset)
    body = build_select(inner, state, build_output_columns(inner, state))
    return _add_cte_definition(frame, frame.builder.generate_cte_name(), len(source.columns), body)


def _add_cte_definition(
    frame: Frame, name: SQL, column_count: int, body: SQL, *, recursive: bool = False
) -> SQL:
    columns = join_sql(", ", [SQL("c{}", render_integer(i)) for i in range(column_count)])
    frame.builder.add_cte_text(SQL("{} ({}) AS ({})", name, columns, body), recursive=recursive)
    return name


# -- recursion ------------------------------------------------------------------------------------


class _PreviousRowFrame(Frame):
    """The row before as the step of a recursion knows it: its key, and what leads on from it."""

    link_column = 0

    def build_column(self, hops: Hops, field: Field[object]) -> SQL:
        place = 0 if field is self.meta.pk else self.link_column
        return SQL("{}.c{}", self.alias, render_integer(place))


def _define_recursive_cte(frame: Frame, source: Source, param_offset: int) -> SQL:
    recursion = source.recursion
    assert recursion is not None  # noqa: S101 - callers have looked
    # the name comes first: the step of the recursion reads from it
    name = frame.builder.generate_cte_name()
    inner, state = _build_cte_frame(frame, source, param_offset)
    body = SQL(
        "{} UNION{} {}",
        build_select(inner, state, _build_anchor_columns(inner, recursion)),
        SQL(" ALL" if _tracks_visited_path(recursion) else ""),
        _build_recursive_step(frame, name, source, param_offset),
    )
    size = len(source.columns) + _needs_link_column(recursion) + _tracks_visited_path(recursion)
    _add_cte_definition(frame, name, size, body, recursive=True)
    if not recursion.depth or recursion.carried:
        return name
    # a row that is reached on ways of several lengths is there once for each
    nearest = SQL("SELECT c0, MIN(c1) FROM {} GROUP BY c0", name)
    return _add_cte_definition(frame, frame.builder.generate_cte_name(), 2, nearest)


def _tracks_visited_path(recursion: Recursion) -> bool:
    return bool(recursion.carried) or (recursion.depth and recursion.limit is None)


def _needs_link_column(recursion: Recursion) -> bool:
    relation = recursion.relation
    return relation.kind != "many" and relation.source_field is not relation.source.pk


def _build_anchor_columns(frame: Frame, recursion: Recursion) -> list[SQL]:
    key = frame.build_own_column(frame.meta.pk)
    columns = [key]
    if recursion.depth:
        columns.append(frame.dialect.cast(SQL("0"), INTEGER))
    for begin, _ in recursion.carried:
        # PostgreSQL refuses a step whose types differ from the first rows: varchar(10) is not text
        columns.append(frame.dialect.cast(build_expression(frame, begin), begin.field))
    if _needs_link_column(recursion):
        columns.append(frame.build_own_column(recursion.relation.source_field))
    if _tracks_visited_path(recursion):
        columns.append(SQL(_WAYS[frame.dialect.name][0], key))
    return columns


def _build_recursive_step(frame: Frame, name: SQL, source: Source, param_offset: int) -> SQL:
    recursion = source.recursion
    assert recursion is not None  # noqa: S101 - callers have looked
    relation, dialect = recursion.relation, frame.dialect
    public = len(source.columns)
    before = _PreviousRowFrame(frame.builder, dialect, relation.source, offset=param_offset)
    before.link_column = public
    inner, correlation = before.build_correlated_frame(relation, ())
    inner.ctes[PREVIOUS] = before.alias
    key = inner.build_own_column(inner.meta.pk)
    columns, tests = [key], [correlation]
    if recursion.depth:
        depth = SQL("{}.c1", before.alias)
        columns.append(SQL("{} + 1", depth))
        if recursion.limit is not None:
            limit = frame.builder.bind_param(param_offset + recursion.limit, None)
            tests.append(SQL("{} < {}", depth, dialect.cast(limit, INTEGER)))
    columns += [
        dialect.cast(build_expression(inner, then), then.field) for _, then in recursion.carried
    ]
    if _needs_link_column(recursion):
        columns.append(inner.build_own_column(relation.source_field))
    if _tracks_visited_path(recursion):
        way = SQL("{}.c{}", before.alias, render_integer(len(columns)))
        columns.append(SQL(_WAYS[dialect.name][1], way, key))
        tests.append(SQL(_WAYS[dialect.name][2], key, way))
    if recursion.where is not None:
        tests.append(build_condition(inner, recursion.where, right_frame=inner).sql)
    picked, joined = join_sql(", ", columns), join_sql(" AND ", tests)
    parts = picked, name, before.alias, inner.build_from(), joined
    return SQL("SELECT {} FROM {} AS {}, {} WHERE {}", *parts)


DEFINITIONS[Source] = define_cte
