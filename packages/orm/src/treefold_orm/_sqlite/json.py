"""JSON functions of every SQLite connection: PostgreSQL's jsonb tests of whole structures.

Numbers are compared by their exact value (1 equals 1.0, and nothing is rounded), never with text
or booleans.
"""

from __future__ import annotations

import decimal
import functools
import json
from typing import Any, cast

from treefold_orm._fields.structured import dump_canonical_json


def sql_json_at(document: str | None, path_json: str) -> str | None:
    if document is None:
        return None
    value: Any = json.loads(document)
    for key in _parse_json_path(path_json):
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            if key not in members:
                return None
            value = members[key]
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            # a place is written in one way only: "01", "-1" and "+1" are keys
            place = int(key) if key.isascii() and key.isdigit() and len(key) < 16 else len(items)
            if str(place) != key or place >= len(items):
                return None
            value = items[place]
        else:
            return None
    return dump_canonical_json(value)


def sql_json_of(value: Any) -> str | None:
    """A number or text as JSON."""
    return None if value is None else dump_canonical_json(value)


def sql_json_object(*keys_and_values: str | None) -> str:
    """An object of keys and values that are JSON already, in the order of the keys."""
    pairs = zip(keys_and_values[::2], keys_and_values[1::2], strict=True)
    members = (f"{dump_canonical_json(key)}:{value or 'null'}" for key, value in pairs)
    return "{" + ",".join(members) + "}"


@functools.lru_cache(maxsize=256)
def _parse_json_path(text: str) -> list[str]:
    return json.loads(text)


def _normalize_number(text: str) -> str:
    # no text of a document holds NUL, so that no text equals a number
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    whole = "".join(map(str, digits)).lstrip("0")
    kept = whole.rstrip("0")
    if not kept:
        return "\0 0"
    return f"\0{'-' if sign else ' '}{kept}e{int(exponent) + len(whole) - len(kept)}"


def _load_with_normalized_numbers(text: str) -> Any:
    return json.loads(text, parse_int=_normalize_number, parse_float=_normalize_number)


def sql_json_plain(document: str | None) -> str | None:
    """One text for all documents that are equal."""
    if document is None:
        return None
    return "j" + dump_canonical_json(_load_with_normalized_numbers(document))


def sql_json_contains(document: str | None, wanted: str | None) -> int | None:
    if document is None or wanted is None:
        return None
    whole, part = _load_with_normalized_numbers(document), _load_with_normalized_numbers(wanted)
    if isinstance(whole, list) and not isinstance(part, (list, dict)):
        part = [part]  # on the outermost level, a list contains its items
    return int(_contains_json(whole, part))


def _contains_json(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        wanted = cast("dict[str, Any]", part)
        return isinstance(whole, dict) and all(
            key in whole and _contains_json(whole[key], value) for key, value in wanted.items()
        )
    if isinstance(part, list):
        items = cast("list[Any]", part)
        return isinstance(whole, list) and all(
            any(_contains_json(found, item) for found in cast("list[Any]", whole)) for item in items
        )
    return type(whole) is type(part) and whole == part
