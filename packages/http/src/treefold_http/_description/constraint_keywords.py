"""Constraints and descriptions of an annotation, as keywords of JSON Schema.

Metadata is read by attribute, never by class: annotated-types, pydantic, msgspec and `Doc` use the
same attribute names, and none of them needs to be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from treefold_http._json.json import dumps, loads
from treefold_http._wire.aliases import JSONObject

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

ENCODED = "base64"
"""The kind of bytes in base64, whose lengths no keyword can say."""


def collect_keywords(markers: Iterable[Any], kind: str) -> JSONObject:
    """Return the keywords of the metadata of an annotation.

    Args:
        markers: the metadata; objects of an unknown kind are ignored.
        kind: the `type` of the schema, or `ENCODED`; empty if it has none.
    """
    keywords: JSONObject = {}
    for marker in markers:
        _collect_marker_keywords(marker, kind, keywords)
    return keywords


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
    if kind == ENCODED:  # the limits count bytes, the schema would count characters
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


def to_json_value(value: Any) -> Any:
    """Return the JSON form of a default or an example, or None if there is none."""
    try:
        return loads(dumps(value))
    except Exception:  # a default may be any object at all
        return None
