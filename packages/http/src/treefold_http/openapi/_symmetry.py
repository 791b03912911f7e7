"""Detect models with one schema for input and output, so that it is made only once.

Schemas take most of the time in a document of pydantic models; for a plain model, half of it is
saved. A model with any setting that is not known to be harmless is described twice.
"""

from __future__ import annotations

import datetime
import enum
import types
import typing
import uuid
from typing import Any, Literal, cast

_LEAVES = frozenset(
    {
        Any,
        bool,
        datetime.date,
        datetime.datetime,
        datetime.time,
        float,
        int,
        str,
        type(None),
        uuid.UUID,
    }
)
_CONTAINERS = frozenset({dict, list, set, tuple, types.UnionType, typing.Union})
_SETTINGS = frozenset({"extra", "from_attributes", "frozen", "populate_by_name", "strict", "title"})
_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "model_json_schema")


def is_symmetric(kind: Any) -> bool:
    """Return True if the input and output schemas of a type are known to be identical."""
    return hasattr(kind, "__struct_fields__") or _is_plain_type(kind, set())


def _is_plain_type(kind: Any, seen: set[Any]) -> bool:
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is Literal:
        return True
    if origin is not None:
        return origin in _CONTAINERS and all(_is_plain_type(each, seen) for each in arguments)
    if not isinstance(kind, type):
        return kind in (Any, Ellipsis)
    if kind in _LEAVES or issubclass(kind, enum.Enum):
        return True
    model = cast("Any", kind)
    return hasattr(model, "__pydantic_decorators__") and _is_plain_model(model, seen)


def _is_plain_model(model: Any, seen: set[Any]) -> bool:
    if model in seen:
        return True
    seen.add(model)
    rules = model.__pydantic_decorators__
    if rules.field_serializers or rules.model_serializers or rules.computed_fields:
        return False
    base = next((c for c in model.__mro__ if c.__module__ == "pydantic.main"), None)
    if base is None or not _SETTINGS.issuperset(model.model_config):
        return False
    if any(_function(model, hook) is not _function(base, hook) for hook in _HOOKS):
        return False
    return all(_is_plain_field(field, seen) for field in model.model_fields.values())


def _function(model: Any, name: str) -> Any:
    return getattr(getattr(model, name), "__func__", None)


def _is_plain_field(field: Any, seen: set[Any]) -> bool:
    renamed = (field.alias, field.validation_alias, field.serialization_alias, field.exclude)
    return (
        not any(renamed)
        and not callable(field.json_schema_extra)
        and all(_is_constraint(marker) for marker in field.metadata)
        and _is_plain_type(field.annotation, seen)
    )


def _is_constraint(marker: Any) -> bool:
    return type(marker).__module__ in ("annotated_types", "pydantic._internal._fields")
