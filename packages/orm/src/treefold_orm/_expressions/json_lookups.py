"""Lookups into JSON documents: which test a value asks for.

A test is named by what it does with the value at the path ("number:gt", "has_keys"); the dialects
write it. Both databases tell types apart: 1 is not "1" and not true, and no comparison of a missing
or an unfit value is true. Nothing here builds SQL.

| Keyword | Value | Test |
|---|---|---|
| `payload__size` | `5` | `number:exact` |
| `payload__size__gt` | `5` | `number:gt` |
| `payload__size__in` | `[1, "a"]` | `in` |
| `payload__word__icontains` | `"x"` | `text:icontains` |
| `payload__words__contains` | `"x"` | `item` |
| `payload__part__contains` | `{"x": 1}` | `contains` |
| `payload__part` | `{"x": 1}` | `same` |
| `payload__part` | `True` | `true` |
| `payload__part` | `None` | `null` |
| `payload__part__isnull` | `True` | `missing` |
| `payload__has_keys` | `["x", "y"]` | `has_keys` |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.text import TextField

ORDERED = frozenset({"gt", "gte", "lt", "lte"})
TEXTUAL = frozenset(
    {"iexact", "icontains", "startswith", "istartswith", "endswith", "iendswith", "contains"}
)
KEYS = frozenset({"has_key", "has_keys", "has_any_keys"})
OPERATORS = ORDERED | TEXTUAL | KEYS | {"exact", "isnull", "in", "range", "contained_by"}
MAX_KEYS = 32  # SQLite joins at most 64 tables, one for each key

_TEXT: TextField[str] = TextField()


class Lookup(Protocol):
    """A resolved lookup, as far as a test of JSON needs it."""

    name: str
    op: str
    column: AnyField


def check_json_path_keys(model: str, name: str, keys: list[str]) -> None:
    """Raise `FieldError` for keys that no document can have, or too many of them."""
    if len(keys) > MAX_KEYS:
        raise FieldError(f"{model}: a JSON path in a lookup has at most {MAX_KEYS} keys")
    for key in keys:
        if "\0" in key or any("\ud800" <= sign <= "\udfff" for sign in key):
            raise FieldError(f"{model}: {name!r} names a key with NUL or half a character")


def prepare_json_test(lookup: Lookup, value: Any) -> tuple[str, Any]:
    """Return the test for a value and its parameter; `None` where it binds nothing."""
    return _PREPARE[lookup.op](lookup, value)


def classify_json_value(value: Any) -> str:
    """Name the JSON type of a Python value, for comparisons that must not mix types."""
    # before numbers: True is an int to Python, and 1 is not true in JSON
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "structure"


def _prepare_exact(lookup: Lookup, value: Any) -> tuple[str, Any]:
    lookup.column.coerce(value)
    kind = classify_json_value(value)
    # the shape of the query says these, so that no parameter is needed
    if kind in {"true", "false", "null"}:
        return kind, None
    return ("same" if kind == "structure" else f"{kind}:exact"), value


def _prepare_order_comparison(lookup: Lookup, value: Any) -> tuple[str, Any]:
    return f"{_require_comparable_kind(lookup, value)}:{lookup.op}", value


def _require_comparable_kind(lookup: Lookup, value: Any) -> str:
    kind = classify_json_value(value)
    if kind not in {"number", "text"}:
        raise FieldError(
            f"{lookup.name}__{lookup.op} compares JSON numbers or text, not {type(value).__name__}"
        )
    lookup.column.coerce(value)
    return kind


def _prepare_range(lookup: Lookup, value: Any) -> tuple[str, Any]:
    bounds = require_lookup_items(lookup, value)
    if len(bounds) != 2:
        raise FieldError(f"{lookup.name}__range takes two values")
    kind = _require_comparable_kind(lookup, bounds[0])
    if _require_comparable_kind(lookup, bounds[1]) != kind:
        raise FieldError(f"{lookup.name}__range takes two numbers or two texts")
    return f"{kind}:range", bounds


def _prepare_in(lookup: Lookup, value: Any) -> tuple[str, Any]:
    items = require_lookup_items(lookup, value)
    lookup.column.coerce(items)
    return "in", items


def _prepare_text(lookup: Lookup, value: Any) -> tuple[str, Any]:
    return f"text:{lookup.op}", require_text_value(lookup, value)


def _prepare_contains(lookup: Lookup, value: Any) -> tuple[str, Any]:
    if isinstance(value, str):
        return "item", require_text_value(lookup, value)
    lookup.column.coerce(value)
    return "contains", value


def _check_contained_by(lookup: Lookup, value: Any) -> tuple[str, Any]:
    lookup.column.coerce(value)
    return "contained_by", value


def _prepare_has_key(lookup: Lookup, value: Any) -> tuple[str, Any]:
    return "has_key", require_text_value(lookup, value)


def _prepare_has_keys(lookup: Lookup, value: Any) -> tuple[str, Any]:
    return lookup.op, [
        require_text_value(lookup, item) for item in require_lookup_items(lookup, value)
    ]


def require_text_value(lookup: Lookup, value: Any) -> str:
    """Return a text that is looked for, or raise `FieldValueError`."""
    try:
        return _TEXT.coerce(value)
    except ValueError as error:
        raise lookup.column.build_value_error(str(getattr(error, "reason", "takes text"))) from None


def require_lookup_items(lookup: Lookup, value: Any) -> list[Any]:
    """Return the items of the list that a lookup takes."""
    return require_list_items(value, f"{lookup.name}__{lookup.op}")


def require_list_items(value: Any, what: str = "in") -> list[Any]:
    """Return the items of a list given to a lookup, or raise `FieldError`."""
    kind = type(value).__name__
    # `in="abc"` would look for the letters, and a dict for its keys
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
        raise FieldError(f"{what} takes a list, not {kind}")
    return list(cast("list[Any]", value))


_PREPARE: dict[str, Callable[[Lookup, Any], tuple[str, Any]]] = {
    "exact": _prepare_exact,
    "in": _prepare_in,
    "range": _prepare_range,
    "contained_by": _check_contained_by,
    "has_key": _prepare_has_key,
    **dict.fromkeys(ORDERED, _prepare_order_comparison),
    **dict.fromkeys(TEXTUAL, _prepare_text),
    **dict.fromkeys(("has_keys", "has_any_keys"), _prepare_has_keys),
    "contains": _prepare_contains,
}
