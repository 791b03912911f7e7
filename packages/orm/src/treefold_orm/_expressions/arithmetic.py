"""Results of two operands: the types of `+ - * / %`, of numbers, points in time and spans.

`+ - * %` of decimals are exact and a product has the places of both; a quotient of decimals is
rounded to the most places, at least six. A point (datetime, date, time) and a span give a point,
two points of one kind a span, and a span can be multiplied and divided. No SQL is built here.
"""

from __future__ import annotations

import decimal
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.conversion import (
    NUMBERS,
    choose_matching_datetime_field,
    classify_field,
    convert_node,
    count_decimal_places,
    describe_type,
    find_common_type,
)
from treefold_orm._expressions.nodes import ArithNode, Expr, ParamNode
from treefold_orm._fields import carriers
from treefold_orm._fields.base import AnyField

POINTS = {"datetime": carriers.DATETIME, "date": carriers.DATE, "time": carriers.TIME}
QUOTIENT_PLACES = 6  # a quotient and a mean of decimals have at least so many
_TIMED = frozenset({*POINTS, "duration"})
_WORDS = {"text": "join text with Concat()", "boolean": "count conditions with Case() or Count()"}


def choose_bare_value_field(op: str, other_field: AnyField | None, value: Any) -> AnyField | None:
    """The field that carries a bare value beside another operand, None where its type decides."""
    kind = "" if other_field is None else classify_field(other_field)
    # a bool is an int to Python: with a type of its own, `F("n") + True` is refused
    if isinstance(value, bool):
        return None
    if kind == "float" and isinstance(value, (int, decimal.Decimal)):
        return carriers.FLOAT
    # a sum has the places of both sides; a product and a quotient count the places of each
    if kind == "decimal" and op in {"+", "-"} and isinstance(value, decimal.Decimal):
        return find_common_type([other_field, carriers.infer_value_field(value)])
    return None


def build_arithmetic_node(op: str, left: Expr, right: Expr) -> Expr:
    """Return the node of `left op right`, both in the type that they are computed in.

    Raises `FieldError` where the types do not allow it.
    """
    left, right = (
        _set_untyped_param_type(left, right.field),
        _set_untyped_param_type(right, left.field),
    )
    if left.field is None or right.field is None:
        return ArithNode(None, op, left, right)  # until an OuterRef in it knows its type
    first, second = classify_field(left.field), classify_field(right.field)
    if _TIMED & {first, second}:
        left, right = _convert_duration_factor(left), _convert_duration_factor(right)
        return ArithNode(_infer_temporal_result(op, left.field, right.field), op, left, right)
    for field in (left.field, right.field):
        if classify_field(field) not in NUMBERS | {"json"}:
            way = _WORDS.get(classify_field(field), "use Cast() to make it a number")
            raise FieldError(f"{describe_type(field)} cannot be computed with {op}: {way}")
    return _build_numeric_node(op, left, right)


def _set_untyped_param_type(node: Expr, other: AnyField | None) -> Expr:
    # NULL has no type of its own
    return convert_node(node, other) if isinstance(node, ParamNode) and node.field is None else node


def _build_numeric_node(op: str, left: Expr, right: Expr) -> Expr:
    kinds = {classify_field(side.field) for side in (left, right) if side.field is not None}
    if kinds & {"float", "number", "json"}:
        if op == "%":
            raise FieldError("% has no exact result for floats: use Cast() to a DecimalField")
        sides = [convert_node(side, carriers.FLOAT, "operand") for side in (left, right)]
        return ArithNode(carriers.FLOAT, op, sides[0], sides[1])
    places = [count_decimal_places(side.field) for side in (left, right) if side.field is not None]
    if kinds == {"integer"}:
        # 5 / 2 is 2.5 as in Python: both databases would give 2
        return ArithNode(carriers.FLOAT if op == "/" else carriers.INTEGER, op, left, right)
    if op == "*":
        return ArithNode(carriers.make_decimal_field(sum(places)), op, left, right)
    if op == "/":
        field = carriers.make_decimal_field(max(*places, QUOTIENT_PLACES))
        return ArithNode(field, op, left, right)
    if op == "%":
        return ArithNode(carriers.make_decimal_field(max(places)), op, left, right)
    # scaled integers add up at one scale only, unlike products
    field = find_common_type([left.field, right.field])
    sides = [convert_node(side, field, "operand") for side in (left, right)]
    return ArithNode(carriers.make_decimal_field(max(places)), op, sides[0], sides[1])


def _convert_duration_factor(node: Expr) -> Expr:
    """The factor or divisor of a span: decimals and JSON numbers as floats."""
    kind = "" if node.field is None else classify_field(node.field)
    if kind in {"decimal", "number", "json"}:
        return convert_node(node, carriers.FLOAT, "operand")
    return node


def _choose_temporal_result_field(field: AnyField | None) -> AnyField:
    assert field is not None  # noqa: S101 - its kind was asked for
    kind = classify_field(field)
    return choose_matching_datetime_field(field) if kind == "datetime" else POINTS[kind]


def _infer_temporal_result(op: str, left: AnyField | None, right: AnyField | None) -> AnyField:
    first, second = (classify_field(field) if field is not None else "" for field in (left, right))
    if op in {"+", "-"}:
        if first == second == "duration" or (op == "-" and first == second):
            find_common_type([left, right])  # points with and without a zone have no distance
            return carriers.DURATION
        if first in POINTS and second == "duration":
            return _choose_temporal_result_field(left)
        if op == "+" and first == "duration" and second in POINTS:
            return _choose_temporal_result_field(right)
    by_number = first == "duration" and second in NUMBERS and op in {"*", "/"}
    if by_number or (op == "*" and first in NUMBERS and second == "duration"):
        return carriers.DURATION
    raise FieldError(
        f"{first} {op} {second} has no meaning: add or subtract a timedelta, or subtract two "
        "points of one kind"
    )
