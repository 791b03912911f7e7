"""Expressions to SQL: columns, parameters, functions, CASE, aggregates, windows, subqueries.

`expression` turns one node into SQL within a frame. Aggregates over a to-many relation become
correlated sub-selects, so that several of them never multiply each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, LiteralString

from treefold_orm._arithmetic import result
from treefold_orm._compile._frame import Frame
from treefold_orm._compile._nodes import (
    AggregateNode,
    ArithNode,
    CaseNode,
    ColumnNode,
    ConstNode,
    CTENode,
    CustomNode,
    Expr,
    FuncNode,
    OrderNode,
    OuterNode,
    ParamNode,
    RankNode,
    SubqueryNode,
    TruthNode,
    WindowNode,
)
from treefold_orm._compile._search import rank
from treefold_orm._compile._sql import SQL, join
from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field
from treefold_orm._lookups import refuse_sensitive, walk
from treefold_orm._meta import Relation

_AGGREGATES: dict[str, LiteralString] = {
    "count": "COUNT({})",
    "sum": "SUM({})",
    "min": "MIN({})",
    "max": "MAX({})",
}
_DISTINCT: dict[str, LiteralString] = {
    "count": "COUNT(DISTINCT {})",
    "sum": "SUM(DISTINCT {})",
    "min": "MIN({})",
    "max": "MAX({})",
}
_OUTER = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_FRAMES: dict[str, LiteralString] = {
    "": "",
    "rows_to_current": " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "all": " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
}


def expression(frame: Frame, node: Expr) -> SQL:
    """Return the SQL of one expression node."""
    match node:
        case _Reached():
            return reached(frame, node)
        case ColumnNode():
            frame.refuse_many(node.hops)
            return frame.column(node.hops, node.column)
        case ParamNode():
            return param(frame, node, cast=True)
        case OuterNode():
            return _outer(frame, node)
        case RankNode():
            return rank(frame, node)
        case CTENode():
            return frame.cte_column(node)
        case FuncNode():
            return _function(frame, node)
        case ArithNode():
            left, right = expression(frame, node.left), expression(frame, node.right)
            fields = (_carrier(frame, node.left), _carrier(frame, node.right))
            given = (*fields, result(node.op, *fields))
            return frame.dialect.arithmetic(node.op, left, right, given)
        case CaseNode():
            return _case(frame, node)
        case AggregateNode():
            return aggregate(frame, node)
        case SubqueryNode():
            return subquery(frame, node)
        case TruthNode():
            return _truth(frame, node)
        case CustomNode():
            return _custom(frame, node)
        case WindowNode():
            return _window(frame, node)
        case _:
            raise FieldError(f"{type(node).__name__} has no value here")


def param(frame: Frame, node: ParamNode, *, cast: bool) -> SQL:
    """A placeholder for a parameter, with its type spelled out when `cast` is set."""
    field = node.field
    encode = None if field is None else field.encoder(frame.dialect.name)
    mark = frame.builder.param(node.index + frame.offset, encode)
    return frame.dialect.cast(mark, field) if cast else mark


def subquery(frame: Frame, node: SubqueryNode, *, exists: bool = False) -> SQL:
    """A query inside this one, in parentheses."""
    from treefold_orm._compile._select import nested_select

    return SQL("({})", nested_select(frame, node, exists=exists))


def order_terms(
    frame: Frame, nodes: tuple[OrderNode, ...], *, prefix: LiteralString = " ORDER BY "
) -> SQL:
    """The ORDER BY clause, empty for no terms. NULLs come last ascending and first descending, on
    both databases.
    """
    if not nodes:
        return SQL("")
    terms = [order_term(frame, node, expression(frame, node.expr)) for node in nodes]
    return SQL(prefix + "{}", join(", ", terms))


def order_term(frame: Frame, node: OrderNode, value: SQL) -> SQL:
    """One term of an ORDER BY clause, over a value that is at hand."""
    nulls = node.nulls or ("first" if node.descending else "last")
    template: LiteralString = "{} DESC" if node.descending else "{} ASC"
    if node.nulls or frame.dialect.name == "sqlite":
        template += " NULLS FIRST" if nulls == "first" else " NULLS LAST"
    return SQL(template, value)


def _carrier(frame: Frame, node: Expr) -> Field[Any] | None:
    # what an OuterRef leads to is known here and not before
    if isinstance(node, OuterNode) and frame.parent is not None:
        return walk(frame.parent.meta, node.path)[1]
    if isinstance(node, ArithNode):
        return result(node.op, _carrier(frame, node.left), _carrier(frame, node.right))
    return node.field


def _outer(frame: Frame, node: OuterNode) -> SQL:
    if frame.parent is None:
        raise FieldError(f"OuterRef({node.path!r}) stands outside of Subquery and Exists")
    of_cte = frame.parent.cte_columns.get(node.path)
    if of_cte is not None:
        return frame.parent.cte_column(of_cte)
    hops, column, rest = walk(frame.parent.meta, node.path)
    refuse_sensitive(frame.parent.meta, column, node.path)
    if rest:
        raise FieldError(f"OuterRef({node.path!r}) must name a column")
    frame.parent.refuse_many(hops)
    return frame.parent.column(hops, column)


def _function(frame: Frame, node: FuncNode) -> SQL:
    dialect = frame.dialect
    if node.name == "json_path":
        column, path = node.args
        keys = path.value if isinstance(path, ConstNode) else ()
        return dialect.json_path(expression(frame, column), keys, frame.builder.const)
    args = [expression(frame, arg) for arg in node.args]
    source: Any = node.args[0].field if node.args else None
    match node.name:
        case "extract":
            return dialect.extract(node.option, args[0], source)
        case "trunc":
            return dialect.trunc(node.option, args[0], source, *args[1:])
        case "cast" if node.field is not None:
            return dialect.convert(args[0], node.field)
        case _:
            return dialect.typed(dialect.function(node.name, args), node.field)


def _case(frame: Frame, node: CaseNode) -> SQL:
    from treefold_orm._compile._conditions import condition

    parts = [
        SQL("WHEN {} THEN {}", condition(frame, when, right=frame)[0], expression(frame, then))
        for when, then in node.whens
    ]
    if node.default is not None:
        parts.append(SQL("ELSE {}", expression(frame, node.default)))
    return SQL("CASE {} END", join(" ", parts))


def _truth(frame: Frame, node: TruthNode) -> SQL:
    from treefold_orm._compile._conditions import condition

    text, nullable = condition(frame, node.condition, right=frame)
    return SQL("(({}) IS TRUE)" if nullable else "({})", text)


def _custom(frame: Frame, node: CustomNode) -> SQL:
    args = [expression(frame, arg) for arg in node.args]
    return frame.dialect.typed(node.template.fill(frame.dialect.name, args), node.field)


def _window(frame: Frame, node: WindowNode) -> SQL:
    function = node.function
    if isinstance(function, AggregateNode):
        inner = _plain(frame, function)
    elif isinstance(function, FuncNode):
        inner = frame.dialect.function(
            function.name, [expression(frame, arg) for arg in function.args]
        )
    else:
        raise FieldError("A window takes a function or an aggregate")
    parts: list[SQL] = []
    if node.partition:
        parts.append(
            SQL("PARTITION BY {}", join(", ", [expression(frame, p) for p in node.partition]))
        )
    if node.order:
        parts.append(order_terms(frame, node.order, prefix="ORDER BY "))
    window = SQL("{} OVER ({}" + _FRAMES[node.frame] + ")", inner, join(" ", parts))
    return frame.dialect.typed(window, node.field)


# -- aggregates -----------------------------------------------------------------------------------


def aggregate(frame: Frame, node: AggregateNode) -> SQL:
    """An aggregate: over the group's rows, over a relation's rows, or over both."""
    split = next((i for i, hop in enumerate(node.hops) if hop.to_many), None)
    if split is None:
        if not frame.grouped:
            raise FieldError(
                f"{node.name.capitalize()} has nothing to aggregate here: name a to-many "
                "relation, or call values() first"
            )
        return frame.dialect.typed(_plain(frame, node), node.field)
    if not frame.grouped:
        return frame.dialect.typed(_related(frame, node, split), node.field)
    return frame.dialect.typed(_grouped_related(frame, node, split), node.field)


def _grouped_related(frame: Frame, node: AggregateNode, split: int) -> SQL:
    if node.distinct and frame.distinct_over is not None:
        return frame.distinct_over(node)
    if node.name == "avg":
        total = AggregateNode(node.field, "sum", node.arg, False, node.where, node.hops)
        count = AggregateNode(node.field, "count", node.arg, False, node.where, node.hops)
        sums, counts = _related(frame, total, split), _related(frame, count, split)
        mean = SQL("SUM({}) * 1.0 / NULLIF(SUM({}), 0)", sums, counts)
        return frame.dialect.mean(mean, None if node.arg is None else node.arg.field)
    return SQL(_AGGREGATES[_OUTER[node.name]], _related(frame, node, split))


def _plain(frame: Frame, node: AggregateNode) -> SQL:
    value = SQL("*") if node.arg is None else expression(frame, node.arg)
    made = _call(frame, node, value)
    if node.where is None:
        return made
    from treefold_orm._compile._conditions import condition

    return SQL("{} FILTER (WHERE {})", made, condition(frame, node.where, right=frame)[0])


def _call(frame: Frame, node: AggregateNode, value: SQL) -> SQL:
    if node.name == "avg":
        mean = SQL("AVG(DISTINCT {})" if node.distinct else "AVG({})", value)
        return frame.dialect.mean(mean, None if node.arg is None else node.arg.field)
    return SQL((_DISTINCT if node.distinct else _AGGREGATES)[node.name], value)


def _related(frame: Frame, node: AggregateNode, split: int) -> SQL:
    from treefold_orm._compile._conditions import rebased_condition

    prefix = node.hops[: split + 1]
    inner, tie = frame.open_related(prefix[-1], prefix[:-1])
    value = _related_value(inner, node, split + 1)
    tests = [tie]
    if node.where is not None:
        tests.append(rebased_condition(inner, frame, node.where, prefix)[0])
    call = _call(inner, node, value)
    return SQL("(SELECT {} FROM {} WHERE {})", call, inner.source(), join(" AND ", tests))


def related_distinct(base: Frame, node: AggregateNode) -> tuple[SQL, Callable[[], SQL], SQL]:
    """A distinct aggregate of rows related to many rows of `base`: its value, what it is taken
    from (to be called last: it collects joins), and the condition that ties both together.
    """
    from treefold_orm._compile._conditions import rebased_condition

    split = next(i for i, hop in enumerate(node.hops) if hop.to_many)
    prefix = node.hops[: split + 1]
    inner, tie = base.open_related(prefix[-1], prefix[:-1])
    value = _call(inner, node, _related_value(inner, node, split + 1))
    tests = [tie]
    if node.where is not None:
        tests.append(rebased_condition(inner, base, node.where, prefix)[0])
    return base.dialect.typed(value, node.field), inner.source, join(" AND ", tests)


def _related_value(inner: Frame, node: AggregateNode, passed: int) -> SQL:
    if node.arg is None:
        return SQL("*")
    return expression(inner, _stripped(node.arg, node.hops[:passed]))


def _stripped(node: Expr, prefix: tuple[Relation, ...]) -> Expr:
    if isinstance(node, ColumnNode):
        return _Reached(node.field, node.hops[len(prefix) :], node.column)
    if isinstance(node, FuncNode):
        return FuncNode(
            node.field, node.name, tuple(_stripped(arg, prefix) for arg in node.args), node.option
        )
    if isinstance(node, ArithNode):
        return ArithNode(
            node.field, node.op, _stripped(node.left, prefix), _stripped(node.right, prefix)
        )
    return node


class _Reached(ColumnNode):
    """A column whose to-many relations are joined on purpose, inside an aggregate's own
    sub-select.
    """

    __slots__ = ()


def reached(frame: Frame, node: ColumnNode) -> SQL:
    """A column over any relations, joining to-many ones too: one row for each related row."""
    return frame.column(node.hops, node.column)
