"""Arithmetic on SQLite that its own operators would get wrong: decimals, dates and times.

Decimals are scaled integers and dates are text here. A point in time becomes whole microseconds
since 1970, is added to or subtracted from, and becomes text of the same width again (see
`_sqlite/numbers.py`), so that nothing is rounded on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

from treefold_orm._dialects.sql import SQL, render_integer
from treefold_orm._expressions.arithmetic import POINTS
from treefold_orm._expressions.conversion import classify_field, count_decimal_places
from treefold_orm._fields.base import AnyField

ARITHMETIC: dict[str, LiteralString] = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%"}
_POINTS: dict[str, LiteralString] = {
    kind: "treefold_" + kind + "{}" for kind in ("datetime", "date", "time")
}
# SQLite makes a REAL of an integer that is too large, and a REAL infinite
_CHECKS: dict[str, LiteralString] = {
    "integer": "treefold_whole{}",
    "decimal": "treefold_exact{}",
    "float": "treefold_finite{}",
    "duration": "treefold_whole{}",
}
# substr keeps the fraction away from strftime, which would round it
_MICROSECONDS: dict[str, LiteralString] = {
    "datetime": "(CAST(strftime('%s', substr({0}, 1, 19)) AS INTEGER) * 1000000 + "
    "CAST(substr({0}, 21, 6) AS INTEGER))",
    "date": "(CAST(strftime('%s', {0}) AS INTEGER) * 1000000)",
    "time": "(CAST(strftime('%s', '1970-01-01 ' || substr({0}, 1, 8)) AS INTEGER) * 1000000 + "
    "CAST(substr({0}, 10, 6) AS INTEGER))",
}


def build_arithmetic(
    op: str,
    left: SQL,
    right: SQL,
    fields: tuple[AnyField | None, AnyField | None, AnyField | None],
    *,
    checked: bool,
) -> SQL:
    """`left op right`; `fields` are those of left, right and result."""
    first, second, result = fields
    kind = "" if result is None else classify_field(result)
    points = [f is not None and f.internal in POINTS for f in (first, second)]
    if any(points):
        sides = [
            convert_temporal_to_microseconds(s, f)
            for s, f in zip((left, right), (first, second), strict=True)
        ]
        moved = SQL("({} " + ARITHMETIC[op] + " {})", *sides)
        return SQL(_POINTS[kind], moved) if kind in POINTS else moved
    if kind == "duration":
        return _build_duration_arithmetic(op, left, right, (first, second))
    if op == "/":
        return _build_quotient(left, right, fields)
    if op == "%":
        places = [count_decimal_places(f) if f is not None else 0 for f in (first, second)]
        return SQL("treefold_rest({}, {}, {}, {})", left, right, *map(render_integer, places))
    plain = SQL("({} " + ARITHMETIC[op] + " {})", left, right)
    return build_checked_sum(plain, result) if checked else plain


def build_checked_sum(value: SQL, field: AnyField | None) -> SQL:
    """A computed number, which is an error of the row where it is outside of its type."""
    template = None if field is None else _CHECKS.get(classify_field(field))
    return value if template is None else SQL(template, SQL("({})", value))


def build_mean(
    build_call: Callable[[str], SQL],
    argument_field: AnyField | None,
    result_field: AnyField | None,
    *,
    distinct: bool,
) -> SQL:
    """A mean of what `argument_field` holds as `result_field`; `build_call` writes the
    aggregates sum, count and avg.
    """
    if argument_field is not None and classify_field(argument_field) == "integer":
        if distinct:
            return build_call("avg_integer")
        # a sum of floats would round each step; that of integers may leave 64 bits, halves do not
        sums = build_call("sum_high"), build_call("sum_low")
        return SQL("treefold_mean({}, {}, {})", *sums, build_call("count"))
    match "" if result_field is None else classify_field(result_field):
        case "decimal" if result_field is not None and argument_field is not None:
            shift = render_integer(
                count_decimal_places(result_field) - count_decimal_places(argument_field)
            )
            total, count = build_call("sum"), build_call("count")
            return SQL("treefold_quotient({}, {}, {})", total, count, shift)
        case "duration":
            return SQL("treefold_part({}, {})", build_call("sum"), build_call("count"))
        case _:
            return build_call("avg")


def _build_duration_arithmetic(
    op: str, left: SQL, right: SQL, fields: tuple[AnyField | None, AnyField | None]
) -> SQL:
    by_float = "float" in {classify_field(f) for f in fields if f is not None}
    if op == "/" and not by_float:
        return SQL("treefold_part({}, {})", left, right)
    if op in {"*", "/"} and by_float:
        low, high = render_integer(-(2**63)), render_integer(2**63 - 1)
        template: LiteralString = (
            "treefold_ratio({}, {})" if op == "/" else "(CAST({} AS REAL) * {})"
        )
        return SQL("treefold_rounded({}, {}, {})", SQL(template, left, right), low, high)
    return SQL("treefold_whole({} " + ARITHMETIC[op] + " {})", left, right)


def _build_quotient(
    left: SQL, right: SQL, fields: tuple[AnyField | None, AnyField | None, AnyField | None]
) -> SQL:
    first, second, result = fields
    if result is None or classify_field(result) != "decimal":
        return SQL("treefold_ratio({}, {})", left, right)
    places = [count_decimal_places(f) if f is not None else 0 for f in (result, second, first)]
    shift = places[0] + places[1] - places[2]
    return SQL("treefold_quotient({}, {}, {})", left, right, render_integer(shift))


def convert_temporal_to_microseconds(value: SQL, field: AnyField | None) -> SQL:
    """A point in time as microseconds since 1970; any other value as it is."""
    template = None if field is None else _MICROSECONDS.get(field.internal)
    return value if template is None else SQL(template, value)
