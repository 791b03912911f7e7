"""Conversions on PostgreSQL, whose own casts do most of them.

A column takes a value with an assignment cast, which rounds decimals and checks limits; what it
would do otherwise than said is written out. No value is wrapped into a sub-select, where a window
function would see one row only.
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._dialects.sql import SQL
from treefold_orm._expressions.conversion import classify_field
from treefold_orm._fields.base import AnyField

_CONVERT: dict[tuple[str, str], LiteralString] = {
    ("integer", "decimal"): "({})::numeric",
    ("integer", "number"): "({})::numeric",
    ("integer", "float"): "({})::double precision",
    ("decimal", "float"): "({})::double precision",
    ("number", "float"): "({})::double precision",
    ("decimal", "integer"): "({})::bigint",
    ("number", "integer"): "({})::bigint",
    # The shortest text of a double is on the side of a half that the double is on. From 2**52 on
    # all doubles are integers, and their text may have fewer digits than they have.
    ("float", "integer"): "CASE WHEN ABS({0}) < 4503599627370496 "
    "THEN ROUND(({0})::text::numeric)::bigint ELSE ({0})::bigint END",
    ("float", "decimal"): "({})::numeric",
    # JSON keeps fractions that no double has
    ("number", "decimal"): "CASE WHEN TRUNC({0}) = {0} THEN {0} ELSE ({0})::double precision"
    "::numeric END",
    ("date", "datetime"): "(({})::timestamp AT TIME ZONE 'UTC')",
    ("datetime", "date"): "(({}) AT TIME ZONE 'UTC')::date",
    ("json", "text"): "CASE jsonb_typeof({0}) WHEN 'string' THEN {0} #>> '{{}}' END",
    ("json", "boolean"): "CASE jsonb_typeof({0}) WHEN 'boolean' THEN ({0})::boolean END",
    ("json", "number"): "CASE jsonb_typeof({0}) WHEN 'number' THEN ({0})::numeric END",
    ("json", "float"): "CASE jsonb_typeof({0}) WHEN 'number' THEN ({0})::double precision END",
}


def build_conversion(value: SQL, source: AnyField, target: AnyField) -> SQL:
    """`value`, which travels as `source`, as `target` keeps it."""
    pair = classify_field(source), classify_field(target)
    template = _CONVERT.get(pair)
    if template is not None:
        made = SQL(template, value)
        return SQL("({})", made) if template.startswith("CASE") else made
    if pair[0] == pair[1]:
        return value
    raise FieldError(f"{pair[0]} cannot be converted to {pair[1]} on postgres")
