"""JSON of pydantic types, by alias and with bytes as base64, in both directions.

pydantic reads and writes bytes as UTF-8 text unless a model is configured otherwise, so that other
bytes could not be sent at all. The core schema of a type with bytes is copied with base64 in
their place; a model with `ser_json_bytes` or `val_json_bytes` keeps its own form. Floats of a
request are finite, because no response could carry another one. pydantic is never imported here:
an application with such a type has imported it.
"""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from treefold_http._wire.aliases import AnyCallable, JSONObject

Dump: TypeAlias = Callable[[Any], Any]

# their values are no schemas: the default `{"type": "bytes"}` of a field only looks like one
_NO_SCHEMAS = frozenset(
    {"metadata", "default", "cls", "config", "ref", "type", "function", "serialization"}
)
_NAMED = ("fields", "choices")
"""Keys of tables whose keys are names of the author."""
_OPAQUE = ("function-before", "function-wrap", "function-plain")
"""Validators that may read the text themselves."""
_OWN_FORMS = ("ser_json_bytes", "val_json_bytes")
_STANDARD = str.maketrans("-_", "+/")


def from_base64(text: str) -> bytes:
    """Decode base64 of either alphabet, with or without padding.

    Raises:
        ValueError: for another text.
    """
    plain = text.rstrip("=").translate(_STANDARD)
    try:
        # without `validate` Python skips characters that are not in the alphabet
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("should be base64") from None


def to_base64(data: bytes) -> str:
    """Encode bytes as base64 with padding."""
    return base64.b64encode(data).decode("ascii")


class JsonForm(NamedTuple):
    """Functions of an annotation.

    Attributes:
        validate_json: takes the bytes of a body.
        validate_python: takes a value.
        dump_python: takes a value; returns its JSON form with the option `mode="json"`.
    """

    validate_json: AnyCallable
    validate_python: AnyCallable
    dump_python: AnyCallable


def build_base64_json_functions(adapter: Any, *, refuse_infinite: bool = False) -> JsonForm:
    """Return the functions of a `TypeAdapter`, with bytes as base64.

    Args:
        adapter: the adapter.
        refuse_infinite: refuse NaN and Infinity for a float, as numbers and as strings; a model
            whose settings write them as strings keeps its own rule.
    """
    schema = _transform_schema(adapter.core_schema, _replace_bytes_schema)
    if refuse_infinite:
        schema = _transform_schema(schema, _forbid_infinite_floats)
    if schema is adapter.core_schema:
        return JsonForm(adapter.validate_json, adapter.validate_python, adapter.dump_python)
    core = importlib.import_module("pydantic_core")
    validator = _build_from_schema(core.SchemaValidator, schema)
    serializer = _build_from_schema(core.SchemaSerializer, schema)
    return JsonForm(validator.validate_json, validator.validate_python, serializer.to_python)


def build_pydantic_dump_functions(kind: Any) -> tuple[Dump, Dump] | None:
    """Return the functions from an instance to plain data and to JSON text.

    None for a class that is not one of pydantic.
    """
    if not hasattr(kind, "__pydantic_serializer__"):
        return None
    schema = copy_schema_with_base64(kind.__pydantic_core_schema__)
    if schema is None and hasattr(kind, "model_dump"):
        return (
            lambda value: value.model_dump(mode="json", by_alias=True),
            lambda value: value.model_dump_json(by_alias=True),
        )
    serializer = kind.__pydantic_serializer__
    if schema is not None:
        core = importlib.import_module("pydantic_core")
        serializer = _build_from_schema(core.SchemaSerializer, schema)
    return (
        lambda value: serializer.to_python(value, mode="json", by_alias=True),
        lambda value: serializer.to_json(value, by_alias=True).decode(),
    )


def copy_schema_with_base64(schema: Any) -> Any | None:
    """Return a copy of a core schema whose bytes are base64 in JSON; None if it has none."""
    changed = _transform_schema(schema, _replace_bytes_schema)
    return None if changed is schema else changed


_Change: TypeAlias = Callable[[JSONObject], Any]
"""Returns the replacement of a schema, itself to keep it whole, or None to look inside."""


def _transform_schema(value: Any, change: _Change) -> Any:
    """Return a value with its schemas changed; the same object if there is nothing to change."""
    if isinstance(value, (list, tuple)):
        items: Any = cast("list[Any]", value)
        copies = [_transform_schema(item, change) for item in items]
        return items if all(map(_is_same, copies, items)) else items.__class__(copies)
    if not isinstance(value, dict):
        return value
    schema = cast("JSONObject", value)
    if (changed := change(schema)) is not None:
        return changed
    copies = {key: _transform_schema_entry(key, part, change) for key, part in schema.items()}
    return schema if all(map(_is_same, copies.values(), schema.values())) else copies


def _transform_schema_entry(key: str, part: Any, change: _Change) -> Any:
    if key in _NAMED and isinstance(part, dict):
        named = cast("dict[Any, Any]", part)
        copies = {name: _transform_schema(each, change) for name, each in named.items()}
        return named if all(map(_is_same, copies.values(), named.values())) else copies
    return part if key in _NO_SCHEMAS else _transform_schema(part, change)


def _replace_bytes_schema(schema: JSONObject) -> Any:
    kind = schema.get("type")
    if kind == "bytes":
        return (
            schema if "serialization" in schema or "ref" in schema else _build_base64_schema(schema)
        )
    is_function = isinstance(kind, str) and kind.startswith("function-")
    if is_function and "serialization" in schema:  # such as `Base64Bytes`
        return schema
    config = schema.get("config")
    if isinstance(config, Mapping) and any(key in config for key in _OWN_FORMS):
        return schema
    if kind in _OPAQUE and schema.get("schema", {}).get("type") == "bytes":
        return schema
    return None


def _forbid_infinite_floats(schema: JSONObject) -> Any:
    if schema.get("type") == "float":
        return {**schema, "allow_inf_nan": False}
    config = schema.get("config")
    if isinstance(config, dict) and ("ser_json_inf_nan", "strings") in config.items():
        return schema
    return None


def _is_same(one: object, other: object) -> bool:
    return one is other


def _build_base64_schema(schema: JSONObject) -> JSONObject:
    return {
        "type": "json-or-python",
        "json_schema": {
            "type": "function-before",
            "function": {"type": "no-info", "function": _decode_base64_if_text},
            "schema": schema,
        },
        "python_schema": schema,
        "serialization": {
            "type": "function-plain",
            "function": to_base64,
            "when_used": "json",
            "return_schema": {"type": "str"},
        },
    }


def _decode_base64_if_text(value: Any) -> Any:
    return from_base64(value) if isinstance(value, str) else value


def _build_from_schema(core_class: Any, schema: Any) -> Any:
    try:  # otherwise nested models keep the functions that they were built with
        return core_class(schema, _use_prebuilt=False)
    except TypeError:  # an older pydantic, which always builds them
        return core_class(schema)
