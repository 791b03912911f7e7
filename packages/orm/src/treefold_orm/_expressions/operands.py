"""Operands brought to one type: comparisons, choices between values, assignments.

Each rule takes resolved operands and returns a node whose operands are converted. The same rules
run again where an `OuterRef` learns its type (see `outer.py`); a rule that is not here or in
`arithmetic.py` does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions import nodes
from treefold_orm._expressions.arguments import require_float_argument
from treefold_orm._expressions.conversion import (
    build_representation_key,
    classify_field,
    convert_for_column,
    convert_node,
    describe_type,
    find_common_expression_type,
    find_common_type,
    intern_decimal_field,
)
from treefold_orm._expressions.lookups import TEXTUAL, Lookup
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import FLOAT, TEXT
from treefold_orm._fields.structured import ArrayField

_UNORDERED = frozenset({"json", "array"})
_PLAIN = frozenset({"exact", "gt", "gte", "lt", "lte", "in"})


def build_comparison_node(left: nodes.Expr, op: str, right: nodes.Expr) -> nodes.Node:
    """Return the comparison of two expressions."""
    if op in TEXTUAL and not _is_array(left.field):
        return nodes.ExpressionCompare(_require_text(left, op), op, _require_text(right, op))
    if op not in _PLAIN:
        raise FieldError(f"{op} takes plain values here, not expressions")
    field = find_common_type([left.field, right.field])
    _refuse_json_ordering(field, op)
    return nodes.ExpressionCompare(
        convert_node(left, field, "operand"), op, convert_node(right, field, "operand")
    )


def build_column_comparison_node(lookup: Lookup, right: nodes.Expr) -> nodes.Node:
    """Return the comparison of a lookup's column with an expression."""
    op = lookup.op
    if lookup.custom is not None:
        return nodes.Compare(lookup, convert_node(right, lookup.field, "operand"))
    if op in TEXTUAL and not _is_array(lookup.field):
        return nodes.Compare(lookup, _require_text(right, op))
    if op not in _PLAIN:
        return nodes.Compare(lookup, convert_node(right, lookup.field, "operand"))
    # the right side is converted where it can be: an index serves the bare column only
    field = find_common_type([lookup.field, right.field])
    right = convert_node(right, field, "operand")
    same = field is None or build_representation_key(field) == build_representation_key(
        lookup.field
    )
    return nodes.Compare(lookup, right, None if same else field)


def _refuse_json_ordering(field: AnyField | None, op: str) -> None:
    if field is not None and field.internal == "json" and op not in {"exact", "in"}:
        raise FieldError(f"{op} cannot compare two JSON values: convert one with Cast()")


def _require_text(node: nodes.Expr, op: str) -> nodes.Expr:
    if node.field is None or classify_field(node.field) in {"text", "json"}:
        return convert_node(node, TEXT, "operand")
    raise FieldError(f"{op} cannot compare {describe_type(node.field)}: it takes text, convert it")


def _is_array(field: AnyField | None) -> bool:
    return isinstance(field, ArrayField)


def build_case(
    whens: Sequence[tuple[nodes.Node, nodes.Expr]],
    default: nodes.Expr | None,
    output: AnyField | None = None,
) -> nodes.Expr:
    """Return the CASE of conditions and results, in one type; `output` is set by the caller."""
    results = [then for _, then in whens] + ([] if default is None else [default])
    waits = any(map(nodes.needs_outer_type, results))
    field = find_common_expression_type(results) or (None if waits else output)
    pairs = tuple((when, convert_node(then, field)) for when, then in whens)
    made = nodes.CaseNode(field, pairs, None if default is None else convert_node(default, field))
    return made if output is None else convert_to_output_type(made, output)


def build_same_type_function(name: str, args: Sequence[nodes.Expr], option: str = "") -> nodes.Expr:
    """Return the function `name` of arguments that are brought to one type, which is its own."""
    field = find_common_expression_type(args)
    if name in {"greatest", "least"} and field is not None and classify_field(field) in _UNORDERED:
        raise FieldError(
            f"{name.capitalize()} must be given values that have an order, got"
            f" {describe_type(field)}; "
            "convert them with Cast()"
        )
    # SQLite's COALESCE takes two arguments at least
    if name == "coalesce" and len(args) == 1:
        return args[0]
    return nodes.FuncNode(field, name, tuple(convert_node(node, field) for node in args), option)


def convert_declared_function_args(node: nodes.CustomNode) -> nodes.CustomNode:
    """Return a function of the application with its arguments in the types that it takes."""
    if not node.takes:
        return node
    args = tuple(convert_node(arg, field) for arg, field in zip(node.args, node.takes, strict=True))
    return nodes.CustomNode(node.field, node.template, args, node.takes)


def convert_to_output_type(node: nodes.Expr, field: AnyField) -> nodes.Expr:
    """Return `node` with the type that the caller gives it, converted as for a column of it."""
    field = intern_decimal_field(field)
    if nodes.needs_outer_type(node):
        return nodes.ConvertNode(field, node, "output")
    made = convert_for_column(node, field)
    if isinstance(made, nodes.ConvertNode) and made is not node:
        # no column rounds this value and minds its limits: a cast does
        return nodes.ConvertNode(field, made.arg, "cast" if made.mode == "assign" else made.mode)
    if made.field is field:
        return made
    return nodes.ConvertNode(field, made, "same")


def strip_conversion(node: nodes.Expr) -> nodes.Expr:
    """Return the operand as it was before a rule converted it."""
    while isinstance(node, nodes.ConvertNode) and node.mode in {"value", "operand"}:
        node = node.arg
    return node


def build_power(base: nodes.Expr, exponent: nodes.Expr) -> nodes.Expr:
    """Return `base` to the power of `exponent`, as a float."""
    args = tuple(require_float_argument("Power", side) for side in (base, exponent))
    return nodes.FuncNode(FLOAT, "power", args)


# functions whose operands share a type, by name: the rule that makes their node again
FUNCTION_RULES: dict[str, Callable[[tuple[nodes.Expr, ...], str], nodes.Expr]] = {
    name: lambda args, option, name=name: build_same_type_function(name, args, option)
    for name in ("coalesce", "greatest", "least", "nullif")
}
FUNCTION_RULES["power"] = lambda args, option: build_power(args[0], args[1])
