"""Schemas of types that belong to pydantic or msgspec, made by the package that reads them.

Neither is imported here: an application with such a type has already imported its package.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from typing import Any, Literal

from treefold_http._constraints import family_of
from treefold_http._json import msgspec
from treefold_http._parameters import split

_TARGET = "#/$defs/{%s}"


def foreign_schema(
    annotation: Any, mode: Literal["input", "checked", "output"]
) -> tuple[dict[str, Any], Mapping[str, dict[str, Any]]] | None:
    """Return the schema of a type and its definitions, referenced as `#/$defs/...`.

    Returns:
        None for a type that neither package can describe.
    """
    if hasattr(annotation, "model_json_schema"):
        return _of_pydantic(annotation.model_json_schema, annotation, mode)
    if hasattr(typing.get_origin(annotation) or annotation, "__struct_fields__"):
        return _of_msgspec(annotation)
    pydantic = sys.modules.get("pydantic")
    if pydantic is None:
        return None
    try:
        return _of_pydantic(pydantic.TypeAdapter(annotation).json_schema, annotation, mode)
    except (pydantic.PydanticUserError, AttributeError):
        return None


def asks_pydantic(record: Any) -> bool:
    """Return True if a dataclass or TypedDict has settings that only pydantic evaluates.

    These are a configuration, a `Field(...)` as default or with a validation alias, and bytes,
    which pydantic reads from text.
    """
    members: Mapping[str, Any] = getattr(record, "__dataclass_fields__", {})
    return (
        hasattr(record, "__pydantic_config__")
        or any(family_of(member.default) for member in members.values())
        or any(map(_asks, typing.get_type_hints(record, include_extras=True).values()))
    )


def _asks(hint: Any) -> bool:
    renamed = any(getattr(marker, "validation_alias", None) for marker in split(hint)[1])
    return renamed or hint is bytes or any(map(_asks, typing.get_args(hint)))


def _of_pydantic(
    make: Any, annotation: Any, mode: str
) -> tuple[dict[str, Any], Mapping[str, dict[str, Any]]]:
    # Responses use `model_dump(mode="json")`, which needs the setting to serialize by alias.
    config: Mapping[str, Any] = getattr(annotation, "model_config", None) or {}
    by_alias = mode != "output" or bool(config.get("serialize_by_alias", False))
    schema = make(
        mode="serialization" if mode == "output" else "validation",
        by_alias=by_alias,
        ref_template=_TARGET % "model",
    )
    return schema, schema.pop("$defs", {})


def _of_msgspec(annotation: Any) -> tuple[dict[str, Any], Mapping[str, dict[str, Any]]] | None:
    if msgspec is None:
        return None
    (schema,), definitions = msgspec.json.schema_components(
        [annotation], ref_template=_TARGET % "name"
    )
    return schema, definitions
