"""Expressions a caller writes: F, Value, typed columns, arithmetic.

They hold names and values. `freeze` resolves one against a model: names become columns, values
move to the query's parameters, and what is left is a node tree (see `_compile._nodes`). Comparing
expressions gives conditions (see `_conditions`). No SQL is built here.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from treefold_orm._arithmetic import operand, result
from treefold_orm._carriers import field_of
from treefold_orm._compile._nodes import (
    ArithNode,
    ColumnNode,
    ConstNode,
    Expr,
    FuncNode,
    OrderNode,
    OuterNode,
    SubqueryNode,
)
from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import DecimalField
from treefold_orm._fields._relations import ForeignKey, is_foreign_key
from treefold_orm._lookups import Lookup, lookup_for, refuse_sensitive, walk
from treefold_orm._meta import Meta
from treefold_orm._names import check_untainted
from treefold_orm._scope import Scope

if TYPE_CHECKING:
    from treefold_orm._conditions import Condition
    from treefold_orm._model import Model

T = TypeVar("T")
M = TypeVar("M", bound="Model")
AnyField = Field[Any]


def _compared(left: Expression, op: str, right: Any) -> Condition:
    from treefold_orm._conditions import Comparison  # conditions are made of expressions

    return Comparison(left, op, right)


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

    def __gt__(self, other: Any) -> Condition:
        return _compared(self, "gt", other)

    def __ge__(self, other: Any) -> Condition:
        return _compared(self, "gte", other)

    def __lt__(self, other: Any) -> Condition:
        return _compared(self, "lt", other)

    def __le__(self, other: Any) -> Condition:
        return _compared(self, "lte", other)

    def asc(self, *, nulls: str = "") -> OrderBy:
        """Order by this, smallest first; `nulls` is "first" or "last"."""
        return OrderBy(self, descending=False, nulls=nulls)

    def desc(self, *, nulls: str = "") -> OrderBy:
        """Order by this, largest first; `nulls` is "first" or "last"."""
        return OrderBy(self, descending=True, nulls=nulls)


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
    if isinstance(value, Expression):
        return value.freeze(scope)
    freeze_query: Callable[[Scope], SubqueryNode] | None = getattr(value, "_freeze_subquery", None)
    if freeze_query is not None:
        return freeze_query(scope)
    carrier = field_of(value) if field is None else field
    if isinstance(carrier, DecimalField) and isinstance(value, (int, decimal.Decimal)):
        # a scale of its own may be finer than the column's: 0.005 compared with two places must
        # not be refused
        own = field_of(decimal.Decimal(value))
        carrier = (
            own
            if isinstance(own, DecimalField) and own.decimal_places > carrier.decimal_places
            else carrier
        )
    return scope.param(carrier.coerce(value), carrier)


class Value(Expression):
    """A bound value; `output_field` says how it travels when the Python type does not."""

    __slots__ = ("output_field", "value")

    def __init__(self, value: Any, output_field: AnyField | None = None) -> None:
        self.value = value
        self.output_field = output_field

    def freeze(self, scope: Scope) -> Expr:
        field = self.output_field or field_of(self.value)
        return scope.param(field.coerce(self.value), field)


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
        if isinstance(self.left, Expression):
            left = self.left.freeze(nested)
            right = freeze_value(self.right, nested, operand(self.op, left.field, self.right))
        else:
            mark = len(nested.params)
            right = self.right.freeze(nested)
            field = operand(self.op, right.field, self.left)
            del nested.params[
                mark:
            ]  # values are numbered in reading order, so the left side goes first
            left = freeze_value(self.left, nested, field)
            right = self.right.freeze(nested)
        return ArithNode(result(self.op, left.field, right.field), self.op, left, right)


class Column(Expression, Generic[T]):
    """A model's field as an expression, from class access: `Post.title == "x"`,
    `Post.author.to.name`.

    `model` is where the path starts. Only this form reaches sensitive fields.
    """

    __slots__ = ("field", "meta", "path")

    def __init__(self, meta: Meta, path: str, field: AnyField) -> None:
        self.meta = meta
        self.path = path
        self.field = field

    def freeze(self, scope: Scope) -> Expr:
        self.check_model(scope.meta)
        return freeze_path(scope, self.path, typed=True)

    def check_model(self, meta: Meta) -> None:
        """Raise `FieldError` if the expression starts at another model than the query."""
        if self.meta is not meta and not issubclass(meta.model, self.meta.model):
            raise FieldError(
                f"{self.meta.name}.{self.path} cannot be used in a query of {meta.name}: start "
                f"at {meta.name}"
            )

    def _compare(self, op: str, value: Any) -> Condition:
        return _compared(self, op, value)

    # a condition, as for any query expression
    def __eq__(self, other: T | Expression | None) -> Condition:  # type: ignore[override]
        return self._compare("exact", other)

    # a condition, as for any query expression
    def __ne__(self, other: T | Expression | None) -> Condition:  # type: ignore[override]
        return ~self._compare("exact", other)

    def __hash__(self) -> int:
        return hash((self.meta.name, self.path))

    def __bool__(self) -> bool:
        raise FieldError(
            f"{self.meta.name}.{self.path} is a column, not a value: use it in a query"
        )

    def in_(self, values: Any) -> Condition:
        """One of the values, or of the rows of a query."""
        return self._compare("in", values)

    def between(self, low: T, high: T) -> Condition:
        """From `low` to `high`, both included."""
        return self._compare("range", (low, high))

    def is_null(self, value: bool = True) -> Condition:  # noqa: FBT001, FBT002, RUF100 - reads as the lookup does
        """NULL, or with False not NULL."""
        return self._compare("isnull", value)

    def contains(self, value: Any) -> Condition:
        """Contains the text (or, for arrays, all the items)."""
        return self._compare("contains", value)

    def icontains(self, value: str) -> Condition:
        """Contains the text, ignoring case."""
        return self._compare("icontains", value)

    def startswith(self, value: str) -> Condition:
        """Starts with the text."""
        return self._compare("startswith", value)

    def endswith(self, value: str) -> Condition:
        """Ends with the text."""
        return self._compare("endswith", value)

    def iexact(self, value: str) -> Condition:
        """Equals the text, ignoring case."""
        return self._compare("iexact", value)


class Reference(Column[Any], Generic[M]):
    """A foreign key as an expression; `to` goes on to the target's columns."""

    __slots__ = ()

    @property
    def to(self) -> type[M]:
        """The target model, whose attributes continue this path."""
        field = cast("ForeignKey[Any, Any]", self.field)
        return cast("type[M]", _Path(self.meta, self.path, field.known_target))


class _Path:
    __slots__ = ("_meta", "_prefix", "_target")

    def __init__(self, meta: Meta, prefix: str, target: Meta) -> None:
        self._meta = meta
        self._prefix = prefix
        self._target = target

    def __getattr__(self, name: str) -> Column[Any]:
        found = self._target.find(name)
        if not isinstance(found, Field):
            found = self._target.fields.get(name)
        if found is None:
            raise AttributeError(f"{self._target.name} has no column {name!r}")
        key = is_foreign_key(found) and name == found.name
        kind: Any = Reference if key else Column
        return kind(self._meta, f"{self._prefix}__{name}", found)


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
    node: Expr = ColumnNode(column, hops, column)
    if rest:
        lookup = lookup_for(scope.meta, path, typed=typed)
        if lookup.op != "exact":
            raise FieldError(f"{scope.meta.name}: {path!r} is a comparison, not a value")
        return LookupValue(lookup).node()
    return node


@dataclass(frozen=True, slots=True)
class LookupValue:
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
