"""Conversions on SQLite, where a decimal is an integer scaled by its places and a point in time is
text.

What is rounded or could leave its limits is computed by the functions of `_sqlite/numbers.py`.
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._dialects.sql import SQL, render_integer
from treefold_orm._expressions.conversion import (
    classify_field,
    count_decimal_places,
    count_integer_bits,
    follow_foreign_keys,
)
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.numbers import DecimalField

_EXACT_DIGITS = 15  # so many digits of a decimal divide to the nearest float
_PLAIN: dict[tuple[str, str], LiteralString] = {
    ("integer", "float"): "CAST({} AS REAL)",
    ("number", "float"): "CAST({} AS REAL)",
    ("integer", "number"): "{}",
    ("date", "datetime"): "({} || ' 00:00:00.000000+00:00')",
    ("datetime", "date"): "substr({}, 1, 10)",
    ("json", "text"): "treefold_json_as({}, 'text')",
    ("json", "boolean"): "treefold_json_as({}, 'boolean')",
    ("json", "number"): "treefold_json_as({}, 'number')",
    ("json", "float"): "treefold_json_as({}, 'float')",
}


def build_conversion(value: SQL, source: AnyField, target: AnyField, mode: str) -> SQL:
    """`value`, which travels as `source`, as `target` keeps it."""
    pair = classify_field(source), classify_field(target)
    if pair == ("decimal", "float"):
        return _convert_decimal_to_float(value, source)
    if pair[1] == "decimal":
        return _convert_to_decimal(value, source, target, mode)
    if pair[1] == "integer":
        return _convert_to_integer(value, source, target)
    if pair[0] == pair[1]:
        return value
    template = _PLAIN.get(pair)
    if template is None:
        raise FieldError(f"{pair[0]} cannot be converted to {pair[1]} on sqlite")
    return SQL(template, value)


def _convert_decimal_to_float(value: SQL, source: AnyField) -> SQL:
    source = follow_foreign_keys(source)
    if isinstance(source, DecimalField) and source.max_digits <= _EXACT_DIGITS:
        return SQL("({} / {}.0)", value, render_integer(10**source.decimal_places))
    return SQL("treefold_real({}, {})", value, render_integer(count_decimal_places(source)))


def _convert_to_decimal(value: SQL, source: AnyField, target: AnyField, mode: str) -> SQL:
    target = follow_foreign_keys(target)
    digits = target.max_digits if isinstance(target, DecimalField) and mode == "assign" else 18
    most = render_integer(10 ** min(digits, 18) - 1)
    if classify_field(source) in {"float", "number"}:
        places = render_integer(count_decimal_places(target))
        return SQL("treefold_scaled({}, {}, -{}, {})", value, places, most, most)
    shift = count_decimal_places(target) - count_decimal_places(source)
    if mode == "assign":
        return SQL("treefold_fit({}, {}, -{}, {})", value, render_integer(shift), most, most)
    # The common type has the most places, so that `shift` is not negative here. Beyond 64 bits an
    # operand becomes a REAL, which compares on the right side and fails the check of arithmetic.
    scaled = SQL("({} * {})", value, render_integer(10**shift))
    return scaled if mode == "operand" else SQL("treefold_exact({})", scaled)


def _convert_to_integer(value: SQL, source: AnyField, target: AnyField) -> SQL:
    half = 2 ** (count_integer_bits(target) - 1)
    limits = render_integer(-half), render_integer(half - 1)
    if classify_field(source) in {"integer", "decimal"}:
        shift = render_integer(-count_decimal_places(source))
        return SQL("treefold_fit({}, {}, {}, {})", value, shift, *limits)
    return SQL("treefold_rounded({}, {}, {})", value, *limits)
