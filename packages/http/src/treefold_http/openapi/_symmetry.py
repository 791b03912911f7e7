"""Detect models with one schema for input and output, so that it is made only once.

Schemas take most of the time in a document of pydantic models; for a plain model, half of it is
saved. A model with any setting that is not known to be harmless is described twice.
"""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from treefold_http._types import tree

_LEAVES = frozenset(
    {
        *(bool, float, int, str, type(None), uuid.UUID),
        *(datetime.date, datetime.datetime, datetime.time),
    }
)
_SETTINGS = frozenset({"extra", "from_attributes", "frozen", "populate_by_name", "strict", "title"})
_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "model_json_schema")
_MARKERS = ("annotated_types", "pydantic._internal._fields")


def has_same_input_output_schema(node: tree.TypeNode) -> bool:
    """Return True if the input and output schemas of a type are known to be identical."""
    if isinstance(node, tree.Record) and node.family == "struct":
        return True
    return all(_adds_no_schema_difference(each) for each, _ in tree.walk_types(node))


def _adds_no_schema_difference(node: tree.TypeNode) -> bool:
    if not all(type(marker).__module__ in _MARKERS for marker in node.markers):
        return False
    match node:
        case tree.Scalar():
            return node.kind in _LEAVES
        case tree.ListType():
            return node.kind in (list, set, tuple)
        case tree.Table():
            return node.kind is dict
        case tree.Record(family="model"):
            return _has_same_model_schemas(node.kind)
        case _:
            return isinstance(node, (tree.AnyType, tree.Choice, tree.TupleType, tree.UnionType))


def _has_same_model_schemas(model: Any) -> bool:
    rules = model.__pydantic_decorators__
    if rules.field_serializers or rules.model_serializers or rules.computed_fields:
        return False
    base = next((c for c in model.__mro__ if c.__module__ == "pydantic.main"), None)
    if base is None or not _SETTINGS.issuperset(model.model_config):
        return False
    if any(_unwrap_method(model, hook) is not _unwrap_method(base, hook) for hook in _HOOKS):
        return False
    return not any(map(_has_alias_or_exclusion, model.model_fields.values()))


def _unwrap_method(model: Any, name: str) -> Any:
    return getattr(getattr(model, name), "__func__", None)


def _has_alias_or_exclusion(field: Any) -> bool:
    names = (field.alias, field.validation_alias, field.serialization_alias, field.exclude)
    return any(names) or callable(field.json_schema_extra)
