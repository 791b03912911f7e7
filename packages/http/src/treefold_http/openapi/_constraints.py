"""Convert constraints and descriptions of an annotation into schema keywords.

Metadata is read by attribute, never by class: annotated-types, pydantic, msgspec and `Doc` use the
same attribute names, and none of them needs to be installed.
"""

from __future__ import annotations

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
    if isinstance(pattern, str):
        keywords["pattern"] = pattern
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
    """Return a schema with a default, unless that has no JSON form or is of another type."""
    value = to_json_value(default)
    kinds = _FORMS.get(schema.get("type", ""))
    # the exact type: True is no integer in JSON
    if (value is None and default is not None) or (kinds and type(value) not in kinds):
        return schema
    return add_keywords(schema, {"default": value})


def to_json_value(value: Any) -> Any:
    """Return the JSON form of a default or an example, or None if there is none."""
    try:
        return loads(dumps(value))
    except Exception:  # a default may be any object at all
        return None
