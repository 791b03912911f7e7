"""Constraints, descriptions and defaults in schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from treefold_http._description.constraint_keywords import (
    ENCODED,
    collect_keywords,
    to_json_value,
)
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import add_keywords


def apply_constraints(schema: JSONObject, markers: Iterable[Any]) -> JSONObject:
    """Return a schema with the constraints and descriptions from the metadata of an annotation.

    Args:
        schema: the schema of the type without its metadata; a reference is kept.
        markers: the metadata; objects of an unknown kind are ignored.
    """
    kind = ENCODED if "contentEncoding" in schema else schema.get("type", "")
    return add_keywords(schema, collect_keywords(markers, kind))


_FORMS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def with_default(schema: JSONObject, default: Any) -> JSONObject:
    """Return a schema with a default, unless that has no JSON form, or one that does not fit."""
    value = to_json_value(default)
    kinds = _FORMS.get(schema.get("type", ""))
    # the exact type: True is no integer in JSON
    if (value is None and default is not None) or (kinds and type(value) not in kinds):
        return schema
    if lacks_offset(schema, value):
        return schema
    return add_keywords(schema, {"default": value})


_offset_at_end = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})$", re.IGNORECASE).search


def lacks_offset(schema: JSONObject, value: Any) -> bool:
    """Return True for a time without an offset, which the formats of JSON Schema require.

    The value of a naive `datetime` is read and written, but as a default it makes a document
    invalid.
    """
    if isinstance(value, list):
        items = schema.get("items")
        parts = cast("list[Any]", value)
        return isinstance(items, dict) and any(
            lacks_offset(cast("JSONObject", items), part) for part in parts
        )
    if not isinstance(value, str) or _offset_at_end(value):
        return False
    options: list[JSONObject] = [
        option for option in schema.get("anyOf", [schema]) if option.get("type") == "string"
    ]
    return bool(options) and all(option.get("format") in _TIMES for option in options)


_TIMES = ("date-time", "time")
