"""The definitions in a schema that pydantic or msgspec made, and the classes that they describe.

Both name a definition by its class, and by its module too where two classes share a name.
"""

from __future__ import annotations

import enum
import importlib
import re
from functools import cache
from typing import Any, TypeAlias, cast

from treefold_http._json.pydantic_json import to_base64
from treefold_http._types import tree
from treefold_http._types.read import build_type_name
from treefold_http._types.scalars import DECIMAL
from treefold_http._wire.aliases import JSONObject

RouteDescription: TypeAlias = tree.Record | tree.Choice

_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")


def collect_classes_by_name(node: tree.TypeNode) -> dict[str, RouteDescription]:
    """Return the records and enums in a type by the names that their definitions may have."""
    found: dict[str, RouteDescription] = {}
    for each, _ in tree.walk_types(node):
        if isinstance(each, tree.Record) or (isinstance(each, tree.Choice) and each.kind):
            kind: Any = each.kind
            module, path = str(kind.__module__), str(kind.__qualname__)
            bare = each.bare_annotation
            short = _normalize_name(str(getattr(bare, "__name__", build_type_name(bare))))
            found.setdefault(short, each)
            # with `__` pydantic writes the long form, with dots msgspec
            found.setdefault(_normalize_name(f"{module}.{path}").replace(".", "__"), each)
            found.setdefault(_normalize_name(f"{module}.{path}"), each)
    return found


def is_enum_without_pydantic_hooks(kind: Any) -> bool:
    """Return True for an enum whose schema is that of its values."""
    return issubclass(kind, enum.Enum) and not any(hasattr(kind, hook) for hook in _HOOKS)


@cache
def make_schema_generator_class() -> Any:
    """Return pydantic's generator of schemas, with bytes and decimals as the framework has them."""
    base: Any = importlib.import_module("pydantic.json_schema").GenerateJsonSchema

    class Generator(base):
        def bytes_schema(self, schema: Any) -> JSONObject:
            config: Any = getattr(getattr(self, "_config", None), "config_dict", None) or {}
            if "ser_json_bytes" in config or "val_json_bytes" in config:
                parent: Any = super()
                return parent.bytes_schema(schema)
            return {"type": "string", "contentEncoding": "base64"}

        def decimal_schema(self, schema: Any) -> JSONObject:
            parent: Any = super()
            made: JSONObject = parent.decimal_schema(schema)
            # not all releases of pydantic have a pattern, and a text without one may be empty
            if not schema.get("allow_inf_nan"):
                for option in made.get("anyOf", [made]):
                    if option.get("type") == "string":
                        option.setdefault("pattern", DECIMAL["pattern"])
            return made

        def encode_default(self, dft: Any) -> Any:
            parent: Any = super()
            return to_base64(dft) if isinstance(dft, bytes) else parent.encode_default(dft)

    return Generator


def add_decimal_patterns(schema: Any) -> None:
    """Add the pattern of decimals to the texts in a schema of msgspec, which has none."""
    if isinstance(schema, list):
        for part in cast("list[Any]", schema):
            add_decimal_patterns(part)
    elif isinstance(schema, dict):
        table = cast("JSONObject", schema)
        if table.get("type") == "string" and table.get("format") == "decimal":
            table.setdefault("pattern", DECIMAL["pattern"])
        for part in table.values():
            add_decimal_patterns(part)


def _normalize_name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9.\-_]", "_", name)
