"""Arithmetic on PostgreSQL where its own operators would say something else than SQLite: quotients,
spans, points in time that leave the years 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, LiteralString

from treefold_orm._dialects.sql import SQL, render_integer
from treefold_orm._expressions.arithmetic import POINTS
from treefold_orm._expressions.conversion import classify_field, count_decimal_places
from treefold_orm._fields.base import AnyField

_ARITHMETIC: dict[str, LiteralString] = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%"}
# A quotient is rounded twice, first to so many more places than are wanted: the first rounding must
# not move 0.4999... to the half that the second one rounds up. A quotient that is no half differs
# from it by 1 / (2 * divisor) at least, so this holds for divisors of up to 40 digits.
_GUARD_DIGITS = 40
_MICROSECONDS: LiteralString = "(EXTRACT(EPOCH FROM {}) * 1000000)::bigint"
_SPAN: LiteralString = (
    # an interval is multiplied by a double: days and the rest of a day are both exact in one
    "(({0}) / 86400000000 * INTERVAL '1 day' + ({0}) % 86400000000 * INTERVAL '1 microsecond')"
)
# PostgreSQL has the years before 1 and after 9999, Python has no value for them. What is added to
# such a result overflows on the server, so that it is the server's error, and no row comes back.
_CHECKED: dict[str, LiteralString] = {
    "datetime": "({0} + CASE WHEN {0} BETWEEN '0001-01-01 00:00:00Z' AND "
    "'9999-12-31 23:59:59.999999Z' THEN INTERVAL '0' ELSE INTERVAL '178000000 years' END)",
    "date": "({0} + CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31' THEN 0 ELSE 2147483647 "
    "END)",
}


def build_arithmetic(
    op: str, left: SQL, right: SQL, fields: tuple[Any, Any, Any], *, checked: bool
) -> SQL:
    """`left op right`; `fields` are those of left, right and result."""
    kinds = tuple("" if field is None else classify_field(field) for field in fields)
    first, second, result = kinds
    if result in POINTS or {first, second} & set(POINTS):
        moved = _build_temporal_arithmetic(op, left, right, (first, second, result))
        return SQL(_CHECKED[result], moved) if checked and result in _CHECKED else moved
    if result == "duration":
        return _build_duration_arithmetic(op, left, right, (first, second))
    if op == "/" and result == "float":
        return SQL("({}::double precision / {})", left, right)
    if op == "/" and result == "decimal":
        return build_rounded_quotient(left, right, count_decimal_places(fields[2]))
    if first == second == "integer":  # the sum or product may need more than 32 bits
        left = SQL("({})::bigint", left)
    return SQL("({} " + _ARITHMETIC[op] + " {})", left, right)


def build_rounded_quotient(left: SQL, right: SQL, places: int) -> SQL:
    """A quotient of numbers rounded half away from zero; the server's own has 16 digits at least,
    which may end before the last place.
    """
    wide = render_integer(places + _GUARD_DIGITS)
    return SQL(
        "ROUND(ROUND(({})::numeric, {}) / ({}), {})", left, wide, right, render_integer(places)
    )


def build_checked_sum(value: SQL, field: AnyField | None) -> SQL:
    """A sum as `field`; a span of more microseconds than 64 bits hold is an error."""
    if field is None or classify_field(field) != "duration":
        return value
    return SQL(_SPAN, SQL(_MICROSECONDS, value))


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
        # the server's own mean is rounded twice on the way to a float
        total, count = build_call("sum"), build_call("count")
        return SQL("({}::double precision / NULLIF({}, 0))", total, count)
    match "" if result_field is None else classify_field(result_field):
        case "decimal" if result_field is not None:
            total, count = build_call("sum"), build_call("count")
            return build_rounded_quotient(total, count, count_decimal_places(result_field))
        case "duration":
            return _build_duration_quotient(
                SQL(_MICROSECONDS, build_call("sum")), build_call("count")
            )
        case _:
            return SQL("({})::double precision", build_call("avg"))


def _build_duration_quotient(microseconds: SQL, divisor: SQL) -> SQL:
    return SQL(_SPAN, SQL("{}::bigint", build_rounded_quotient(microseconds, divisor, 0)))


def _build_duration_arithmetic(op: str, left: SQL, right: SQL, kinds: tuple[str, str]) -> SQL:
    # in whole microseconds: the server rounds spans in halves to even, and through doubles
    left, right = (
        SQL(_MICROSECONDS, side) if kind == "duration" else side
        for side, kind in zip((left, right), kinds, strict=True)
    )
    if op in {"+", "-"}:
        return SQL(_SPAN, SQL("({} " + _ARITHMETIC[op] + " {})", left, right))
    if "float" in kinds:
        made = SQL("({}::double precision " + _ARITHMETIC[op] + " {})", left, right)
        return SQL(_SPAN, SQL("ROUND({}::text::numeric)::bigint", made))
    if op == "/":
        return _build_duration_quotient(left, right)
    return SQL(_SPAN, SQL("({} * {})", left, right))


def _build_temporal_arithmetic(op: str, left: SQL, right: SQL, kinds: tuple[str, str, str]) -> SQL:
    plain: LiteralString = "({} " + _ARITHMETIC[op] + " {})"
    if kinds == ("date", "date", "duration"):
        return SQL("(" + plain + " * INTERVAL '1 day')", left, right)
    if kinds[2] == "date":
        return SQL("(" + plain + ")::date", left, right)
    if kinds[2] != "datetime":
        return SQL(plain, left, right)
    # a day is 24 hours, whatever the clocks of the session's time zone do meanwhile
    utc = [
        SQL("({} AT TIME ZONE 'UTC')", side) if kind == "datetime" else side
        for side, kind in zip((left, right), kinds[:2], strict=True)
    ]
    return SQL("(" + plain + " AT TIME ZONE 'UTC')", *utc)
