"""Aggregates: Count, Sum, Avg, Min, Max, BoolAnd, BoolOr, StdDev, Variance.

Over a to-many relation each one stands for itself, so that several never multiply each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypedDict, Unpack, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import copy_with_changes
from treefold_orm._expressions import nodes
from treefold_orm._expressions.aggregate_types import apply_aggregate_types
from treefold_orm._expressions.conditions import resolve_condition
from treefold_orm._expressions.lookups import refuse_sensitive, walk_path
from treefold_orm._expressions.operands import build_same_type_function, convert_to_output_type
from treefold_orm._expressions.resolving import Resolvable, resolve, resolve_path, resolve_value
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import TEXT
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Relation
from treefold_orm._terms.columns import AnyColumn, Column
from treefold_orm._terms.operators import Condition, Expression, Q
from treefold_orm._terms.values import F, Truth, as_expression

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)  # such a name becomes an attribute
# nodes whose value belongs to the row itself, whatever relations stand below them
_OF_THE_ROW = (
    nodes.AggregateNode,
    nodes.ExistsNode,
    nodes.RelatedNode,
    nodes.PerRowNode,
    nodes.SearchNode,
    nodes.SubqueryNode,
    nodes.WindowNode,
)


class AggregateOptions(TypedDict, total=False):
    """Keyword options that every aggregate takes."""

    distinct: bool
    filter: Condition | None
    default: Any
    output_field: AnyField | None


class Aggregate(Resolvable):
    """Base of aggregates over a field, an expression or a relation.

    Over a to-many relation each one stands for itself: several never multiply each other. `filter`
    limits what is aggregated; conditions that go over the same relation speak of the aggregated
    rows. `default` stands where there is nothing to aggregate, and `output_field` is the type of
    the result, converted as for a column.
    """

    name = ""

    def __init_subclass__(cls, *, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = name or cls.name

    def __init__(
        self,
        expression: object,
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

    def build_default_name(self) -> str:
        """The name that an aggregate without one gets: `price__sum` for `Sum("price")`."""
        given = self.expression
        path: str | None = given if isinstance(given, str) else None
        if isinstance(given, F):
            path = given.path
        elif isinstance(given, Column):
            path = cast("AnyColumn", given).path
        made = f"{path}__{self.name.replace('_', '')}"
        if path is None or _PLAIN.fullmatch(made) is None:
            kind = type(self).__name__
            raise FieldError(f"{kind} of an expression must have a name, as in total={kind}(...)")
        return made

    def resolve(self, scope: Scope) -> nodes.Expr:
        hops, arg = self._resolve_path_and_argument(scope)
        arg = self.convert_argument(arg)
        where: nodes.Node | None = None
        if self.filter is not None and not self.filter.empty:
            where = resolve_condition(Q(self.filter), scope)
            where = where if isinstance(where, nodes.And) else nodes.And((where,))
        plain = nodes.AggregateNode(None, self.name, arg, self.distinct, where, hops)
        made: nodes.Expr = apply_aggregate_types(self.apply_options(plain, scope))
        if self.output_field is not None:
            made = convert_to_output_type(made, self.output_field)
        if self.default is None:
            return made
        default = resolve_value(self.default, scope, made.field)
        return build_same_type_function("coalesce", (made, default))

    def convert_argument(self, arg: nodes.Expr | None) -> nodes.Expr | None:
        """Return the argument as the aggregate takes it."""
        return arg

    def apply_options(self, node: nodes.AggregateNode, scope: Scope) -> nodes.AggregateNode:
        """Return the node with the options of the aggregate beside its argument."""
        return node

    def _resolve_path_and_argument(
        self, scope: Scope
    ) -> tuple[tuple[Relation, ...], nodes.Expr | None]:
        if isinstance(self.expression, str) and (self.expression, self.name) == ("*", "count"):
            return (), None
        if isinstance(self.expression, str) and self.expression not in scope.annotations:
            # by its way, not as a value: `Count("articles")` names a relation, and a key of several
            # columns can be counted
            hops, column, rest = walk_path(scope.meta, self.expression)
            if rest:
                return hops, resolve_path(scope, self.expression, from_typed_column=False)
            # Min() of a secret would show it
            refuse_sensitive(scope.meta, column, self.expression)
            if isinstance(column, KeyColumns):
                return hops, self._build_composite_key_argument(column, hops)
            return hops, nodes.ColumnNode(column, hops, column)
        node = resolve(as_expression(self.expression), scope)
        if nodes.contains_window(node) and not scope.over_rows:
            raise FieldError(
                "An aggregate cannot be taken of a window: filter by the window and count the rows"
            )
        return _find_relation_path(node), node

    def _build_composite_key_argument(
        self, key: KeyColumns, hops: tuple[Relation, ...]
    ) -> nodes.Expr:
        if self.name != "count":
            raise FieldError(
                f"{self.expression!r} is a key of several columns, which can only be counted"
            )
        parts = tuple(nodes.ColumnNode(part, hops, part) for part in key.parts)
        # no part is NULL where there is a row: one of them counts rows
        return nodes.FuncNode(TEXT, "key_text", parts) if self.distinct else parts[0]


def assign_aggregate_names(
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
        name = aggregate.build_default_name()
        if name in made or name in expressions:
            raise FieldError(f"{name!r} names two aggregates: give one of them another name")
        made[name] = aggregate
    return {**made, **expressions}


def _find_relation_path(node: nodes.Expr) -> tuple[Relation, ...]:
    """The way to the related rows that an expression is aggregated over; empty for the row's own.

    Its other parts are the same for all rows on that way.
    """
    ways: list[tuple[Relation, ...]] = []
    stack: list[nodes.Node] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, nodes.ColumnNode):
            ways.append(_trim_after_last_to_many(item.hops))
        elif isinstance(item, nodes.Compare):
            ways.append(_trim_after_last_to_many(item.lookup.hops))
        if not isinstance(item, _OF_THE_ROW):
            stack.extend(nodes.collect_children(item))
    longest = max(ways, key=len, default=())
    # joined, the rows of one relation would repeat those of the other
    if any(longest[: len(way)] != way for way in ways):
        raise FieldError(
            "An aggregate cannot take fields of two to-many relations: aggregate each on its own"
        )
    return longest


def _trim_after_last_to_many(hops: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """The part of a way that ends with its last to-many relation."""
    return hops[: max((i for i, hop in enumerate(hops, 1) if hop.to_many), default=0)]


class Count(Aggregate, name="count"):
    """How many: rows of a relation, values that are not NULL, or with `"*"` rows of the group."""

    def __init__(self, expression: object, **options: Unpack[AggregateOptions]) -> None:
        if options.get("default") is not None:
            raise FieldError("Count cannot have a default: where there is nothing, it is 0")
        super().__init__(expression, **options)


class Sum(Aggregate, name="sum"):
    """The sum of numbers or spans, None where there is nothing to add."""


class Avg(Aggregate, name="avg"):
    """The mean, None where there is nothing: a float, of decimals a Decimal with at least six
    places, of spans a timedelta.
    """


class Min(Aggregate, name="min"):
    """The smallest value, None where there is none."""


class Max(Aggregate, name="max"):
    """The largest value, None where there is none."""


class _Truth(Aggregate):
    def __init__(self, expression: object, **options: Unpack[AggregateOptions]) -> None:
        condition = isinstance(expression, Condition)
        super().__init__(Truth(expression) if condition else expression, **options)


class BoolAnd(_Truth, name="bool_and"):
    """True if all values are true, None where there are none; a condition may stand for the value:
    `BoolAnd(Q(price__gt=0))`.
    """


class BoolOr(_Truth, name="bool_or"):
    """True if any value is true, None where there are none; a condition may stand for the value:
    `BoolOr(Q(price__gt=0))`.
    """


class _Statistic(Aggregate):
    """Base of floats of the whole population, or with `sample` of a part of it."""

    names: ClassVar[tuple[str, str]] = ("", "")

    def __init__(
        self, expression: object, *, sample: bool = False, **options: Unpack[AggregateOptions]
    ) -> None:
        super().__init__(expression, **options)
        self.sample = bool(sample)

    def apply_options(self, node: nodes.AggregateNode, scope: Scope) -> nodes.AggregateNode:
        return copy_with_changes(node, name=self.names[self.sample])


class StdDev(_Statistic, name="stddev"):
    """The standard deviation as a float, None where there is nothing (or, of a sample, one value).

    Args:
        expression: a field, an expression or a relation's field.
        sample: True for the deviation of a sample, divided by the number of values less one.
        options: `distinct`, `filter`, `default` and `output_field`, as for every aggregate.
    """

    names = ("stddev_pop", "stddev_samp")


class Variance(_Statistic, name="variance"):
    """The variance as a float, None where there is nothing (or, of a sample, one value).

    Args:
        expression: a field, an expression or a relation's field.
        sample: True for the variance of a sample, divided by the number of values less one.
        options: `distinct`, `filter`, `default` and `output_field`, as for every aggregate.
    """

    names = ("var_pop", "var_samp")
