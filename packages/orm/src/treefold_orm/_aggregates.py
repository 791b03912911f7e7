"""Aggregates: Count, Sum, Avg, Min, Max.

Over a to-many relation each one stands for itself, so that several never multiply each other.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._carriers import DURATION, FLOAT, INTEGER
from treefold_orm._compile._nodes import (
    AggregateNode,
    And,
    ColumnNode,
    Expr,
    Node,
    SubqueryNode,
    children_of,
    contains_window,
)
from treefold_orm._conditions import Condition, Q
from treefold_orm._errors import FieldError
from treefold_orm._expressions import Expression, as_expression
from treefold_orm._fields._base import Field
from treefold_orm._lookups import walk
from treefold_orm._scope import Scope

AnyField = Field[Any]


class Aggregate(Expression):
    """Base of aggregates over a field, an expression or a relation.

    Over a to-many relation each one stands for itself: several never multiply each other. `filter`
    limits what is aggregated; conditions that go over the same relation speak of the aggregated
    rows.
    """

    __slots__ = ("distinct", "expression", "filter")

    name = ""

    def __init__(
        self, expression: Any, *, distinct: bool = False, filter: Condition | None = None
    ) -> None:
        self.expression = expression
        self.distinct = bool(distinct)
        self.filter = filter

    def freeze(self, scope: Scope) -> Expr:
        hops, arg = self._argument(scope)
        where: Node | None = None
        if self.filter is not None:
            where = Q(self.filter).freeze_condition(scope)
            where = where if isinstance(where, And) else And((where,))
        return AggregateNode(self._output(arg), self.name, arg, self.distinct, where, hops)

    def _argument(self, scope: Scope) -> tuple[tuple[Any, ...], Expr | None]:
        if isinstance(self.expression, str) and (self.expression, self.name) == ("*", "count"):
            return (), None
        if isinstance(self.expression, str) and self.expression not in scope.annotations:
            hops, column, rest = walk(scope.meta, self.expression)
            if rest:
                raise FieldError(f"{self.expression!r} must name a field or relation")
            if column.sensitive:
                raise FieldError(
                    f"{self.expression!r} is sensitive and cannot be aggregated by name"
                )
            return hops, ColumnNode(column, hops, column)
        node = as_expression(self.expression).freeze(scope)
        if contains_window(node):
            raise FieldError(
                "An aggregate cannot be taken of a window: filter by the window and count the rows"
            )
        hops = _common_hops(node)
        return hops, node

    def _output(self, arg: Expr | None) -> AnyField | None:
        return None if arg is None else arg.field


def _common_hops(node: Expr) -> tuple[Any, ...]:
    found: list[tuple[Any, ...]] = []
    stack: list[Any] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ColumnNode):
            found.append(item.hops)
        elif not isinstance(item, SubqueryNode):
            stack.extend(children_of(item))
    many = [hops for hops in found if any(hop.to_many for hop in hops)]
    if many and any(hops != many[0] for hops in found):
        raise FieldError("An aggregate over a to-many relation takes fields of that relation only")
    return many[0] if many else ()


class Count(Aggregate):
    """How many: rows of a relation, values that are not NULL, or with `"*"` rows of the group."""

    __slots__ = ()
    name = "count"

    def _output(self, arg: Expr | None) -> AnyField:
        return INTEGER


class Sum(Aggregate):
    """The sum, None where there is nothing to add."""

    __slots__ = ()
    name = "sum"

    def _output(self, arg: Expr | None) -> AnyField | None:
        return (
            INTEGER
            if arg is not None and arg.field is not None and arg.field.internal == "integer"
            else super()._output(arg)
        )


class Avg(Aggregate):
    """The mean as a float (a timedelta for durations), None where there is nothing."""

    __slots__ = ()
    name = "avg"

    def _output(self, arg: Expr | None) -> AnyField:
        duration = arg is not None and arg.field is not None and arg.field.internal == "duration"
        return DURATION if duration else FLOAT


class Min(Aggregate):
    """The smallest value, None where there is none."""

    __slots__ = ()
    name = "min"


class Max(Aggregate):
    """The largest value, None where there is none."""

    __slots__ = ()
    name = "max"
