"""`ctx` of a validation entry: the limit that a value missed, under stable names.

The names are those of pydantic (`ge`, `max_length`, `pattern`, `expected`), whichever package has
checked the value. A context never holds the value itself, nor a part or property of it.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from treefold_http._json.json import dumps, loads

Context = Mapping[str, Any]


class LimitMissed(ValueError):
    """A value missed a limit; the message is for the client.

    Attributes:
        context: the limit, as JSON.
    """

    def __init__(self, message: str, context: Context) -> None:
        super().__init__(message)
        self.context = context


def build_expected_values_context(values: Iterable[Any]) -> Context:
    """Return the context of a value that is not one of some others."""
    *most, last = [f"'{value}'" if isinstance(value, str) else str(value) for value in values]
    return {"expected": f"{', '.join(most)} or {last}" if most else last}


_NO_LIMITS = frozenset(
    {"actual_length", "class_name", "error", "field_type", "input_value", "method_name", "tag"}
    | {"tz_actual"}
)
"""Entries of pydantic's contexts that tell of the value or of the code."""


def redact_pydantic_error(error: Mapping[str, Any]) -> tuple[str, Context]:
    """Return the message and the context of an error of pydantic, without the value."""
    message, context = str(error["msg"]), cast("Context", error.get("ctx", {}))
    if error["type"] == "union_tag_invalid":  # its message quotes the value
        message = message.replace(f" '{context.get('tag')}'", "", 1)
    shown = {name: _limit_to_json(context[name]) for name in context if name not in _NO_LIMITS}
    made = {name: plain for name, plain in shown.items() if plain is not None}
    return message, made


def _limit_to_json(value: Any) -> Any:
    """Return the JSON form of a limit; None for a value that has none."""
    if isinstance(value, enum.Enum):
        return _limit_to_json(value.value)
    if isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        items = map(_limit_to_json, cast("Iterable[Any]", value))
        made = [item for item in items if item is not None]
        # a set has another order in each process
        return made if isinstance(value, (list, tuple)) else sorted(made, key=str)
    return loads(dumps(value)) if isinstance(value, _AS_TEXT) else None


_AS_TEXT = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)


_Limit = tuple[re.Pattern[str], Callable[[re.Match[str]], Context]]


def _parse_number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


_LENGTHS = {">=": ("min_length",), "<=": ("max_length",), "": ("min_length", "max_length")}
_BOUNDS = {">=": "ge", "<=": "le", ">": "gt", "<": "lt"}
_MSGSPEC: tuple[_Limit, ...] = (
    (
        re.compile(r"of length (>=|<=|) ?(\d+)$"),
        lambda found: dict.fromkeys(_LENGTHS[found[1]], int(found[2])),
    ),
    (
        re.compile(r"` (>=|<=|>|<) (-?[\d.e+-]+)$"),
        lambda found: {_BOUNDS[found[1]]: _parse_number(found[2])},
    ),
    (
        re.compile(r"that's a multiple of (-?[\d.e+-]+)$"),
        lambda found: {"multiple_of": _parse_number(found[1])},
    ),
    (re.compile(r"matching regex '(.*)'$", re.DOTALL), lambda found: {"pattern": found[1]}),
)
# `Invalid enum value 'hunter2'` quotes the value, which may be a secret
_quoted = re.compile(r"^(Invalid (?:enum )?value) .*", re.DOTALL)


def parse_msgspec_error(message: str) -> tuple[str, Context]:
    """Return the message and the context of an error of msgspec, which has only its text."""
    for pattern, context in _MSGSPEC:
        if found := pattern.search(message):
            return message, context(found)
    return _quoted.sub(r"\1", message), {}
