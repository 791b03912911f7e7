"""Resolving conditions against a model.

A keyword becomes a lookup, a comparison of a column the same lookup, and every other comparison a
test of two expressions. No SQL is built here.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._expressions import json_lookups, lookups, nodes
from treefold_orm._expressions.conversion import classify_field, convert_node, find_common_type
from treefold_orm._expressions.operands import build_column_comparison_node, build_comparison_node
from treefold_orm._expressions.resolving import (
    COMPUTED,
    RULES,
    LookupValue,
    may_shadow_model_field,
    resolve,
    resolve_value,
)
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import BOOLEAN, NUMBER, TEXT, infer_value_field
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Relation
from treefold_orm._terms.columns import AnyColumn, Column
from treefold_orm._terms.operators import Comparison, Condition, Expression, Negated, Q
from treefold_orm._terms.values import Related, Truth

_AT_PATH = frozenset({"exact", "gt", "gte", "lt", "lte", "in"}) | lookups.TEXTUAL


class ResolvableCondition(Condition):
    """Base of conditions that resolve themselves."""

    __slots__ = ()

    def resolve_condition(self, scope: Scope) -> nodes.Node:
        """Resolve against a model; return the node tree."""
        raise NotImplementedError


def resolve_condition(condition: Condition, scope: Scope) -> nodes.Node:
    """Resolve a condition against a model; return the node tree."""
    if isinstance(condition, ResolvableCondition):
        return condition.resolve_condition(scope)
    rule = _CONDITIONS.get(condition.__class__)
    if rule is None:  # a subclass that the application has made
        kinds = condition.__class__.__mro__
        rule = next(_CONDITIONS[kind] for kind in kinds if kind in _CONDITIONS)
    return rule(condition, scope)


def _resolve_combined(condition: Q, scope: Scope) -> nodes.Node:
    nested = scope.enter_level()
    children: list[nodes.Node] = []
    for child in condition.children:
        if isinstance(child, Condition):
            children.append(resolve_condition(child, nested))
        else:
            children.append(resolve_lookup(nested, child[0], child[1]))
    # the same tree as without Q(), so that both ways of writing share a plan
    if len(children) == 1:
        return children[0]
    # without any condition every row is meant, however it was combined
    if condition.connector == "or" and children:
        return nodes.Or(tuple(children))
    return nodes.And(tuple(children))


def _resolve_negation(condition: Negated, scope: Scope) -> nodes.Node:
    return nodes.Not(resolve_condition(condition.inner, scope.enter_level()))


def _resolve_comparison(condition: Comparison, scope: Scope) -> nodes.Node:
    left = condition.left
    if isinstance(left, Column):
        column = cast("AnyColumn", left)
        column.check_model(scope.meta)
        return resolve_lookup(
            scope, f"{column.path}__{condition.op}", condition.right, from_typed_column=True
        )
    return resolve_expression_comparison(scope, resolve(left, scope), condition.op, condition.right)


def _resolve_related(condition: Related, scope: Scope) -> nodes.Node:
    hops: list[Relation] = []
    here = scope.meta
    for part in condition.path.split("__"):
        found = here.find(part)
        if not isinstance(found, Relation) or len(hops) >= lookups.MAX_HOPS:
            raise here.build_unknown_name_error(part)
        hops.append(found)
        here = found.target
    where = None
    if condition.where is not None:
        where = resolve_condition(condition.where, scope.with_model(here))
    # Not takes unknown for not met: a related row whose value is NULL does not meet `where`
    if condition.kind == "all":
        return nodes.Not(
            nodes.RelatedNode(tuple(hops), None if where is None else nodes.Not(where))
        )
    node = nodes.RelatedNode(tuple(hops), where)
    return node if condition.kind == "any" else nodes.Not(node)


def _resolve_truth(term: Truth, scope: Scope) -> nodes.Expr:
    return nodes.TruthNode(BOOLEAN, resolve_condition(term.condition, scope))


_CONDITIONS: dict[type[Condition], Callable[[Any, Scope], nodes.Node]] = {
    Q: _resolve_combined,
    Negated: _resolve_negation,
    Comparison: _resolve_comparison,
    Related: _resolve_related,
}
RULES[Truth] = _resolve_truth


def resolve_lookup(
    scope: Scope, name: str, value: Any, *, from_typed_column: bool = False
) -> nodes.Node:
    """Resolve one lookup keyword with its value."""
    annotated = _match_annotation_lookup(scope, name)
    # `Post.title` means the field also where `values(title=...)` has given its name away
    if annotated is not None and not (from_typed_column and may_shadow_model_field(annotated[0])):
        return resolve_expression_comparison(scope, annotated[0], annotated[1], value)
    lookup = lookups.parse_lookup(scope.meta, name, from_typed_column=from_typed_column)
    # a list is one parameter, in which no expression can stand
    if contains_expressions(lookup.op, value):
        path = f"{lookup.name}__"
        return _expand_in_or_range(
            lookup.op,
            value,
            lambda op, item: resolve_lookup(
                scope, path + op, item, from_typed_column=from_typed_column
            ),
        )
    if isinstance(lookup.column, KeyColumns):
        # few models have such a key
        from treefold_orm._expressions.key_lookups import resolve_composite_key_lookup

        return resolve_composite_key_lookup(scope, lookup, value, _build_lookup_node)
    return _build_lookup_node(scope, lookup, value)


def _build_lookup_node(scope: Scope, lookup: lookups.Lookup, value: Any) -> nodes.Node:
    name = lookup.name if lookup.op == "exact" else f"{lookup.name}__{lookup.op}"
    if isinstance(value, COMPUTED):
        if lookup.json and lookup.keys is not None and lookup.op in _AT_PATH:
            return _compare_json_path(scope, lookup, value)
        if lookup.op in {"range", "isnull", "search"} or (lookup.json and lookup.op != "exact"):
            raise FieldError(f"{name} takes plain values, not expressions")
        return build_column_comparison_node(lookup, resolve_value(value, scope))
    used, param = lookup.prepare_value(value)
    if param is lookups.NOTHING:
        return nodes.Compare(used, None)
    return nodes.Compare(used, scope.add_param(param, used.field))


def contains_expressions(op: str, value: Any) -> bool:
    """Return True if the values of `in` or `range` hold expressions."""
    return (
        op in {"in", "range"}
        and isinstance(value, (list, tuple, set, frozenset))
        and any(isinstance(item, Expression) for item in cast("list[Any]", value))
    )


def _expand_in_or_range(
    op: str, values: Any, resolve: Callable[[str, Any], nodes.Node]
) -> nodes.Node:
    """`in` and `range` with expressions, as comparisons with one value each."""
    items = json_lookups.require_list_items(values)
    if op == "range":
        if len(items) != 2:
            raise FieldError(f"range must be given two values, got {len(items)}")
        return nodes.And((resolve("gte", items[0]), resolve("lte", items[1])))
    # no value equals NULL
    given = [item for item in items if item is not None]
    computed = [item for item in given if isinstance(item, Expression)]
    plain = [item for item in given if not isinstance(item, Expression)]
    tests = [resolve("exact", item) for item in computed]
    return nodes.Or((*tests, resolve("in", plain))) if plain else nodes.Or(tuple(tests))


def _compare_json_path(scope: Scope, lookup: lookups.Lookup, value: Any) -> nodes.Node:
    """The value at a JSON path compared with an expression, in the type of the expression."""
    if any(hop.to_many for hop in lookup.hops):
        raise FieldError(
            f"{lookup.name}__{lookup.op} leads to many rows and takes plain values there: use "
            "Exists() with OuterRef()"
        )
    return build_comparison_node(
        LookupValue(lookup).build_node(), lookup.op, resolve_value(value, scope)
    )


def _match_annotation_lookup(scope: Scope, name: str) -> tuple[nodes.Expr, str] | None:
    if not scope.annotations:
        return None
    check_untainted(name)
    if name in scope.annotations:
        return scope.annotations[name], "exact"
    # from the end first: a column of a CTE may be called `writer__name`
    head, _, op = name.rpartition("__")
    if head not in scope.annotations:
        head, _, op = name.partition("__")
    if head not in scope.annotations:
        return None
    if op and op not in lookups.OPERATORS:
        raise FieldError(f"{scope.meta.name} has no lookup {op!r} for annotation {head!r}")
    return scope.annotations[head], op or "exact"


def resolve_expression_comparison(
    scope: Scope, left: nodes.Expr, op: str, value: Any
) -> nodes.Node:
    """Resolve a comparison whose left side is an expression, checking the right side by the left's
    type.
    """
    if contains_expressions(op, value):
        return _expand_in_or_range(
            op, value, lambda op, item: resolve_expression_comparison(scope, left, op, item)
        )
    if op == "search":
        raise FieldError("search works on fields with a SearchIndex, not on annotations")
    if op == "exact" and value is None:
        return nodes.ExpressionCompare(left, "null", None)
    if op == "isnull":
        if not isinstance(value, bool):
            raise FieldError(f"isnull takes True or False, not {type(value).__name__}")
        return nodes.ExpressionCompare(left, "null" if value else "notnull", None)
    if isinstance(value, COMPUTED):
        return build_comparison_node(left, op, resolve_value(value, scope))
    field = left.field
    if field is None:
        field = infer_value_field(value[0] if op in {"in", "range"} and value else value)
    if value is None:
        raise FieldError(f"{op} cannot compare with None: use isnull")
    if field.internal == "binary" and op not in {"exact", "in"}:
        raise FieldError(f"{op} cannot compare binary values: compare them by exact or in")
    if field.internal == "json" and op != "exact":
        return _compare_json_scalar(scope, left, op, value)
    if op not in {"exact", "gt", "gte", "lt", "lte", "in", "range"} and field.internal != "text":
        raise FieldError(f"{op!r} compares text, and the expression is not text")
    if classify_field(field) in {"decimal", "float"}:
        # a value of finer scale must not be refused: 0.005 compared with a column of two places
        if op not in {"in", "range"}:
            return build_comparison_node(left, op, resolve_value(value, scope, field))
        value, field = _unify_value_types(value, field)
        left = convert_node(left, field, "operand")
    _, param = lookups.Lookup("annotation", (), field, op, field).prepare_value(value)
    return nodes.ExpressionCompare(left, op, scope.add_param(param, field))


def _unify_value_types(values: Any, field: AnyField) -> tuple[list[Any], AnyField]:
    """Values for `in` and `range`, and the type with as many places as the finest of them."""
    items = json_lookups.require_list_items(values)
    if classify_field(field) == "float":
        return [float(i) if isinstance(i, decimal.Decimal) else i for i in items], field
    finest = [infer_value_field(i) for i in items if isinstance(i, decimal.Decimal)]
    return items, find_common_type([field, *finest]) or field


def _compare_json_scalar(scope: Scope, left: nodes.Expr, op: str, value: Any) -> nodes.Node:
    """The JSON test for a value: numbers are compared with numbers, text with text."""
    first = json_lookups.require_list_items(value)[:1] if op in {"in", "range"} else [value]
    if any(isinstance(item, bool) or not isinstance(item, (int, float, str)) for item in first):
        raise FieldError(f"{op} compares JSON numbers or text, not {type(first[0]).__name__}")
    field = TEXT if any(isinstance(item, str) for item in first) else NUMBER
    return resolve_expression_comparison(scope, convert_node(left, field, "operand"), op, value)
