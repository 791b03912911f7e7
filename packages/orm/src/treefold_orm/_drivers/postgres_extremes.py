"""The first and the last date and time that Python has, which asyncpg sends as infinity.

They travel as text instead, in a statement that says so: where one is among the arguments, and
there alone. Looking for them costs next to nothing beside a call of the driver.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any, cast

# text, names and comments match first, so that a "$1" inside of them is no placeholder
_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$([0-9]+)""", re.DOTALL)
_DATES = (dt.date.min, dt.date.max)
_MOMENTS = (dt.datetime.min, dt.datetime.max)
_AWARE = (dt.datetime.min.replace(tzinfo=dt.UTC), dt.datetime.max.replace(tzinfo=dt.UTC))
_TYPES = frozenset({"date", "timestamp", "timestamptz"})


def has_extreme_date(args: Sequence[Any]) -> bool:
    """True where an argument, or an item of one, would be sent as infinity."""
    for value in args:
        if isinstance(value, dt.date):
            year = value.year  # asked first: nearly all are settled by it
            if (year == 9999 or year == 1) and _is_extreme_date(value):  # noqa: PLR1714, RUF100 - faster
                return True
        elif value.__class__ is list and _has_extreme_item(value):
            return True
    return False


def _is_extreme_date(value: dt.date) -> bool:
    if not isinstance(value, dt.datetime):
        return value in _DATES
    if value.tzinfo is not None:
        try:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        except OverflowError:
            return False  # the driver refuses it
    return value in _MOMENTS


def _has_extreme_item(items: list[Any]) -> bool:
    first = next((item for item in items if item is not None), None)
    if not isinstance(first, dt.date):
        return first.__class__ is list and has_extreme_date(items)
    low, high = _DATES
    if isinstance(first, dt.datetime):
        low, high = _MOMENTS if first.tzinfo is None else _AWARE
    return high in items or low in items


async def rewrite_dates_as_text(
    raw: Any, sql: str, args: Sequence[object]
) -> tuple[str, list[Any]]:
    """The same statement and arguments, with dates and times as text that is cast to their type."""
    prepared = await raw.prepare(sql, name="")
    types = [parameter.name for parameter in prepared.get_parameters()]
    dated = [_is_date_or_time_type(kind) for kind in types]

    def cast_placeholder(found: re.Match[str]) -> str:
        if found[1] is None or not dated[int(found[1]) - 1]:
            return found[0]
        kind = types[int(found[1]) - 1]
        text = "text[]" if kind.endswith("[]") else "text"
        # the inner cast makes the parameter text for the driver, the outer one a date again
        return f"CAST(CAST({found[0]} AS {text}) AS {kind})"

    return _TOKENS.sub(cast_placeholder, sql), [
        _convert_dates_to_iso_text(value) if is_dated else value
        for value, is_dated in zip(args, dated, strict=True)
    ]


def _is_date_or_time_type(kind: str) -> bool:
    return kind.removesuffix("[]") in _TYPES


def _convert_dates_to_iso_text(date_or_dates: Any) -> Any:
    if isinstance(date_or_dates, (list, tuple)):
        return [_convert_dates_to_iso_text(item) for item in cast("Sequence[Any]", date_or_dates)]
    if isinstance(date_or_dates, dt.datetime) and date_or_dates.tzinfo is not None:
        date_or_dates = date_or_dates.astimezone(dt.UTC)
    return None if date_or_dates is None else date_or_dates.isoformat()
