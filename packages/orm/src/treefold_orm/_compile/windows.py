"""Windows to SQL: the OVER clause of a function or an aggregate.

Example, `build_window` receives the function, the groups and the order in them:

    >>> Article.objects.annotate(
    ... nth=Window(RowNumber(), partition_by="writer", order_by="-views")
    ... ).values("title", "nth")
    SQLite: SELECT t0."title", ROW_NUMBER() OVER (PARTITION BY t0."writer_id" ORDER BY t0."views"
    DESC NULLS FIRST) FROM "article" AS t0
    PostgreSQL: SELECT t0."title", (ROW_NUMBER() OVER (PARTITION BY t0."writer_id" ORDER BY
    t0."views" DESC))::bigint FROM "article" AS t0
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._compile.aggregates import build_own_rows_aggregate
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.rules import EXPRESSIONS, build_expression, build_order_by_term
from treefold_orm._dialects.sql import SQL, join_sql
from treefold_orm._expressions import nodes
from treefold_orm._fields.base import AnyField

_KINDS: dict[str, LiteralString] = {
    "rows": " ROWS BETWEEN {} AND {}{}",
    "groups": " GROUPS BETWEEN {} AND {}{}",
    "range": " RANGE BETWEEN {} AND {}{}",
}
_EXCLUDES: dict[str, LiteralString] = {
    "": "",
    "current": " EXCLUDE CURRENT ROW",
    "group": " EXCLUDE GROUP",
    "ties": " EXCLUDE TIES",
}


def build_window(frame: Frame, node: nodes.WindowNode) -> SQL:
    """A function or an aggregate over a window."""
    function, over = node.function, _build_over_clause(frame, node)
    if isinstance(function, nodes.AggregateNode):
        made = build_own_rows_aggregate(
            frame, function, over, may_be_empty=_can_window_frame_be_empty(node.frame)
        )
        # the cast encloses OVER as well: between the call and OVER it is a syntax error
        return frame.dialect.cast_function_result(made, node.field)
    if not isinstance(function, nodes.FuncNode):
        raise FieldError("A window takes a function or an aggregate")
    args = [build_expression(frame, arg) for arg in function.args]
    called = frame.dialect.build_function_call(function.name, args)
    return frame.dialect.cast_function_result(SQL("{}{}", called, over), node.field)


def _can_window_frame_be_empty(node: nodes.WindowFrameNode | None) -> bool:
    # a frame without rows exists only where the current row may be outside of it
    if node is None:
        return False
    start, end = node.start, node.end
    after, before = start is not None and start.side > 0, end is not None and end.side < 0
    return after or before or node.exclude in {"current", "group"}


def _build_over_clause(frame: Frame, node: nodes.WindowNode) -> SQL:
    parts: list[SQL] = []
    if node.partition:
        terms = [build_expression(frame, term) for term in node.partition]
        parts.append(SQL("PARTITION BY {}", join_sql(", ", terms)))
    if node.order:
        terms = [
            build_order_by_term(
                frame,
                term,
                _build_window_order_value(
                    frame, node.frame, build_expression(frame, term.expr), term.expr.field
                ),
            )
            for term in node.order
        ]
        parts.append(SQL("ORDER BY {}", join_sql(", ", terms)))
    clause = SQL("") if node.frame is None else _build_window_frame(frame, node.frame)
    return SQL(" OVER ({}{})", join_sql(" ", parts), clause)


def _build_window_order_value(
    frame: Frame, node: nodes.WindowFrameNode | None, value: SQL, field: AnyField | None
) -> SQL:
    """A term of the ordering; where distances are taken of it, as something that has them."""
    if node is None or node.kind != "range" or field is None:
        return value
    bounds = [bound for bound in (node.start, node.end) if bound is not None]
    if all(bound.distance is None for bound in bounds):
        return value
    return frame.dialect.build_range_frame_key(value, field)


def _build_window_frame(frame: Frame, node: nodes.WindowFrameNode) -> SQL:
    start = _build_frame_bound(frame, node.start, SQL("UNBOUNDED PRECEDING"))
    end = _build_frame_bound(frame, node.end, SQL("UNBOUNDED FOLLOWING"))
    return SQL(_KINDS[node.kind], start, end, SQL(_EXCLUDES[node.exclude]))


def _build_frame_bound(frame: Frame, node: nodes.WindowFrameBound | None, unbounded: SQL) -> SQL:
    if node is None:
        return unbounded
    if node.distance is None:
        return SQL("CURRENT ROW")
    distance = build_expression(frame, node.distance)
    return SQL("{} PRECEDING" if node.side < 0 else "{} FOLLOWING", distance)


EXPRESSIONS[nodes.WindowNode] = build_window
