"""OuterRef: a reference that is resolved when its query enters another one.

Until then the rules for operands have nothing to go by; here the inner query's nodes get the type
and the rules run again. No SQL is built here.

Example, the articles of each writer:

    inner = Article.objects.filter(writer=OuterRef("pk")).values("views")
    Writer.objects.annotate(views=Subquery(inner))

| | The node of `OuterRef("pk")` |
|---|---|
| in `inner` alone | `OuterNode(field=None, path="pk", level=1)` |
| in the annotation | `OuterNode(field=Writer.id, path="pk", level=1)`, compared as two integers |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import Record, copy_with_changes, frozen_record
from treefold_orm._expressions import nodes
from treefold_orm._expressions.aggregate_types import apply_aggregate_types
from treefold_orm._expressions.arithmetic import build_arithmetic_node
from treefold_orm._expressions.casts import cast_to
from treefold_orm._expressions.conversion import convert_for_column
from treefold_orm._expressions.lookups import refuse_sensitive, walk_path
from treefold_orm._expressions.operands import (
    FUNCTION_RULES,
    build_case,
    build_column_comparison_node,
    build_comparison_node,
    convert_declared_function_args,
    convert_to_output_type,
    strip_conversion,
)
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.keys import KeyColumns

N = TypeVar("N", bound=nodes.Node)
Fields = tuple[AnyField | None, ...]


def resolve_outer_types(
    key: nodes.Key, scope: Scope, fields_of: Callable[[nodes.Key], Fields]
) -> nodes.Key:
    """Return the key of an inner query with the types of its references to the query of `scope`.

    Queries inside of it may have some too: at each level further in, those that look one level
    further out. `fields_of` returns the types of the columns of a query.
    """
    if not nodes.has_unresolved_outer_ref(key):
        return key
    return _resolve_types_in_key(key, _EnteredQuery(scope, 1, fields_of))


@frozen_record
class _EnteredQuery(Record):
    """The query that is entered, and how many queries lie between it and a node."""

    scope: Scope
    level: int
    fields_of: Callable[[nodes.Key], Fields]

    def enter_subquery(self) -> _EnteredQuery:
        return copy_with_changes(self, level=self.level + 1)


def _resolve_types_in_key(key: nodes.Key, entry: _EnteredQuery) -> nodes.Key:
    def resolve_types(part: Any) -> Any:
        if isinstance(part, nodes.Node):
            return _resolve_types_in_node(part, entry)
        return (
            tuple(map(resolve_types, cast("tuple[Any, ...]", part)))
            if part.__class__ is tuple
            else part
        )

    return (key[0], *map(resolve_types, key[1:]))


def _resolve_types_in_node(node: nodes.Node, entry: _EnteredQuery) -> nodes.Node:
    if isinstance(node, nodes.OuterNode):
        # others look further out, and wait until their query enters that one
        due = node.field is None and node.level == entry.level
        return _resolve_outer_node(node, entry.scope) if due else node
    if isinstance(node, nodes.SubqueryNode):
        if not nodes.has_unresolved_outer_ref(node.key):
            return node
        key = _resolve_types_in_key(node.key, entry.enter_subquery())
        fields = entry.fields_of(key)
        return copy_with_changes(node, key=key, field=fields[0] if fields else None)
    made = nodes.map_child_nodes(node, lambda child: _resolve_types_in_node(child, entry))
    return node if made is node else _reapply_type_rules(made)


def select_key_part(node: nodes.OuterNode, column: AnyField) -> AnyField:
    """The column that a node means at the end of its path: a part where a key has several."""
    if node.part is None and not isinstance(column, KeyColumns):
        return column
    if node.part is None or not isinstance(column, KeyColumns) or node.part >= len(column.parts):
        raise FieldError(f"{node.outer_ref_text} must name a key with as many columns")
    return column.parts[node.part]


def _resolve_outer_node(node: nodes.OuterNode, scope: Scope) -> nodes.OuterNode:
    path = node.path
    known = scope.annotations.get(path)
    if isinstance(known, nodes.CTENode):
        return copy_with_changes(node, field=known.field)
    if known is not None:
        return copy_with_changes(node, field=known.field, known=_build_outer_value(node, known))
    _, column, rest = walk_path(scope.meta, path)
    refuse_sensitive(scope.meta, column, path)
    if rest:
        raise FieldError(f"{node.outer_ref_text} must name a column or an annotation")
    return copy_with_changes(node, field=select_key_part(node, column))


def _build_outer_value(node: nodes.OuterNode, known: nodes.Expr) -> nodes.OuterValue:
    if node.part is not None:
        raise FieldError(f"{node.outer_ref_text} must name a key with as many columns")
    if nodes.contains_window(known) or nodes.contains_group_aggregate(known):
        raise FieldError(
            f"{node.outer_ref_text} must name a value of one row, got a window or the aggregate "
            "of a group: make a CTE of the query that computes it and join it"
        )
    return nodes.OuterValue(known)


def _reapply_type_rules(node: nodes.Node) -> nodes.Node:
    """The node with the rules for its operands applied again."""
    # operands are taken as they were written: a conversion made without the type would stay below
    match node:
        case nodes.ArithNode():
            sides = strip_conversion(node.left), strip_conversion(node.right)
            return build_arithmetic_node(node.op, *sides)
        case nodes.CaseNode():
            whens = [(when, strip_conversion(then)) for when, then in node.whens]
            default = None if node.default is None else strip_conversion(node.default)
            return build_case(whens, default)
        case nodes.ExpressionCompare() if node.right is not None:
            return build_comparison_node(
                strip_conversion(node.left), node.op, strip_conversion(node.right)
            )
        case nodes.Compare() if node.right is not None:
            return build_column_comparison_node(node.lookup, strip_conversion(node.right))
        case nodes.ConvertNode() if node.mode == "assign" and node.field is not None:
            return convert_for_column(node.arg, node.field)
        case nodes.ConvertNode() if node.mode == "output" and node.field is not None:
            return convert_to_output_type(node.arg, node.field)
        case nodes.ConvertNode() if node.mode == "cast" and node.field is not None:
            return cast_to(node.arg, node.field)
        case nodes.AggregateNode():
            arg = None if node.arg is None else strip_conversion(node.arg)
            return apply_aggregate_types(copy_with_changes(node, field=None, arg=arg))
        case nodes.PerRowNode():
            return nodes.PerRowNode(node.node.field, node.node)
        case nodes.CustomNode():
            args = tuple(map(strip_conversion, node.args))
            field = node.field or next((a.field for a in args if a.field is not None), None)
            return convert_declared_function_args(
                nodes.CustomNode(field, node.template, args, node.takes)
            )
        case nodes.WindowNode():
            return nodes.WindowNode(
                node.function.field, node.function, node.partition, node.order, node.frame
            )
        case nodes.FuncNode():
            rule = FUNCTION_RULES.get(node.name)
            args = tuple(map(strip_conversion, node.args))
            if rule is not None:
                return rule(args, node.option)
            field = node.field or next((a.field for a in args if a.field is not None), None)
            return nodes.FuncNode(field, node.name, node.args, node.option)
        case _:
            return node
