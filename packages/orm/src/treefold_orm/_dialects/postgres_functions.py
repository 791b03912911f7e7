"""Functions of the closed list in the words of PostgreSQL."""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._dialects.functions import (
    AGGREGATES as BOTH_AGGREGATES,
    MANY as BOTH_MANY,
    SHARED,
)
from treefold_orm._dialects.sql import SQL
from treefold_orm._fields.text_forms import TEXT_FORMS

MANY: dict[str, SQL] = {
    **BOTH_MANY,
    "concat": SQL("CONCAT({})"),
    "greatest": SQL("GREATEST({})"),
    "key_text": SQL("(ROW({})::text)"),
    "json_object": SQL("JSONB_BUILD_OBJECT({})"),
    "least": SQL("LEAST({})"),
}
_TYPES: dict[str, LiteralString] = {
    "integer": "bigint",
    "float": "double precision",
    "decimal": "numeric",
    "boolean": "boolean",
    "date": "date",
    "time": "time",
    "datetime": "timestamptz",
    "uuid": "uuid",
}


_RANGE_KINDS: tuple[LiteralString, ...] = ("int8range", "numrange", "daterange", "tstzrange")
_RANGE_BOUNDS: tuple[LiteralString, ...] = ("[)", "[]", "()", "(]")
_RANGES: dict[str, SQL] = {
    kind + bounds: SQL(kind + "({}, {}, '" + bounds + "')")
    for kind in _RANGE_KINDS
    for bounds in _RANGE_BOUNDS
}


def _build_cast_from_text(kind: str) -> SQL:
    # text in another form becomes one that the server's own cast refuses
    form = TEXT_FORMS[kind].replace("{", "{{").replace("}", "}}")
    guarded = "REGEXP_REPLACE({0}, '^(?!" + form + "$)', 'no ', 'i')"
    return SQL("CAST(" + guarded + " AS " + _TYPES[kind] + ")")


AGGREGATES: dict[str, SQL] = {
    **BOTH_AGGREGATES,
    "bool_and": SQL("BOOL_AND({})"),
    "bool_or": SQL("BOOL_OR({})"),
    "stddev_pop": SQL("STDDEV_POP({})"),
    "stddev_samp": SQL("STDDEV_SAMP({})"),
    "var_pop": SQL("VAR_POP({})"),
    "var_samp": SQL("VAR_SAMP({})"),
}
COLLECT: dict[str, SQL] = {
    "array_agg": SQL("ARRAY_AGG({}{})"),
    "string_agg": SQL("STRING_AGG({}, {}{})"),
}
FUNCTIONS: dict[str, SQL] = {
    **SHARED,
    # text
    # numbers travel as bigint, and the server has no left(text, bigint)
    "left": SQL("LEFT({}, ({})::integer)"),
    "lower": SQL("LOWER({})"),
    "lpad": SQL("LPAD({0}, ({1})::integer, {2})"),
    "md5": SQL("MD5({})"),
    "position": SQL("STRPOS({}, {})"),
    "repeat": SQL("REPEAT({}, ({})::integer)"),
    "reverse": SQL("REVERSE({})"),
    "right": SQL("RIGHT({}, ({})::integer)"),
    "rpad": SQL("RPAD({0}, ({1})::integer, {2})"),
    "sha256": SQL("ENCODE(SHA256(CONVERT_TO({}, 'UTF8')), 'hex')"),
    "substr": SQL("SUBSTR({}, ({})::integer, ({})::integer)"),
    "substr_any": SQL("SUBSTR({}, ({})::integer, ({})::integer)"),
    "substr_rest": SQL("SUBSTR({}, ({})::integer)"),
    "substr_rest_any": SQL("SUBSTR({}, ({})::integer)"),
    "upper": SQL("UPPER({})"),
    # numbers
    # the smallest integer has no positive one of 32 bits
    "abs_integer": SQL("ABS(({})::bigint)"),
    "ceil_decimal": SQL("CEIL({0})"),
    "ceil_float": SQL("CEIL({})"),
    "clock_in_zone": SQL("({} AT TIME ZONE ({})::text) AT TIME ZONE 'UTC'"),
    "exp": SQL("EXP({})"),
    "floor_decimal": SQL("FLOOR({0})"),
    "floor_float": SQL("FLOOR({})"),
    "ln": SQL("LN({})"),
    # a logarithm has as many places as its arguments: 30 are enough for the nearest float
    "log": SQL("LOG(({})::text::numeric + ROUND(0, 30), ({})::text::numeric + ROUND(0, 30))"),
    # NOW() is the start of the transaction, which may be earlier than rows that it has read
    "now": SQL("STATEMENT_TIMESTAMP()"),
    "power": SQL("POWER({}, {})"),
    "random": SQL("RANDOM()"),
    "round_decimal": SQL("ROUND({0}, ({1})::integer)"),
    # the server rounds halves of a float to even; its shortest text is the decimal of the caller
    "round_float": SQL("ROUND(({})::text::numeric, ({})::integer)"),
    "round_integer": SQL("ROUND(({0})::numeric, ({1})::integer)"),
    "sqrt": SQL("SQRT({})"),
    # windows
    "lag": SQL("LAG({}, ({})::integer)"),
    "lag_default": SQL("LAG({}, ({})::integer, {})"),
    "lead": SQL("LEAD({}, ({})::integer)"),
    "lead_default": SQL("LEAD({}, ({})::integer, {})"),
    "nth_value": SQL("NTH_VALUE({}, ({})::integer)"),
    "ntile": SQL("NTILE(({})::integer)"),
    # JSON: the server writes each type itself
    **{
        f"json_of_{kind}": SQL("{0}")
        for kind in ("boolean", "decimal", "float", "integer", "json", "number", "text")
    },
    # casts
    # only 32-bit integers have a cast to boolean
    "boolean_of_integer": SQL("(({}) <> 0)"),
    "integer_of_boolean": SQL("({})::integer"),
    "text_of_boolean": SQL("({})::text"),
    # the form of a cast depends on the session: its DateStyle, and its time zone
    "text_of_date": SQL("TO_CHAR({}, 'YYYY-MM-DD')"),
    "text_of_datetime": SQL(
        "(TO_CHAR({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00')"
    ),
    "text_of_decimal": SQL("ROUND({}, ({})::integer)::text"),
    "text_of_float": SQL("({})::text"),
    "text_of_integer": SQL("({})::text"),
    "text_of_time": SQL("({})::text"),
    "text_of_uuid": SQL("({})::text"),
    **{f"{kind}_of_text": _build_cast_from_text(kind) for kind in _TYPES},
    **_RANGES,
}
