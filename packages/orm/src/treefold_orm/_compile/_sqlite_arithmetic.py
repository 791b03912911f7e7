"""Arithmetic on SQLite that its own operators would get wrong: decimals, dates and times.

Decimals are scaled integers and dates are text here. A point in time becomes whole microseconds
since 1970, is added to or subtracted from, and becomes text of the same width again, so that
nothing is rounded on the way.
"""

from __future__ import annotations

from typing import Any, LiteralString

from treefold_orm._arithmetic import POINTS
from treefold_orm._compile._sql import SQL
from treefold_orm._errors import FieldError, UnsupportedFeature
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import DecimalField

AnyField = Field[Any]

ARITHMETIC: dict[str, LiteralString] = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%"}
# substr keeps the fraction away from strftime, which would round it
_MICROSECONDS: dict[str, LiteralString] = {
    "datetime": "(CAST(strftime('%s', substr({0}, 1, 19)) AS INTEGER) * 1000000 + "
    "CAST(substr({0}, 21, 6) AS INTEGER))",
    "date": "(CAST(strftime('%s', {0}) AS INTEGER) * 1000000)",
    "time": "(CAST(strftime('%s', '1970-01-01 ' || substr({0}, 1, 8)) AS INTEGER) * 1000000 + "
    "CAST(substr({0}, 10, 6) AS INTEGER))",
}
# counted from the year 1, nothing is negative: division and remainder go the same way for all
_TEXT: dict[str, LiteralString] = {
    "datetime": "(strftime('%Y-%m-%d %H:%M:%S', ({0} + 62135596800000000) / 1000000 - "
    "62135596800, 'unixepoch') || printf('.%06d+00:00', ({0} + 62135596800000000) % 1000000))",
    "date": "strftime('%Y-%m-%d', ({0} + 62135596800000000) / 1000000 - 62135596800, 'unixepoch')",
    "time": "(strftime('%H:%M:%S', ({0} + 62135596800000000) / 1000000 - 62135596800, "
    "'unixepoch') || printf('.%06d', ({0} + 62135596800000000) % 1000000))",
}


def arithmetic(
    op: str, left: SQL, right: SQL, fields: tuple[AnyField | None, AnyField | None, AnyField | None]
) -> SQL:
    """`left op right`; `fields` are those of left, right and result."""
    first, second, result = fields
    if isinstance(first, DecimalField) or isinstance(second, DecimalField):
        return _decimal(op, left, right, fields)
    kind = "" if result is None else result.internal
    points = [f is not None and f.internal in POINTS for f in (first, second)]
    if any(points):
        sides = [_microseconds(s, f) for s, f in zip((left, right), (first, second), strict=True)]
        moved = SQL("({} " + ARITHMETIC[op] + " {})", *sides)
        return SQL(_TEXT[kind], moved) if kind in POINTS else moved
    if kind == "duration" and op in {"*", "/"}:
        if op == "*" and "float" not in {f.internal for f in (first, second) if f is not None}:
            return SQL("({} * {})", left, right)
        return SQL(
            "CAST(ROUND(CAST({} AS REAL) " + ARITHMETIC[op] + " {}) AS INTEGER)", left, right
        )
    if op == "/" and kind == "float":
        return SQL("(CAST({} AS REAL) / {})", left, right)
    return SQL("({} " + ARITHMETIC[op] + " {})", left, right)


def _microseconds(value: SQL, field: AnyField | None) -> SQL:
    template = None if field is None else _MICROSECONDS.get(field.internal)
    return value if template is None else SQL(template, value)


def zeros(count: int) -> SQL:
    """So many zeros, to scale a number with."""
    made = SQL("")
    made.text = "0" * count
    return made


def _decimal(
    op: str, left: SQL, right: SQL, fields: tuple[AnyField | None, AnyField | None, AnyField | None]
) -> SQL:
    first, second, _ = fields
    scales = [f.decimal_places if isinstance(f, DecimalField) else 0 for f in (first, second)]
    if any(f is not None and f.internal == "float" for f in (first, second)):
        raise UnsupportedFeature("SQLite cannot mix Decimal and float exactly: use a Decimal")
    if op in {"+", "-", "%"}:
        wide = max(scales)
        sides = [
            SQL("{} * 1{}", s, zeros(wide - n)) if n < wide else s
            for s, n in zip((left, right), scales, strict=True)
        ]
        return SQL("({} " + ARITHMETIC[op] + " {})", sides[0], sides[1])
    if op == "*" and min(scales) == 0:
        return SQL("({} * {})", left, right)
    raise UnsupportedFeature(
        "SQLite keeps Decimals as scaled integers: only + - % and * by an integer are exact"
    )


def same_scale(
    left: SQL, right: SQL, first: Field[Any] | None, second: Field[Any] | None
) -> tuple[SQL, SQL]:
    """Bring two scaled integers to one scale before they are compared."""
    if not isinstance(first, DecimalField) and not isinstance(second, DecimalField):
        return left, right
    scales = [f.decimal_places if isinstance(f, DecimalField) else 0 for f in (first, second)]
    wide = max(scales)
    sides = [
        SQL("{} * 1{}", s, zeros(wide - n)) if n < wide else s
        for s, n in zip((left, right), scales, strict=True)
    ]
    return sides[0], sides[1]


def rescaled(value: SQL, found: Field[Any] | None, wanted: Field[Any]) -> SQL:
    """Bring a scaled integer to the scale of the column it is stored in."""
    if not isinstance(wanted, DecimalField):
        return value
    have = found.decimal_places if isinstance(found, DecimalField) else 0
    if have > wanted.decimal_places:
        raise FieldError(
            f"{wanted.name} keeps {wanted.decimal_places} decimal places, the expression has {have}"
        )
    if have == wanted.decimal_places:
        return value
    return SQL("({}) * 1{}", value, zeros(wanted.decimal_places - have))
