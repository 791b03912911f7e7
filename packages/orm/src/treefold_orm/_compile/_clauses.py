"""The clauses of one SELECT: conditions before and after grouping, the groups, and what is taken of
them.
"""

from __future__ import annotations

from collections.abc import Callable

from treefold_orm._compile._conditions import condition
from treefold_orm._compile._frame import Frame
from treefold_orm._compile._nodes import (
    AggregateNode,
    And,
    ColumnNode,
    Expr,
    Node,
    contains_group_aggregate,
    contains_window,
)
from treefold_orm._compile._sql import SQL, join, number
from treefold_orm._compile._state import State
from treefold_orm._compile._values import expression, reached, related_distinct


def where_clause(frame: Frame, state: State, *, having: bool = False) -> SQL:
    """The WHERE clause of a state, or with `having` its HAVING clause, with a leading space."""
    parts: list[SQL] = []
    for node in _top_level(state.where):
        if contains_window(node):
            continue
        if state.grouped and contains_group_aggregate(node) != having:
            continue
        parts.append(condition(frame, node, right=frame)[0])
    if state.nothing and not having:
        parts.append(SQL("1 = 0"))
    if not parts:
        return SQL("")
    return SQL(" HAVING {}" if having else " WHERE {}", join(" AND ", parts))


def _top_level(nodes: list[Node]) -> list[Node]:
    split: list[Node] = []
    for node in nodes:
        # an And stays whole unless it has to be split between WHERE and HAVING: one filter() is
        # one EXISTS
        if isinstance(node, And) and any(
            contains_group_aggregate(child) for child in node.children
        ):
            split.extend(node.children)
        else:
            split.append(node)
    return split


def group_clause(frame: Frame, state: State) -> SQL:
    """The GROUP BY and HAVING clauses of a state, with a leading space."""
    if not state.grouped:
        return SQL("")
    terms = [output(frame, expr) for expr in _group_terms(state)]
    having = where_clause(frame, state, having=True)
    if not terms:
        return having
    return SQL(" GROUP BY {}{}", join(", ", terms), having)


def _group_terms(state: State) -> list[Expr]:
    named = dict.fromkeys((*state.groups, *(expr for _, expr in state.columns)))
    return [e for e in named if not (contains_group_aggregate(e) or contains_window(e))]


def set_grouping(frame: Frame, state: State) -> None:
    """Tell a frame how aggregates are to be taken in it."""
    frame.grouped = state.grouped
    if state.grouped:
        frame.distinct_over = lambda node: _distinct_of_group(frame, state, node)


def distinct_of_all(frame: Frame, node: AggregateNode, where: Callable[[Frame], SQL]) -> SQL:
    """A distinct aggregate of related rows over all rows that `where` leaves."""
    base = _again(frame)
    value, source, tests = related_distinct(base, node)
    where_base = where(base)
    tail = SQL("{} AND {}" if where_base.text else "{} WHERE {}", where_base, tests)
    return SQL("(SELECT {} FROM {}, {}{})", value, base.source(), source(), tail)


def _distinct_of_group(frame: Frame, state: State, node: AggregateNode) -> SQL:
    # the distinct values of each group are aggregated on their own and joined to its rows, so that
    # neither they nor the group's other aggregates are multiplied
    base = _again(frame)
    value, source, tests = related_distinct(base, node)
    wanted = _group_terms(state)
    terms = [output(base, expr) for expr in wanted]
    where_base = where_clause(base, state)
    tail = SQL("{} AND {}" if where_base.text else "{} WHERE {}", where_base, tests)
    named = [SQL("{} AS g{}", term, number(i)) for i, term in enumerate(terms)]
    inner = SQL(
        "SELECT {} AS v FROM {}, {}{}{}",
        join(", ", [*named, value]),
        base.source(),
        source(),
        tail,
        SQL(" GROUP BY {}", join(", ", terms)) if terms else SQL(""),
    )
    alias = frame.builder.alias()
    same = [
        SQL("{}.g{} IS NOT DISTINCT FROM {}", alias, number(i), output(frame, expr))
        for i, expr in enumerate(wanted)
    ] or [SQL("1 = 1")]
    frame.joins.append(SQL("LEFT JOIN ({}) AS {} ON {}", inner, alias, join(" AND ", same)))
    found = SQL("MAX({}.v)", alias)
    return SQL("COALESCE({}, 0)", found) if node.name == "count" else found


def _again(frame: Frame) -> Frame:
    """The rows of a frame once more, its CTEs included."""
    base = Frame(frame.builder, frame.dialect, frame.meta, offset=frame.offset, parent=frame.parent)
    if frame.attach is not None:
        frame.attach(base)
    return base


def output(frame: Frame, expr: Expr) -> SQL:
    """An output column, which may be reached over to-many relations: one row for each."""
    if isinstance(expr, ColumnNode):
        return reached(frame, expr)
    return expression(frame, expr)
