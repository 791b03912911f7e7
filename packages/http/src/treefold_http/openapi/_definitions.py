"""The definitions in a schema that pydantic or msgspec made, and the classes that they describe.

Both name a definition by its class, and by its module too where two classes share a name.
"""

from __future__ import annotations

import enum
import re
from typing import Any, TypeAlias

from treefold_http._types import tree
from treefold_http._types.read import name_of

Described: TypeAlias = tree.Record | tree.Choice

_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")


def classes_of(node: tree.TypeNode) -> dict[str, Described]:
    """Return the records and enums in a type by the names that their definitions may have."""
    found: dict[str, Described] = {}
    for each, _ in tree.walk(node):
        if isinstance(each, tree.Record) or (isinstance(each, tree.Choice) and each.kind):
            kind: Any = each.kind
            module, path = str(kind.__module__), str(kind.__qualname__)
            short = _normal(str(getattr(each.bare, "__name__", name_of(each.bare))))
            found.setdefault(short, each)
            found.setdefault(_normal(f"{module}.{path}").replace(".", "__"), each)
            found.setdefault(_normal(f"{module}.{path}"), each)
    return found


def is_plain_enum(kind: Any) -> bool:
    """Return True for an enum whose schema is that of its values."""
    return issubclass(kind, enum.Enum) and not any(hasattr(kind, hook) for hook in _HOOKS)


def _normal(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9.\-_]", "_", name)
