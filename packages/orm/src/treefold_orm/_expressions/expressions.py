"""Expressions a caller writes: F, Value, arithmetic. Typed columns are in `columns.py`.

They hold names and values. `freeze` resolves one against a model: names become columns, values
move to the query's parameters, and what is left is a node tree (see `_compile._nodes`). Comparing
expressions gives conditions (see `_conditions`). No SQL is built here.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._base.records import Record, record
from treefold_orm._expressions.arithmetic import combined, operand
from treefold_orm._expressions.conversion import common_type
from treefold_orm._expressions.lookups import Lookup, lookup_for, refuse_sensitive, walk
from treefold_orm._expressions.nodes import (
    ColumnNode,
    ConstNode,
    Expr,
    FuncNode,
    OrderNode,
    OuterNode,
    ParamNode,
    SubqueryNode,
)
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import field_of
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.numbers import DecimalField, FloatField

if TYPE_CHECKING:
    from treefold_orm._expressions.conditions import Condition

AnyField = Field[Any]


def compared(left: Expression, op: str, right: Any) -> Condition:
    """Return the condition that compares an expression by the name of a lookup."""
    from treefold_orm._expressions.conditions import (
        Comparison,  # conditions are made of expressions
    )

    return Comparison(left, op, right)


def _power(base: Any, exponent: Any) -> Expression:
    from treefold_orm._expressions.functions_numbers import Power  # functions are expressions

    return Power(base, exponent)


class Expression:
    """Base of everything that has a value in a query.

    Arithmetic gives expressions; comparisons give conditions for `filter`.
    """

    __slots__ = ()

    def freeze(self, scope: Scope) -> Expr:
        """Resolve against a model; return the node tree."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Combined:
        return Combined("+", self, other)

    def __radd__(self, other: Any) -> Combined:
        return Combined("+", other, self)

    def __sub__(self, other: Any) -> Combined:
        return Combined("-", self, other)

    def __rsub__(self, other: Any) -> Combined:
        return Combined("-", other, self)

    def __mul__(self, other: Any) -> Combined:
        return Combined("*", self, other)

    def __rmul__(self, other: Any) -> Combined:
        return Combined("*", other, self)

    def __truediv__(self, other: Any) -> Combined:
        return Combined("/", self, other)

    def __rtruediv__(self, other: Any) -> Combined:
        return Combined("/", other, self)

    def __mod__(self, other: Any) -> Combined:
        return Combined("%", self, other)

    def __rmod__(self, other: Any) -> Combined:
        return Combined("%", other, self)

    def __pow__(self, other: Any) -> Expression:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Expression:
        return _power(other, self)

    def __neg__(self) -> Combined:
        return Combined("*", self, -1)

    def __gt__(self, other: Any) -> Condition:
        return compared(self, "gt", other)

    def __ge__(self, other: Any) -> Condition:
        return compared(self, "gte", other)

    def __lt__(self, other: Any) -> Condition:
        return compared(self, "lt", other)

    def __le__(self, other: Any) -> Condition:
        return compared(self, "lte", other)

    def asc(
        self, *, nulls: str = "", nulls_first: bool | None = None, nulls_last: bool | None = None
    ) -> OrderBy:
        """Order by this, smallest first; `nulls` is "first" or "last", as `nulls_first=True` or
        `nulls_last=True`.
        """
        nulls = _nulls(nulls, nulls_first, nulls_last)
        return OrderBy(self, descending=False, nulls=nulls)

    def desc(
        self, *, nulls: str = "", nulls_first: bool | None = None, nulls_last: bool | None = None
    ) -> OrderBy:
        """Order by this, largest first; `nulls` is "first" or "last", as `nulls_first=True` or
        `nulls_last=True`.
        """
        nulls = _nulls(nulls, nulls_first, nulls_last)
        return OrderBy(self, descending=True, nulls=nulls)


def _nulls(nulls: str, first: bool | None, last: bool | None) -> str:
    given = [
        word for word, wanted in ((nulls, bool(nulls)), ("first", first), ("last", last)) if wanted
    ]
    if len(given) > 1:
        raise FieldError(f"nulls must stand in one place, got {' and '.join(given)}")
    return given[0] if given else ""


class OrderBy:
    """One term of an ordering, as made by `asc()` and `desc()`."""

    __slots__ = ("descending", "expression", "nulls")

    def __init__(self, expression: Expression, *, descending: bool, nulls: str) -> None:
        if nulls not in {"", "first", "last"}:
            raise FieldError(f"nulls={nulls!r} is not 'first' or 'last'")
        self.expression = expression
        self.descending = descending
        self.nulls = nulls

    def freeze(self, scope: Scope) -> OrderNode:
        """Resolve against a model."""
        return OrderNode(self.expression.freeze(scope), self.descending, self.nulls)


def freeze_value(value: Any, scope: Scope, field: AnyField | None = None) -> Expr:
    """Freeze an expression, a query or a bare value; a bare value is checked by `field` when
    given.
    """
    node = _frozen(value, scope)
    if node is not None:
        return node
    carrier, coerced = _carried(value, field)
    return scope.param(coerced, carrier)


def freeze_operands(
    values: Sequence[Any], scope: Scope, field: AnyField | None = None
) -> tuple[Expr, ...]:
    """Freeze values that stand side by side: bare ones are checked by the type that the
    expressions among them have in common, or by `field` when given.
    """
    nodes: list[Expr | None] = []
    places: list[int] = []
    for value in values:
        nodes.append(_frozen(value, scope))
        if nodes[-1] is None:  # values are numbered in reading order
            places.append(scope.param(None, None).index)
    beside = field or common_type([node for node in nodes if node is not None])
    bare = iter(places)
    made: list[Expr] = []
    for value, node in zip(values, nodes, strict=True):
        if node is None:
            carrier, coerced = _carried(value, beside)
            place = next(bare)
            scope.params[place] = coerced
            node = ParamNode(carrier, place)
        made.append(node)
    return tuple(made)


def _frozen(value: Any, scope: Scope) -> Expr | None:
    if isinstance(value, Expression):
        return value.freeze(scope)
    freeze_query: Callable[[Scope], SubqueryNode] | None = getattr(value, "_freeze_subquery", None)
    return None if freeze_query is None else freeze_query(scope)


def _carried(value: Any, field: AnyField | None) -> tuple[AnyField | None, Any]:
    """The field that carries a bare value beside `field`, and the value as that field takes it."""
    if value is None:
        return field, None
    carrier = field_of(value) if field is None else field
    if isinstance(carrier, DecimalField) and isinstance(value, (int, decimal.Decimal)):
        # a scale of its own may be finer than the column's: 0.005 compared with two places must
        # not be refused
        own = field_of(decimal.Decimal(value))
        if isinstance(own, DecimalField) and own.decimal_places > carrier.decimal_places:
            carrier = own
    elif isinstance(carrier, FloatField) and isinstance(value, decimal.Decimal):
        value = float(value)
    return carrier, carrier.coerce(value)


class Value(Expression):
    """A bound value; `output_field` says how it travels when the Python type does not."""

    __slots__ = ("output_field", "value")

    def __init__(self, value: Any, output_field: AnyField | None = None) -> None:
        self.value = value
        self.output_field = output_field

    def freeze(self, scope: Scope) -> Expr:
        carrier, value = _carried(self.value, self.output_field)
        return scope.param(value, carrier)


class F(Expression):
    """The value of a field or annotation, by name: `F("price")`, `F("author__name")`."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        check_untainted(path)
        self.path = path

    def freeze(self, scope: Scope) -> Expr:
        return freeze_path(scope, self.path, typed=False)


class OuterRef(Expression):
    """Inside `Subquery` and `Exists`: a field of the enclosing query."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        check_untainted(path)
        self.path = path

    def freeze(self, scope: Scope) -> Expr:
        return OuterNode(None, self.path)


class Combined(Expression):
    """Two operands and an arithmetic operator."""

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: Any, right: Any) -> None:
        self.op = op
        self.left = left
        self.right = right

    def freeze(self, scope: Scope) -> Expr:
        nested = scope.nested()
        sides: list[Expr | None] = [_frozen(self.left, nested)]
        place = len(nested.params)
        if sides[0] is None:  # values are numbered in reading order, so the left side goes first
            nested.params.append(None)
        sides.append(_frozen(self.right, nested))
        left, right = sides
        if left is None:
            beside = operand(self.op, None if right is None else right.field, self.left)
            carrier, nested.params[place] = _carried(self.left, beside)
            left = ParamNode(carrier, place)
        if right is None:
            right = freeze_value(self.right, nested, operand(self.op, left.field, self.right))
        return combined(self.op, left, right)


class SeveralColumns(FieldError):
    """A path leads to a key of several columns, and one value is wanted.

    Raised to callers as the `FieldError` that it is, except where the columns can stand for it.
    """


def freeze_path(scope: Scope, path: str, *, typed: bool) -> Expr:
    """Resolve a dotted-by-underscores path to a column, an annotation, or something taken from a
    column.
    """
    annotation = scope.annotations.get(path)
    if annotation is not None:
        return annotation
    hops, column, rest = walk(scope.meta, path)
    if not typed:
        refuse_sensitive(scope.meta, column, path)
    if isinstance(column, KeyColumns):
        raise SeveralColumns(
            f"{scope.meta.name}: {path!r} is a key of several columns and has no single value "
            f"here; name one of {', '.join(part.name for part in column.parts)}"
        )
    node: Expr = ColumnNode(column, hops, column)
    if rest:
        lookup = lookup_for(scope.meta, path, typed=typed)
        if lookup.op != "exact":
            raise FieldError(f"{scope.meta.name}: {path!r} is a comparison, not a value")
        return LookupValue(lookup).node()
    return node


@record
class LookupValue(Record):
    """The left side of a lookup as a value: a date part, a length, what stands at a JSON path."""

    lookup: Lookup

    def node(self) -> Expr:
        """The node tree."""
        lookup = self.lookup
        node: Expr = ColumnNode(lookup.column, lookup.hops, lookup.column)
        if lookup.keys is not None:
            return FuncNode(lookup.column, "json_path", (node, ConstNode(None, lookup.keys)))
        for transform in lookup.transforms:
            node = FuncNode(lookup.field, "extract", (node,), transform)
        return node


def as_expression(value: Any) -> Expression:
    """Names mean fields where an expression is expected; everything else is itself or a bound
    value.
    """
    if isinstance(value, Expression):
        return value
    return F(value) if isinstance(value, str) else Value(value)
