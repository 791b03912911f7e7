"""Constraints of an annotation as the limits of a type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from treefold_contract import ListType, Scalar, TypeNode
from treefold_http._description.constraint_keywords import ENCODED, collect_keywords

_KEYWORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
    "multipleOf": "step",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
}
_NUMBERS = ("int", "float")
_FORMATS = {"date-time": "datetime", "uri": "url", "idn-email": "email"}


def apply_markers(node: TypeNode, markers: Iterable[Any]) -> TypeNode:
    """Return a type with the limits that the metadata of an annotation says."""
    match node:
        case Scalar():
            return _limit_scalar(node, markers)
        case ListType():
            said = collect_keywords(markers, "array")
            return replace(
                node,
                min_items=said.get("minItems", node.min_items),
                max_items=said.get("maxItems", node.max_items),
            )
        case _:
            return node


def _limit_scalar(node: Scalar, markers: Iterable[Any]) -> Scalar:
    kind = ENCODED if node.kind == "bytes" else "string"
    said = collect_keywords(markers, kind)
    text_only = ("minLength", "maxLength", "pattern")
    found = {
        attribute: said[keyword]
        for keyword, attribute in _KEYWORDS.items()
        if keyword in said and (keyword in text_only) is (node.kind not in _NUMBERS)
    }
    limits = node.limits if not found else replace(node.limits, **found)
    given: str = said.get("format", "") if node.kind == "str" and not node.format else ""
    return replace(node, limits=limits, format=_FORMATS.get(given, given) or node.format)
