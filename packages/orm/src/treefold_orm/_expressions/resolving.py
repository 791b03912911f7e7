"""Resolving expressions against a model: names become columns, values move to the query's
parameters, and what is left is a tree of nodes (see `nodes.py`).

Classes of this room resolve themselves; those of the room `terms` are resolved by the rule of their
class, which `conditions.py` completes. No SQL is built here.

Example, `F("views") + 5` for a query of articles that has the parameter `"Ants"` already: the value
becomes the second parameter, of the type that `views` needs beside it:

    scope.params    ["Ants", 5]
    ArithNode(BigIntegerField(), "+", ColumnNode(...Article.views), ParamNode(..., index=1))
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._expressions import nodes
from treefold_orm._expressions.arithmetic import build_arithmetic_node, choose_bare_value_field
from treefold_orm._expressions.conversion import find_common_expression_type
from treefold_orm._expressions.lookups import Lookup, parse_lookup, refuse_sensitive, walk_path
from treefold_orm._expressions.operands import build_power
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import infer_value_field
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.numbers import DecimalField, FloatField
from treefold_orm._terms.columns import AnyColumn, Column
from treefold_orm._terms.operators import Combined, Expression, OrderBy
from treefold_orm._terms.values import F, OuterRef, Value, as_expression


class QuerySource:
    """Base of queries and of managers, which stand for a new query each time."""

    __slots__ = ()

    def _resolve_subquery(self, scope: Scope) -> nodes.SubqueryNode:
        raise NotImplementedError


COMPUTED = (Expression, QuerySource)
"""Values that the database computes: an expression, or a query for one value."""


class Resolvable(Expression):
    """Base of expressions that resolve themselves."""

    __slots__ = ()

    def resolve(self, scope: Scope) -> nodes.Expr:
        """Resolve against a model; return the node tree."""
        raise NotImplementedError


RULES: dict[type[Expression], Callable[[Any, Scope], nodes.Expr]] = {}
"""How expressions of the room `terms` are resolved, by class."""


def resolve(term: Expression, scope: Scope) -> nodes.Expr:
    """Resolve an expression against a model; return the node tree."""
    if isinstance(term, Resolvable):
        return term.resolve(scope)
    rule = RULES.get(term.__class__)
    if rule is None:  # a subclass that the application has made
        rule = next(RULES[kind] for kind in term.__class__.__mro__ if kind in RULES)
    return rule(term, scope)


def resolve_order_term(term: OrderBy, scope: Scope) -> nodes.OrderNode:
    """Resolve one term of an ordering."""
    return nodes.OrderNode(resolve(term.expression, scope), term.descending, term.nulls)


def resolve_expression_or_order(term: Expression | OrderBy, scope: Scope) -> nodes.Node:
    """Resolve an expression or a term of an ordering."""
    return resolve_order_term(term, scope) if isinstance(term, OrderBy) else resolve(term, scope)


def resolve_value(value: Any, scope: Scope, field: AnyField | None = None) -> nodes.Expr:
    """Resolve an expression, a query or a bare value; a bare value is checked by `field` when
    given.
    """
    node = _resolve_if_computed(value, scope)
    if node is not None:
        return node
    carrier, coerced = _infer_field_and_coerce(value, field)
    return scope.add_param(coerced, carrier)


def resolve_operands(
    values: Sequence[Any], scope: Scope, field: AnyField | None = None
) -> tuple[nodes.Expr, ...]:
    """Resolve values that stand side by side: bare ones are checked by the type that the
    expressions among them have in common, or by `field` when given.
    """
    resolved: list[nodes.Expr | None] = []
    places: list[int] = []
    for value in values:
        resolved.append(_resolve_if_computed(value, scope))
        # a bare value: values are numbered in reading order, and its type is known only once all
        # expressions are
        if resolved[-1] is None:
            places.append(scope.add_param(None, None).index)
    beside = field or find_common_expression_type([node for node in resolved if node is not None])
    left = iter(places)
    operands: list[nodes.Expr] = []
    for value, node in zip(values, resolved, strict=True):
        if node is None:
            carrier, coerced = _infer_field_and_coerce(value, beside)
            place = next(left)
            scope.params[place] = coerced
            node = nodes.ParamNode(carrier, place)
        operands.append(node)
    return tuple(operands)


def _resolve_if_computed(value: Any, scope: Scope) -> nodes.Expr | None:
    if isinstance(value, Expression):
        return resolve(value, scope)
    return value._resolve_subquery(scope) if isinstance(value, QuerySource) else None


def _infer_field_and_coerce(value: Any, field: AnyField | None) -> tuple[AnyField | None, Any]:
    """The field that carries a bare value beside `field`, and the value as that field takes it."""
    if value is None:
        return field, None
    carrier = infer_value_field(value) if field is None else field
    if isinstance(carrier, DecimalField) and isinstance(value, (int, decimal.Decimal)):
        # a scale of its own may be finer than the column's: 0.005 compared with two places must
        # not be refused
        own = infer_value_field(decimal.Decimal(value))
        if isinstance(own, DecimalField) and own.decimal_places > carrier.decimal_places:
            carrier = own
    elif isinstance(carrier, FloatField) and isinstance(value, decimal.Decimal):
        value = float(value)
    return carrier, carrier.coerce(value)


class SeveralColumns(FieldError):
    """A path leads to a key of several columns, and one value is wanted.

    Raised to callers as the `FieldError` that it is, except where the columns can stand for it.
    """


def may_shadow_model_field(annotation: nodes.Expr) -> bool:
    """True for an annotation that may have the name of a field, which typed columns still mean.

    The columns of a CTE are the fields of its rows instead.
    """
    return not isinstance(annotation, nodes.CTENode)


def resolve_path(scope: Scope, path: str, *, from_typed_column: bool) -> nodes.Expr:
    """Resolve a dotted-by-underscores path to a column, an annotation, or something taken from a
    column.
    """
    annotation = scope.annotations.get(path)
    if annotation is not None and not (from_typed_column and may_shadow_model_field(annotation)):
        return annotation
    hops, column, rest = walk_path(scope.meta, path)
    if not from_typed_column:
        refuse_sensitive(scope.meta, column, path)
    if isinstance(column, KeyColumns):
        raise SeveralColumns(
            f"{scope.meta.name}: {path!r} is a key of several columns and has no single value "
            f"here; name one of {', '.join(part.name for part in column.parts)}"
        )
    node: nodes.Expr = nodes.ColumnNode(column, hops, column)
    if rest:
        lookup = parse_lookup(scope.meta, path, from_typed_column=from_typed_column)
        if lookup.op != "exact":
            raise FieldError(f"{scope.meta.name}: {path!r} is a comparison, not a value")
        return LookupValue(lookup).build_node()
    return node


@frozen_record
class LookupValue(Record):
    """The left side of a lookup as a value: a date part, a length, the value at a JSON path."""

    lookup: Lookup

    def build_node(self) -> nodes.Expr:
        """The node tree."""
        lookup = self.lookup
        node: nodes.Expr = nodes.ColumnNode(lookup.column, lookup.hops, lookup.column)
        if lookup.keys is not None:
            return nodes.FuncNode(
                lookup.column, "json_path", (node, nodes.ConstNode(None, lookup.keys))
            )
        for transform in lookup.transforms:
            node = nodes.FuncNode(lookup.field, "extract", (node,), transform)
        return node


# -- rules ----------------------------------------------------------------------------------------


def _resolve_value(term: Value, scope: Scope) -> nodes.Expr:
    carrier, value = _infer_field_and_coerce(term.value, cast("AnyField | None", term.output_field))
    return scope.add_param(value, carrier)


def _resolve_name(term: F, scope: Scope) -> nodes.Expr:
    return resolve_path(scope, term.path, from_typed_column=False)


def _resolve_column(term: AnyColumn, scope: Scope) -> nodes.Expr:
    term.check_model(scope.meta)
    return resolve_path(scope, term.path, from_typed_column=True)


def _resolve_outer(term: OuterRef, scope: Scope) -> nodes.Expr:
    return nodes.OuterNode(None, term.path, level=term.level)


def _resolve_arithmetic(term: Combined, scope: Scope) -> nodes.Expr:
    nested = scope.enter_level()
    if term.op == "**":
        base, exponent = (resolve(as_expression(side), nested) for side in (term.left, term.right))
        return build_power(base, exponent)
    sides: list[nodes.Expr | None] = [_resolve_if_computed(term.left, nested)]
    place = len(nested.params)
    if sides[0] is None:  # values are numbered in reading order, so the left side goes first
        nested.params.append(None)
    sides.append(_resolve_if_computed(term.right, nested))
    left, right = sides
    if left is None:
        beside = choose_bare_value_field(term.op, None if right is None else right.field, term.left)
        carrier, nested.params[place] = _infer_field_and_coerce(term.left, beside)
        left = nodes.ParamNode(carrier, place)
    if right is None:
        right = resolve_value(
            term.right, nested, choose_bare_value_field(term.op, left.field, term.right)
        )
    return build_arithmetic_node(term.op, left, right)


RULES.update(
    {
        Value: _resolve_value,
        F: _resolve_name,
        Column: _resolve_column,
        OuterRef: _resolve_outer,
        Combined: _resolve_arithmetic,
    }
)
