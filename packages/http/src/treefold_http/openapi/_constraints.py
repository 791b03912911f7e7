"""Convert constraints and descriptions of an annotation into schema keywords.

Metadata is read by attribute, never by class: annotated-types, pydantic, msgspec and `Doc` use the
same attribute names, and none of them needs to be installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from treefold_http._json.json import dumps, loads
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import add_keywords

_NUMBERS = (
    ("gt", "exclusiveMinimum"),
    ("ge", "minimum"),
    ("lt", "exclusiveMaximum"),
    ("le", "maximum"),
    ("multiple_of", "multipleOf"),
)
_LENGTHS: Mapping[str, tuple[str, str]] = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}

_ENCODED = "base64"


def apply_constraints(schema: JSONObject, markers: Iterable[Any]) -> JSONObject:
    """Return a schema with the constraints and descriptions from the metadata of an annotation.

    Args:
        schema: the schema of the type without its metadata; a reference is kept.
        markers: the metadata; objects of an unknown kind are ignored.
    """
    said: JSONObject = {}
    kind = _ENCODED if "contentEncoding" in schema else schema.get("type")
    for marker in markers:
        _collect_marker_keywords(marker, kind, said)
    return add_keywords(schema, said)


def _collect_marker_keywords(marker: Any, kind: Any, keywords: JSONObject) -> None:
    if isinstance(marker, (type, str)):
        return
    for inner in cast("list[Any]", getattr(marker, "metadata", None) or ()):
        _collect_marker_keywords(inner, kind, keywords)
    for name, keyword in _NUMBERS:
        value = to_json_value(getattr(marker, name, None))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            keywords[keyword] = value
    _collect_length_keywords(marker, kind, keywords)
    pattern = getattr(marker, "pattern", None)
    # a compiled expression, which has its text in the attribute of the same name
    pattern = getattr(pattern, "pattern", pattern)
    for keyword, text in (("pattern", pattern), ("format", getattr(marker, "format", None))):
        if isinstance(text, str):
            keywords[keyword] = text
    _collect_description_keywords(marker, keywords)


def _collect_length_keywords(marker: Any, kind: Any, keywords: JSONObject) -> None:
    if kind == _ENCODED:  # the limits count bytes, the schema would count characters
        return
    least, most = _LENGTHS.get(kind, ("minLength", "maxLength"))
    for name, keyword in (("min_length", least), ("max_length", most)):
        value = getattr(marker, name, None)
        if type(value) is int:
            keywords[keyword] = value


def _collect_description_keywords(marker: Any, keywords: JSONObject) -> None:
    for name in ("title", "description"):
        text = getattr(marker, name, None)
        if isinstance(text, str):
            keywords[name] = text
    documentation = getattr(marker, "documentation", None)  # PEP 727, `Doc`
    if isinstance(documentation, str):
        keywords["description"] = documentation
    examples = getattr(marker, "examples", None)
    if isinstance(examples, list):
        keywords["examples"] = [to_json_value(example) for example in cast("list[Any]", examples)]
    if getattr(marker, "deprecated", None) is True:
        keywords["deprecated"] = True


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


def to_json_value(value: Any) -> Any:
    """Return the JSON form of a default or an example, or None if there is none."""
    try:
        return loads(dumps(value))
    except Exception:  # a default may be any object at all
        return None
