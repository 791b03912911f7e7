"""Values at JSON paths on SQLite, and tests of them.

A document is walked with `json_each`, one for each key, so that keys are bound and no path text is
ever made. The functions of `_sqlite/json.py` serve only where SQLite has none: documents inside
of documents, and equality of whole structures.

Example, `filter(data__size__gt=5)`: `build_json_path_condition` is called with the name `number:gt`
and the keys `("size",)`. `type` and `value` are columns of `json_each`, whose row is that of the
key:

    (SELECT CASE WHEN j0.type IN ('integer', 'real') THEN j0.value END
     FROM json_each(t0."data") AS j0 WHERE CAST(j0.key AS TEXT) = ?) > ?
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, LiteralString

from treefold_orm._dialects.dialect import OPERATORS, build_plain_comparison
from treefold_orm._dialects.sql import SQL, Encoder, join_sql, render_integer
from treefold_orm._fields.structured import dump_canonical_json

Path = tuple[str, ...]
Bind = Callable[[Any], SQL]
Text = Callable[[str, SQL, SQL], SQL]

_BIGGEST = 2**63 - 1
"""The largest integer of SQLite."""
_CONSTANT: dict[str, LiteralString] = {
    "null": "{} = 'null'",
    "true": "{} = 'true'",
    "false": "{} = 'false'",
    "missing": "{} IS NULL",
    "present": "{} IS NOT NULL",
}
# what `in` compares: numbers as they are, all else as text that tells the types apart
_COMPARABLE: LiteralString = (
    "CASE {} WHEN 'integer' THEN {} WHEN 'real' THEN {} WHEN 'text' THEN '\"' || {} WHEN 'array' "
    "THEN treefold_json_plain({}) WHEN 'object' THEN treefold_json_plain({}) ELSE {} END"
)
# 0 is the type, 1 the value, 2 the right side
_KEYS: dict[str, LiteralString] = {
    "has_key": "EXISTS (SELECT 1 FROM json_each({1}) AS e WHERE e.key = {2})",
    "has_any_keys": "EXISTS (SELECT 1 FROM json_each({1}) AS e WHERE e.key IN (SELECT value FROM "
    "json_each({2})))",
    "has_keys": "NOT EXISTS (SELECT 1 FROM json_each({2}) AS e WHERE e.value NOT IN (SELECT key "
    "FROM json_each({1})))",
}


def select_json_test_encoder(test: str) -> Encoder | None:
    """The encoder from the value of a test to a parameter."""
    kind, _, op = test.partition(":")
    if kind == "number":
        return _encode_bounds if op == "range" else _encode_number
    if kind in {"text", "item", "has_key"}:
        return None
    return dump_canonical_json


def build_path_value(document: SQL, keys: Path, bind: Bind) -> SQL:
    """The value at a path as JSON text, exactly as it was written."""
    return SQL("treefold_json_at({}, {})", document, bind(json.dumps(keys)))


_ORDER: dict[str, LiteralString] = {
    "type": "CASE {0} WHEN 'text' THEN 1 WHEN 'integer' THEN 2 WHEN 'real' THEN 2 WHEN 'false' "
    "THEN 3 WHEN 'true' THEN 4 WHEN 'array' THEN 5 WHEN 'object' THEN 6 END",
    "number": "CASE WHEN {0} IN ('integer', 'real') THEN {1} END",
    "text": "CASE WHEN {0} = 'text' THEN {1} END",
}


def build_path_order_value(kind: str, document: SQL, keys: Path, bind: Bind) -> SQL:
    """What the value at a path is ordered by: its type, its number or its text."""
    return _build_path_select(
        document, keys, bind, lambda type_, value: SQL(_ORDER[kind], type_, value)
    )


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

    def select_at_path(build_value: Callable[[SQL, SQL], SQL]) -> SQL:
        return _build_path_select(document, keys, bind, build_value)

    if kind in _CONSTANT:
        return SQL(_CONSTANT[kind], select_at_path(lambda type_, _: type_))
    if kind in {"contains", "contained_by"}:
        called: LiteralString = (
            "treefold_json_contains(treefold_json_at({}, {}), {})"
            if kind == "contains"
            else "treefold_json_contains({2}, treefold_json_at({0}, {1}))"
        )
        return SQL(called, document, bind(json.dumps(keys)), right[0])
    if kind in _KEYS:
        wanted: LiteralString = "CASE WHEN {0} = 'object' THEN " + _KEYS[kind] + " ELSE 0 END"
        return select_at_path(lambda type_, value: SQL(wanted, type_, value, right[0]))
    if kind == "item":
        build = build_text_lookup
        return select_at_path(lambda t, value: _build_contains_text_test(t, value, right[0], build))
    if kind == "same":
        return SQL(
            "{} = treefold_json_plain({})",
            select_at_path(
                lambda type_, value: SQL(
                    "CASE WHEN {} IN ('object', 'array') THEN treefold_json_plain({}) END",
                    type_,
                    value,
                )
            ),
            right[0],
        )
    if kind == "in":
        return SQL(
            "{} IN (SELECT {} FROM json_each({}) AS i)",
            select_at_path(_build_comparable_value),
            _build_comparable_value(SQL("i.type"), SQL("i.value")),
            right[0],
        )
    types: LiteralString = "'text'" if kind == "text" else "'integer', 'real'"
    template: LiteralString = "CASE WHEN {} IN (" + types + ") THEN {} END"
    left = select_at_path(lambda type_, value: SQL(template, type_, value))
    if op == "range":
        return SQL("{} BETWEEN {} AND {}", left, *right)
    if op in OPERATORS:
        return build_plain_comparison(op, left, right[0])
    return build_text_lookup(op, left, right[0])


def _build_path_select(
    document: SQL, keys: Path, bind: Bind, build_value: Callable[[SQL, SQL], SQL]
) -> SQL:
    if not keys:
        return build_value(SQL("json_type({})", document), SQL("json_extract({}, '$')", document))
    sources: list[SQL] = []
    tests: list[SQL] = []
    inner = document
    for depth, key in enumerate(keys):
        name = SQL("j{}", render_integer(depth))
        sources.append(SQL("json_each({}) AS {}", inner, name))
        # places in a list are integers: as text, "0" finds one and "00" is no other spelling of it
        tests.append(SQL("CAST({}.key AS TEXT) = {}", name, bind(key)))
        # json_each() of a text that is no JSON is an error, and what is no container has no keys
        inner = SQL(
            "CASE WHEN {}.type IN ('object', 'array') THEN {}.value ELSE '{{}}' END", name, name
        )
    last = SQL("j{}", render_integer(len(keys) - 1))
    picked = build_value(SQL("{}.type", last), SQL("{}.value", last))
    return SQL(
        "(SELECT {} FROM {} WHERE {})", picked, join_sql(", ", sources), join_sql(" AND ", tests)
    )


def _build_comparable_value(type_: SQL, value: SQL) -> SQL:
    return SQL(_COMPARABLE, type_, value, value, value, value, value, type_)


def _build_contains_text_test(type_: SQL, value: SQL, right: SQL, build_text_lookup: Text) -> SQL:
    return SQL(
        "CASE {} WHEN 'text' THEN {} WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each({}) AS e "
        "WHERE e.type = 'text' AND e.value = {}) ELSE 0 END",
        type_,
        build_text_lookup("contains", value, right),
        value,
        right,
    )


def _encode_number(value: float) -> float:
    # a whole number that SQLite does not keep whole is kept by it as the nearest float
    return float(value) if abs(value) > _BIGGEST and isinstance(value, int) else value


def _encode_bounds(pair: list[Any]) -> list[Any]:
    return [_encode_number(bound) for bound in pair]
