"""Check the arguments of SQL functions: their kind, and integers that are part of the SQL text.

A value at a JSON path is read as the requested kind.
"""

from __future__ import annotations

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.conversion import classify_field, convert_node, describe_type
from treefold_orm._expressions.nodes import ConstNode, Expr
from treefold_orm._fields.carriers import FLOAT, INTEGER, TEXT


def require_text_argument(function: str, node: Expr) -> Expr:
    """Return an argument that must be text; what stands at a JSON path is NULL unless it is
    text.
    """
    if node.field is None or classify_field(node.field) == "text":
        return node
    if classify_field(node.field) == "json":
        return convert_node(node, TEXT)
    raise FieldError(
        f"{function} must be given text, got {describe_type(node.field)}; convert it with "
        "Cast(..., fields.TextField())"
    )


def require_number_argument(function: str, node: Expr) -> Expr:
    """Return an argument that must be a number; a value at a JSON path counts as a float."""
    if node.field is None or classify_field(node.field) in {"integer", "decimal", "float"}:
        return node
    if classify_field(node.field) in {"json", "number"}:
        return convert_node(node, FLOAT)
    raise FieldError(
        f"{function} must be given a number, got {describe_type(node.field)}; convert it with"
        " Cast()"
    )


def require_float_argument(function: str, node: Expr) -> Expr:
    """Return an argument that must be a number, as a float."""
    return convert_node(require_number_argument(function, node), FLOAT)


def require_integer_argument(function: str, node: Expr) -> Expr:
    """Return an argument that counts something."""
    if node.field is None or classify_field(node.field) == "integer":
        return node
    raise FieldError(
        f"{function} must be given a whole number here, got {describe_type(node.field)};"
        " convert it "
        "with Cast(..., int)"
    )


def make_constant(value: int) -> ConstNode:
    """A whole number that belongs to the shape of a query, as an argument of a function."""
    return ConstNode(INTEGER, value)


def read_constant(node: Expr) -> int:
    """The number of a `make_constant`."""
    return node.value if isinstance(node, ConstNode) else 0
