"""What two operands give: the types of `+ - * / %`, of points in time and spans above all.

A point (datetime, date, time) and a span give a point, two points of one kind a span, and a span
can be multiplied and divided. No SQL is built here.
"""

from __future__ import annotations

import decimal
from typing import Any

from treefold_orm._carriers import DATE, DATETIME, DURATION, FLOAT, INTEGER, TIME, decimal_carrier
from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import DecimalField, FloatField

AnyField = Field[Any]

POINTS = {"datetime": DATETIME, "date": DATE, "time": TIME}
_TIMED = frozenset({*POINTS, "duration"})
_FACTORS = frozenset({"integer", "bigint", "float"})


def operand(op: str, other: AnyField | None, value: Any) -> AnyField | None:
    """The field that carries a bare value beside another operand, None where its type decides."""
    if (
        isinstance(other, DecimalField)
        and isinstance(value, (int, decimal.Decimal))
        and op in {"+", "-", "%"}
    ):
        return other
    if isinstance(other, FloatField) and isinstance(value, int):
        return FLOAT
    return None


def result(op: str, left: AnyField | None, right: AnyField | None) -> AnyField | None:
    """The field that carries `left op right`; raises `FieldError` where dates do not allow it."""
    first, second = (f.internal if f is not None else "" for f in (left, right))
    kinds = {first, second}
    if kinds & _TIMED and "" not in kinds:
        return _timed(op, first, second)
    if "datetime" in kinds:
        return DATETIME
    if "float" in kinds:
        return FLOAT
    places = [f.decimal_places for f in (left, right) if isinstance(f, DecimalField)]
    if places:
        return decimal_carrier(max(places))
    if kinds <= {"integer", "bigint"}:
        return FLOAT if op == "/" else INTEGER
    return left if left is not None else right


def _timed(op: str, first: str, second: str) -> AnyField:
    if op in {"+", "-"}:
        if first == second == "duration" or (op == "-" and first == second):
            return DURATION
        if first in POINTS and second == "duration":
            return POINTS[first]
        if op == "+" and first == "duration" and second in POINTS:
            return POINTS[second]
    by_number = first == "duration" and second in _FACTORS and op in {"*", "/"}
    if by_number or (op == "*" and first in _FACTORS and second == "duration"):
        return DURATION
    raise FieldError(
        f"{first} {op} {second} has no meaning: add or subtract a timedelta, or subtract two "
        "points of one kind"
    )
