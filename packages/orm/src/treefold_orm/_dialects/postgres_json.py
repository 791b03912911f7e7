"""Values at JSON paths on PostgreSQL, and tests of them."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from typing import Any, LiteralString

from treefold_orm._dialects.dialect import OPERATORS, build_plain_comparison
from treefold_orm._dialects.sql import SQL, Encoder
from treefold_orm._fields.structured import dump_canonical_json

Path = tuple[str, ...]
Bind = Callable[[Any], SQL]
Text = Callable[[str, SQL, SQL], SQL]

_CONSTANT: dict[str, LiteralString] = {
    "null": "{} = 'null'::jsonb",
    "true": "{} = 'true'::jsonb",
    "false": "{} = 'false'::jsonb",
    "missing": "{} IS NULL",
    "present": "{} IS NOT NULL",
}
_WHOLE: dict[str, LiteralString] = {
    "same": "{} = ({})::jsonb",
    "contains": "{} @> ({})::jsonb",
    "contained_by": "{} <@ ({})::jsonb",
    "in": "{} = ANY(({})::jsonb[])",
}
_KEYS: dict[str, LiteralString] = {
    # `?` alone is true of a list that holds the text as well, and of the text itself
    "has_key": "(SELECT jsonb_typeof(j) = 'object' AND j ? ({1})::text FROM (SELECT {0} AS j) AS "
    "s)",
    "has_keys": "(SELECT jsonb_typeof(j) = 'object' AND j ?& ({1})::text[] FROM (SELECT {0} AS j) "
    "AS s)",
    "has_any_keys": "(SELECT jsonb_typeof(j) = 'object' AND j ?| ({1})::text[] FROM (SELECT {0} AS "
    "j) AS s)",
}
# `#>` takes these for places in a list, counted from the end or written in other ways
_ODD_PLACE = re.compile(r"[ \t\n\v\f\r]*(?:[+-][0-9]+|0[0-9]+)|[ \t\n\v\f\r]+[0-9]+", re.ASCII)


def select_json_test_encoder(test: str) -> Encoder | None:
    """The encoder from the value of a test to a parameter."""
    kind, _, op = test.partition(":")
    if kind == "number":
        return _encode_bounds if op == "range" else _encode_number
    if kind == "in":
        return lambda items: [dump_canonical_json(item) for item in items]
    return dump_canonical_json if kind in _WHOLE else None


def build_path_value(document: SQL, keys: Path, bind: Bind) -> SQL:
    """The value at a path: keys of objects, and places in lists counted from 0."""
    run: list[str] = []
    for key in keys:
        if _ODD_PLACE.fullmatch(key) is None:
            run.append(key)
            continue
        document = SQL("({} -> ({})::text)", _extract_subdocument(document, run, bind), bind(key))
        run = []
    return _extract_subdocument(document, run, bind)


def _extract_subdocument(document: SQL, keys: list[str], bind: Bind) -> SQL:
    return SQL("({} #> {}::text[])", document, bind(list(keys))) if keys else document


_ORDER: dict[str, LiteralString] = {
    "type": "CASE jsonb_typeof({0}) WHEN 'string' THEN 1 WHEN 'number' THEN 2 WHEN 'boolean' THEN "
    "CASE WHEN {0} = 'true'::jsonb THEN 4 ELSE 3 END WHEN 'array' THEN 5 WHEN 'object' THEN 6 END",
    "number": "CASE jsonb_typeof({0}) WHEN 'number' THEN ({0} #>> '{{}}')::numeric END",
    "text": "CASE jsonb_typeof({0}) WHEN 'string' THEN {0} #>> '{{}}' END COLLATE \"C\"",
}
"""The value is written again and again, for the order of groups may not look at it in a query."""


def build_path_order_value(kind: str, document: SQL, keys: Path, bind: Bind) -> SQL:
    """What the value at a path is ordered by: its type, its number or its text, by code point."""
    return SQL(_ORDER[kind], build_path_value(document, keys, bind))


def build_json_path_condition(
    test_name: str,
    document: SQL,
    keys: Path,
    *,
    bind: Bind,
    right: list[SQL],
    build_text_lookup: Text,
) -> SQL:
    """A test of the value at a path; `build_text_lookup` writes text lookups."""
    kind, _, op = test_name.partition(":")
    value = build_path_value(document, keys, bind)
    if kind in _CONSTANT:
        return SQL(_CONSTANT[kind], value)
    if kind in _WHOLE:
        return SQL(_WHOLE[kind], value, right[0])
    if kind in _KEYS:
        return SQL(_KEYS[kind], value, right[0])
    if kind == "item":
        return SQL(
            "(SELECT CASE jsonb_typeof(j) WHEN 'string' THEN {} ELSE j @> to_jsonb(({})::text) "
            "END FROM (SELECT {} AS j) AS s)",
            build_text_lookup("contains", SQL("(j #>> '{}')"), right[0]),
            right[0],
            value,
        )
    # the CASE keeps casts away from values of other types
    picked: LiteralString = (
        "(SELECT CASE jsonb_typeof(j) WHEN 'number' THEN (j #>> '{{}}')::numeric END FROM (SELECT "
        "{} AS j) AS s)"
        if kind == "number"
        else "(SELECT CASE jsonb_typeof(j) WHEN 'string' THEN j #>> '{{}}' END FROM (SELECT {} AS "
        "j) AS s)"
    )
    left = SQL(picked, value)
    carrier: LiteralString = "({})::numeric" if kind == "number" else "({})::text"
    given = [SQL(carrier, mark) for mark in right]
    if kind == "text" and (op == "range" or (op in OPERATORS and op != "exact")):
        left = SQL('({} COLLATE "C")', left)  # by code point, as SQLite does
    if op == "range":
        return SQL("{} BETWEEN {} AND {}", left, *given)
    if op in OPERATORS:
        return build_plain_comparison(op, left, given[0])
    return build_text_lookup(op, left, given[0])


def _encode_number(value: float) -> decimal.Decimal:
    # by its shortest text: JSON has 0.1 as it was written, not 0.1000000000000000055
    return decimal.Decimal(repr(value))


def _encode_bounds(pair: list[Any]) -> list[Any]:
    return [_encode_number(bound) for bound in pair]
