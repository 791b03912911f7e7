"""The clauses of one SELECT: conditions before and after grouping, the groups, and what is taken of
them.

Example, the condition on a column before the groups and the one on an aggregate after them:

    >>> Article.objects.filter(views__gt=5).values("writer_id").annotate(n=Count("id"))
    ... .filter(n__gt=2)
    SQLite: SELECT t0."writer_id", COUNT(t0."id") FROM "article" AS t0 WHERE t0."views" > ? GROUP BY
    t0."writer_id" HAVING COUNT(t0."id") > ?
    PostgreSQL: SELECT t0."writer_id", (COUNT(t0."id"))::bigint FROM "article" AS t0 WHERE
    t0."views" > $1 GROUP BY t0."writer_id" HAVING (COUNT(t0."id"))::bigint > ($2)::bigint
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treefold_orm._compile.aggregates import related_distinct
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.grouping import check_groups, group_terms
from treefold_orm._compile.rules import (
    build_condition,
    build_expression,
    build_reached_column,
    joined_conditions,
)
from treefold_orm._compile.state import State, narrows_rows, top_level
from treefold_orm._dialects.sql import SQL, integer_literal, join_sql
from treefold_orm._expressions import nodes
from treefold_orm._expressions.conversion import representation_of
from treefold_orm._fields.base import Field


def where_clause(frame: Frame, state: State, *, having: bool = False) -> SQL:
    """The WHERE clause of a state, or with `having` its HAVING clause, with a leading space."""
    parts: list[SQL] = []
    for node in top_level(state.where):
        if nodes.contains_window(node):
            continue
        if state.grouped and nodes.contains_group_aggregate(node) != having:
            continue
        parts.append(build_condition(frame, node, right=frame)[0])
    if state.nothing and not having:
        parts.append(SQL("1 = 0"))
    if not parts:
        return SQL("")
    return SQL(" HAVING {}" if having else " WHERE {}", joined_conditions(" AND ", parts))


def group_clause(frame: Frame, state: State) -> SQL:
    """The GROUP BY and HAVING clauses of a state, with a leading space."""
    if not state.grouped:
        return SQL("")
    terms = [build_output(frame, expr) for expr in group_terms(state)]
    having = where_clause(frame, state, having=True)
    if not terms:
        return having
    return SQL(" GROUP BY {}{}", join_sql(", ", terms), having)


def set_grouping(frame: Frame, state: State, *, few: bool = False) -> None:
    """Tell a frame how aggregates are to be taken in it; with `few` the statement needs few of its
    rows.
    """
    frame.grouped = state.grouped
    frame.whole = not (few or state.names_few or state.joins or state.source is not None)
    kept = [node for node in top_level(state.where) if _is_of_rows(node)]
    if kept and (frame.dialect.name == "sqlite" or any(map(narrows_rows, kept))):
        # Where conditions leave few rows, looking up what belongs to each is several times faster;
        # where they leave all, half as fast. SQLite looks up faster in any case.
        frame.whole = False
    if state.grouped:
        check_groups(state)
        frame.distinct_over = lambda node: _distinct_of_group(frame, state, node)
        _hold_subqueries(frame, state)


def _is_of_rows(node: nodes.Node) -> bool:
    found = (nodes.contains_group_aggregate, nodes.contains_row_aggregate, nodes.contains_window)
    return not any(contains(node) for contains in found)


def _hold_subqueries(frame: Frame, state: State) -> None:
    # PostgreSQL takes a subquery in SELECT and in GROUP BY for two; a column of FROM is one
    if frame.dialect.name != "postgres":
        return
    for expr in group_terms(state):
        text = build_output(frame, expr)
        if "SELECT" in text.text:
            alias = frame.builder.new_alias()
            frame.joins.append(SQL("CROSS JOIN LATERAL (SELECT {} AS v) AS {}", text, alias))
            frame.held[expr] = SQL("{}.v", alias)


def distinct_of_all(frame: Frame, node: nodes.AggregateNode, where: Callable[[Frame], SQL]) -> SQL:
    """A distinct aggregate of related rows over all rows that `where` leaves."""
    base = _repeat_frame(frame)
    value, source, tests = related_distinct(base, node)
    where_base = where(base)
    tail = SQL("{} AND {}" if where_base.text else "{} WHERE {}", where_base, tests)
    return SQL("(SELECT {} FROM {}, {}{})", value, base.build_from(), source(), tail)


def _distinct_of_group(frame: Frame, state: State, node: nodes.AggregateNode) -> SQL:
    # the distinct values of each group are aggregated on their own and joined to its rows, so that
    # neither they nor the group's other aggregates are multiplied
    base = _repeat_frame(frame)
    wanted = group_terms(state)
    if state.grouped:
        _hold_subqueries(base, state)
    value, source, tests = related_distinct(base, node)
    terms = [build_output(base, expr) for expr in wanted]
    where_base = where_clause(base, state)
    tail = SQL("{} AND {}" if where_base.text else "{} WHERE {}", where_base, tests)
    named = [SQL("{} AS g{}", term, integer_literal(i)) for i, term in enumerate(terms)]
    inner = SQL(
        "SELECT {} AS v FROM {}, {}{}{}",
        join_sql(", ", [*named, value]),
        base.build_from(),
        source(),
        tail,
        SQL(" GROUP BY {}", join_sql(", ", terms)) if terms else SQL(""),
    )
    alias = frame.builder.new_alias()
    same = [
        SQL("{}.g{} IS NOT DISTINCT FROM {}", alias, integer_literal(i), build_output(frame, expr))
        for i, expr in enumerate(wanted)
    ] or [SQL("1 = 1")]
    frame.joins.append(SQL("LEFT JOIN ({}) AS {} ON {}", inner, alias, join_sql(" AND ", same)))
    found = SQL("MAX({}.v)", alias)
    return SQL("COALESCE({}, 0)", found) if node.name == "count" else found


def _repeat_frame(frame: Frame) -> Frame:
    """The rows of a frame once more, its CTEs included."""
    base = Frame(frame.builder, frame.dialect, frame.meta, offset=frame.offset, parent=frame.parent)
    base.whole = frame.whole
    if frame.attach is not None:
        frame.attach(base)
    return base


def output_columns(frame: Frame, state: State) -> list[SQL]:
    """The output columns of a state, in the types that parts of a combined query share."""
    pairs = zip(state.output_expressions, state.output_fields, strict=True)
    return [in_common(frame, build_output(frame, expr), expr.field, field) for expr, field in pairs]


def in_common(
    frame: Frame, value: SQL, source: Field[Any] | None, target: Field[Any] | None
) -> SQL:
    """A column of one part of a combined query in the type of all parts."""
    if source is None or target is None or representation_of(source) == representation_of(target):
        return value
    return frame.dialect.converted(value, source, target, "value")


def build_output(frame: Frame, expr: nodes.Expr) -> SQL:
    """An output column, which may be reached over to-many relations: one row for each."""
    if isinstance(expr, nodes.ColumnNode):
        return frame.find_override(expr) or build_reached_column(frame, expr)
    return build_expression(frame, expr)
