"""Aggregates that collect values: StringAgg joins texts, ArrayAgg makes a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import copy_with_changes
from treefold_orm._expressions.casts import convert_to_text
from treefold_orm._expressions.conditions import resolve_lookup
from treefold_orm._expressions.nodes import AggregateNode, And, Expr, OrderNode
from treefold_orm._expressions.ordering import resolve_order
from treefold_orm._expressions.resolving import resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._functions.aggregates import Aggregate, AggregateOptions
from treefold_orm._terms.values import Value


class _Collecting(Aggregate):
    def __init__(
        self, expression: object, *, order_by: Any = (), **options: Unpack[AggregateOptions]
    ) -> None:
        super().__init__(expression, **options)
        single = isinstance(order_by, str) or not isinstance(order_by, Sequence)
        self.order_by: Sequence[Any] = (order_by,) if single else order_by

    def apply_options(self, node: AggregateNode, scope: Scope) -> AggregateNode:
        order = resolve_order(scope, self.order_by)
        if node.distinct and node.arg is not None:
            # PostgreSQL refuses other terms beside DISTINCT in an aggregate
            if any(term.expr != node.arg for term in order):
                raise FieldError(
                    f"{type(self).__name__} of distinct values must be ordered by these values; "
                    "drop order_by or distinct"
                )
            # in whichever order they come, they come in the same one on both databases
            order = order or (OrderNode(node.arg, descending=False),)
        return copy_with_changes(node, order=order)


class StringAgg(_Collecting, name="string_agg"):
    """The texts joined with a delimiter between them, None where there are none: `StringAgg(
    "tags__name", ", ", order_by="tags__name")`.

    Numbers, dates and the like are written as `Concat` writes them; NULL is left out. Without
    `order_by` texts come in any order.

    Args:
        expression: a field, an expression or a relation's field.
        delimiter: text.
        order_by: as for `order_by()` of a query.
        options: `distinct`, `filter`, `default` and `output_field`, as for every aggregate.
    """

    def __init__(
        self,
        expression: object,
        delimiter: str,
        *,
        order_by: Any = (),
        **options: Unpack[AggregateOptions],
    ) -> None:
        super().__init__(expression, order_by=order_by, **options)
        if not isinstance(delimiter, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise FieldError(f"StringAgg: delimiter must be text, got {delimiter!r}")
        self.delimiter = delimiter

    def convert_argument(self, arg: Expr | None) -> Expr | None:
        return None if arg is None else convert_to_text("StringAgg", arg)

    def apply_options(self, node: AggregateNode, scope: Scope) -> AggregateNode:
        made = super().apply_options(node, scope)
        # bound like any value: a delimiter is not a part of the SQL text
        return copy_with_changes(made, args=(resolve(Value(self.delimiter), scope),))


class ArrayAgg(_Collecting, name="array_agg"):
    """The values as a list, NULL among them, None where there are none.

    The list is an array on PostgreSQL and JSON on SQLite: it can be read on both, and is no
    operand of other expressions. Without `order_by` values come in any order.

    Args:
        expression: a field, an expression or a relation's field.
        order_by: as for `order_by()` of a query.
        options: `distinct`, `filter` and `default`, as for every aggregate.
    """

    def apply_options(self, node: AggregateNode, scope: Scope) -> AggregateNode:
        made = super().apply_options(node, scope)
        if sum(hop.to_many for hop in node.hops) < 2:
            return made
        # a related row without rows of its own has no values, where a join would give it a NULL
        way = node.hops[: max(i for i, hop in enumerate(node.hops, 1) if hop.to_many)]
        exists = resolve_lookup(scope, "__".join((*(hop.name for hop in way), "isnull")), False)
        tests = () if node.where is None else (node.where,)
        return copy_with_changes(made, where=And((*tests, exists)))
