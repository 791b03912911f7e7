"""Columns of other tools: decimals kept as REAL or text, times without a zone.

Inside of queries their values travel like those of any other column. What is read and written in
Python alone is here: for raw SQL, and for the functions of SQLite's connections. What cannot be
read raises `ValueError`.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

_WIDE = decimal.Context(prec=2000)
_MOST = 10**18
"""Decimals on SQLite are integers of at most 18 digits: 19 do not all fit into 64 bits."""


def round_to_decimal(value: Any, places: int) -> decimal.Decimal:
    """A stored number as a decimal of so many places: a float by its 15 significant digits, as
    PostgreSQL takes it, rounded half away from zero.
    """
    text = f"{value:.15g}" if value.__class__ is float else value
    try:
        number = decimal.Decimal(text)
    except (decimal.InvalidOperation, TypeError):
        raise ValueError from None
    if not number.is_finite():
        raise ValueError
    unit = decimal.Decimal(1).scaleb(-places)
    return number.quantize(unit, rounding=decimal.ROUND_HALF_UP, context=_WIDE)


def scale_to_integer(value: Any, places: int) -> int:
    """A stored number as the integer that a decimal is on SQLite."""
    number = int(round_to_decimal(value, places).scaleb(places, _WIDE))
    if not -_MOST < number < _MOST:
        raise ValueError
    return number


def format_scaled_integer(value: int, places: int) -> str:
    """The text of a scaled integer, with all its places."""
    return f"{decimal.Decimal(value).scaleb(-places, _WIDE):f}"


def add_utc_offset(value: Any) -> str:
    """A stored time without a zone as the text that a point in time is on SQLite."""
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004, RUF100 - a value, not an argument, is wrong
    moment = dt.datetime.fromisoformat(value)
    if moment.tzinfo is not None:
        raise ValueError
    return f"{moment.isoformat(' ', 'microseconds')}+00:00"


def strip_utc_offset(value: str) -> str:
    """The text without a zone: with a fraction only where there is one, as most tools write it."""
    return dt.datetime.fromisoformat(value).replace(tzinfo=None).isoformat(" ")
