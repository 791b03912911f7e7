"""Schemas of types that belong to pydantic or msgspec, made by the package that reads them.

Neither is imported here: whoever has such a type has imported its package already.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

from treefold_http._json import msgspec

_TARGET = "#/$defs/{%s}"


def foreign_schema(
    annotation: Any, mode: Literal["input", "output"]
) -> tuple[dict[str, Any], Mapping[str, dict[str, Any]]] | None:
    """Give the schema of a type and the definitions that it refers to as `#/$defs/...`.

    Returns:
        None for a type that no package here can describe.
    """
    if hasattr(annotation, "model_json_schema"):
        return _of_pydantic(annotation.model_json_schema, annotation, mode)
    if hasattr(annotation, "__struct_fields__"):
        return _of_msgspec(annotation)
    pydantic = sys.modules.get("pydantic")
    if pydantic is None:
        return None
    try:
        return _of_pydantic(pydantic.TypeAdapter(annotation).json_schema, annotation, mode)
    except (pydantic.PydanticUserError, AttributeError):
        return None


def _of_pydantic(
    make: Any, annotation: Any, mode: str
) -> tuple[dict[str, Any], Mapping[str, dict[str, Any]]]:
    # Answers are dumped by `model_dump(mode="json")`, which takes aliases only where it is told to.
    config: Mapping[str, Any] = getattr(annotation, "model_config", None) or {}
    by_alias = mode == "input" or bool(config.get("serialize_by_alias", False))
    schema = make(
        mode="validation" if mode == "input" else "serialization",
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
