"""Which changes of a field can lose values, and which ones the release before does not survive."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treefold_migrations._state.rendering import build_table_meta
from treefold_migrations._state.schema_state import AnyField, SchemaState
from treefold_orm import fields
from treefold_orm.schema import is_foreign_key

_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_KEPT: dict[str, frozenset[str]] = {
    # kinds to which a value of the first kind converts without loss, or with an error
    "smallint": _INTEGERS | {"decimal", "text", "float"},
    "integer": _INTEGERS | {"decimal", "text", "float"},
    "bigint": _INTEGERS | {"decimal", "text"},
    "boolean": _INTEGERS | {"text"},
    "decimal": frozenset({"text"}),
    "float": frozenset({"text"}),
    "date": frozenset({"datetime", "text"}),
    "datetime": frozenset({"text"}),
    "time": frozenset({"text"}),
    "uuid": frozenset({"text"}),
    "json": frozenset({"text"}),
    "duration": frozenset[str](),
}


def can_lose_values_silently(
    before: SchemaState, after: SchemaState, table: str, name: str
) -> bool:
    """True for a change of a field's type that can lose a part of its values without an error.

    A conversion that a value does not survive as an error (text that is too long) loses nothing.
    """
    old: AnyField = build_table_meta(before, table).fields[name]
    new: AnyField = build_table_meta(after, table).fields[name]
    first, second = old.internal, new.internal
    if first == second:
        return first == "decimal" and _count_decimal_places(new) < _count_decimal_places(old)
    return second not in _KEPT.get(first, frozenset())


def _count_decimal_places(field: Any) -> int:
    return int(getattr(field, "decimal_places", 0))


def is_stricter_field(old: AnyField, new: AnyField) -> bool:
    """True for a change that rows written by the release before may violate."""
    if (old.null and not new.null) or (new.unique and not old.unique):
        return True
    return _is_narrower_range(old, new)


def _is_narrower_range(old: AnyField, new: AnyField) -> bool:
    for kind, bounds in _BOUNDS.items():
        if isinstance(old, kind) and isinstance(new, kind):
            low, high = bounds(old)
            return bounds(new)[0] > low or bounds(new)[1] < high
    return type(old) is not type(new) and not (is_foreign_key(old) and is_foreign_key(new))


_BOUNDS: dict[type[Any], Callable[[Any], tuple[float, float]]] = {
    fields.TextField: lambda f: (0, math.inf if f.max_length is None else f.max_length),
    fields.IntegerField: lambda f: (f.low, f.high),
    fields.DecimalField: lambda f: (-f.decimal_places, f.max_digits - f.decimal_places),
}
