"""Aggregates: Count, Sum, Avg, Min, Max, BoolAnd, BoolOr.

Over a to-many relation each one stands for itself, so that several never multiply each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.aggregate_types import aggregated
from treefold_orm._expressions.columns import Column
from treefold_orm._expressions.conditions import Condition, Q, Truth
from treefold_orm._expressions.expressions import (
    Expression,
    F,
    as_expression,
    freeze_path,
    freeze_value,
)
from treefold_orm._expressions.lookups import refuse_sensitive, walk
from treefold_orm._expressions.nodes import (
    AggregateNode,
    And,
    ColumnNode,
    Compare,
    ExistsNode,
    Expr,
    FuncNode,
    Node,
    RelatedNode,
    RowNode,
    SearchNode,
    SubqueryNode,
    WindowNode,
    children_of,
    contains_window,
)
from treefold_orm._expressions.operands import as_output, chosen
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import TEXT
from treefold_orm._fields.keys import KeyColumns

AnyField = Field[Any]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)  # such a name becomes an attribute
# nodes whose value belongs to the row itself, whatever relations stand below them
_OF_THE_ROW = (
    AggregateNode,
    ExistsNode,
    RelatedNode,
    RowNode,
    SearchNode,
    SubqueryNode,
    WindowNode,
)


class AggregateOptions(TypedDict, total=False):
    """Keyword options that every aggregate takes."""

    distinct: bool
    filter: Condition | None
    default: Any
    output_field: AnyField | None


class Aggregate(Expression):
    """Base of aggregates over a field, an expression or a relation.

    Over a to-many relation each one stands for itself: several never multiply each other. `filter`
    limits what is aggregated; conditions that go over the same relation speak of the aggregated
    rows. `default` stands where there is nothing to aggregate, and `output_field` is the type of
    the result, converted as for a column.
    """

    __slots__ = ("default", "distinct", "expression", "filter", "output_field")

    name = ""
    label = ""

    def __init__(
        self,
        expression: Any,
        *,
        distinct: bool = False,
        filter: Condition | None = None,
        default: Any = None,
        output_field: AnyField | None = None,
    ) -> None:
        self.expression = expression
        self.distinct = bool(distinct)
        self.filter = filter
        self.default = default
        self.output_field = output_field

    def default_name(self) -> str:
        """The name that an aggregate without one gets: `price__sum` for `Sum("price")`."""
        given = self.expression
        path: str | None = given if isinstance(given, str) else None
        if isinstance(given, F):
            path = given.path
        elif isinstance(given, Column):
            path = cast("Column[Any]", given).path
        made = f"{path}__{self.label or self.name}"
        if path is None or _PLAIN.fullmatch(made) is None:
            kind = type(self).__name__
            raise FieldError(f"{kind} of an expression must have a name, as in total={kind}(...)")
        return made

    def freeze(self, scope: Scope) -> Expr:
        hops, arg = self._argument(scope)
        arg = self.argument(arg)
        where: Node | None = None
        if self.filter is not None and not self.filter.empty:
            where = Q(self.filter).freeze_condition(scope)
            where = where if isinstance(where, And) else And((where,))
        plain = AggregateNode(None, self.name, arg, self.distinct, where, hops)
        made: Expr = aggregated(self.complete(plain, scope))
        if self.output_field is not None:
            made = as_output(made, self.output_field)
        if self.default is None:
            return made
        return chosen("coalesce", (made, freeze_value(self.default, scope, made.field)))

    def argument(self, arg: Expr | None) -> Expr | None:
        """Return the argument as the aggregate takes it."""
        return arg

    def complete(self, node: AggregateNode, scope: Scope) -> AggregateNode:
        """Return the node with what the aggregate has beside its argument."""
        return node

    def _argument(self, scope: Scope) -> tuple[tuple[Any, ...], Expr | None]:
        if isinstance(self.expression, str) and (self.expression, self.name) == ("*", "count"):
            return (), None
        if isinstance(self.expression, str) and self.expression not in scope.annotations:
            hops, column, rest = walk(scope.meta, self.expression)
            if rest:
                return hops, freeze_path(scope, self.expression, typed=False)
            refuse_sensitive(scope.meta, column, self.expression)
            if isinstance(column, KeyColumns):
                return hops, self._counted(column, hops)
            return hops, ColumnNode(column, hops, column)
        node = as_expression(self.expression).freeze(scope)
        if contains_window(node) and not scope.over_rows:
            raise FieldError(
                "An aggregate cannot be taken of a window: filter by the window and count the rows"
            )
        return _way_of(node), node

    def _counted(self, key: KeyColumns, hops: tuple[Any, ...]) -> Expr:
        if self.name != "count":
            raise FieldError(
                f"{self.expression!r} is a key of several columns, which can only be counted"
            )
        parts = tuple(ColumnNode(part, hops, part) for part in key.parts)
        # no part is NULL where there is a row: one of them counts rows
        return FuncNode(TEXT, "key_text", parts) if self.distinct else parts[0]


def named(
    aggregates: Iterable[Any], expressions: Mapping[str, Any]
) -> dict[str, Expression | Condition]:
    """Return all aggregates by name, those with a default name before those with a given one."""
    made: dict[str, Any] = {}
    for aggregate in aggregates:
        if not isinstance(aggregate, Aggregate):
            raise FieldError(
                f"{type(aggregate).__name__} must have a name, as in total=...; only aggregates "
                "have one by default"
            )
        name = aggregate.default_name()
        if name in made or name in expressions:
            raise FieldError(f"{name!r} names two aggregates: give one of them another name")
        made[name] = aggregate
    return {**made, **expressions}


def _way_of(node: Expr) -> tuple[Any, ...]:
    """The way to the related rows that an expression is aggregated over; empty for the row's own.

    What else it holds is the same for all rows on that way.
    """
    ways: list[tuple[Any, ...]] = []
    stack: list[Node] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ColumnNode):
            ways.append(_many(item.hops))
        elif isinstance(item, Compare):
            ways.append(_many(item.lookup.hops))
        if not isinstance(item, _OF_THE_ROW):
            stack.extend(children_of(item))
    longest = max(ways, key=len, default=())
    if any(longest[: len(way)] != way for way in ways):
        raise FieldError(
            "An aggregate cannot take fields of two to-many relations: aggregate each on its own"
        )
    return longest


def _many(hops: tuple[Any, ...]) -> tuple[Any, ...]:
    """The part of a way that ends with its last to-many relation."""
    return hops[: max((i for i, hop in enumerate(hops, 1) if hop.to_many), default=0)]


class Count(Aggregate):
    """How many: rows of a relation, values that are not NULL, or with `"*"` rows of the group."""

    __slots__ = ()
    name = "count"

    def __init__(self, expression: Any, **options: Unpack[AggregateOptions]) -> None:
        if options.get("default") is not None:
            raise FieldError("Count cannot have a default: where there is nothing, it is 0")
        super().__init__(expression, **options)


class Sum(Aggregate):
    """The sum of numbers or spans, None where there is nothing to add."""

    __slots__ = ()
    name = "sum"


class Avg(Aggregate):
    """The mean, None where there is nothing: a float, of decimals a Decimal with at least six
    places, of spans a timedelta.
    """

    __slots__ = ()
    name = "avg"


class Min(Aggregate):
    """The smallest value, None where there is none."""

    __slots__ = ()
    name = "min"


class Max(Aggregate):
    """The largest value, None where there is none."""

    __slots__ = ()
    name = "max"


class _Truth(Aggregate):
    __slots__ = ()

    def __init__(self, expression: Any, **options: Unpack[AggregateOptions]) -> None:
        condition = isinstance(expression, Condition)
        super().__init__(Truth(expression) if condition else expression, **options)


class BoolAnd(_Truth):
    """True if all values are true, None where there are none; a condition may stand for the value:
    `BoolAnd(Q(price__gt=0))`.
    """

    __slots__ = ()
    name = "bool_and"
    label = "booland"


class BoolOr(_Truth):
    """True if any value is true, None where there are none; a condition may stand for the value:
    `BoolOr(Q(price__gt=0))`.
    """

    __slots__ = ()
    name = "bool_or"
    label = "boolor"
