"""Schemas of literal values and enums, such that generators of clients can make a type of them.

    values                     schema
    "a"                        {"const": "a"}
    "a", "b"                   {"type": "string", "enum": ["a", "b"]}
    1, "b", "c", None          {"anyOf": [{"const": 1}, {"type": "string", "enum": ["b", "c"]},
                                          {"type": "null"}]}
    0.5, True                  {"anyOf": [{"const": 0.5}, {"const": true}]}
    "a b", "a-b"               ... and "x-enum-varnames": ["a_b", "a_b_2"]

Generators refuse an enum of several types, and make one name of values that differ in signs or
case only; `x-enum-varnames` is their common extension for names of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from treefold_http._description.names import TakenNames, choose_free_name, fold_name, to_identifier
from treefold_http.openapi._components import Schema

_ENUM_TYPES = {str: "string", int: "integer"}


def build_literal_schema(values: Sequence[Any], names: Sequence[str] = ()) -> Schema:
    """Return the schema of some values in their JSON form.

    Args:
        values: the values, all different.
        names: the names of the members of an enum; empty for values without names.
    """
    # the exact types: True is an int by `isinstance` and no integer in JSON
    types: list[type[Any]] = [value.__class__ for value in values]
    by_type: dict[type[Any], list[int]] = {}
    for index, kind in enumerate(types):
        by_type.setdefault(kind, []).append(index)
    options: list[Schema] = []
    for kind, places in by_type.items():
        found = [values[place] for place in places]
        if len(found) == 2 and kind is bool:
            options.append({"type": "boolean"})
        elif len(found) == 1 or kind not in _ENUM_TYPES:
            options += [{"type": "null"} if value is None else {"const": value} for value in found]
        else:
            named = [names[place] for place in places] if names else []
            options.append(
                {"type": _ENUM_TYPES[kind], "enum": found, **_choose_names(found, named)}
            )
    return options[0] if len(options) == 1 else {"anyOf": options}


def split_mixed_enum(schema: Schema) -> Schema:
    """Return a schema that a package made with an enum that generators of clients can read."""
    values: Any = schema.get("enum")
    if not isinstance(values, list) or not values:
        return schema
    made = build_literal_schema(cast("list[Any]", values))
    if not made.keys() & {"anyOf", "x-enum-varnames"}:
        return schema
    return {k: v for k, v in schema.items() if k not in ("enum", "type")} | made


def _choose_names(values: Sequence[Any], names: Sequence[str]) -> Schema:
    """The names of texts that differ in case and signs only, else nothing."""
    if _count_distinct(values) == len(values):
        return {}
    taken = TakenNames()
    chosen: list[str] = []
    for name in names or values:
        plain = to_identifier(str(name))
        chosen.append(choose_free_name(plain, taken, plain))
        taken.add(chosen[-1])
    return {"x-enum-varnames": chosen}


def _count_distinct(values: Sequence[Any]) -> int:
    return len({fold_name(value) if isinstance(value, str) else value for value in values})
