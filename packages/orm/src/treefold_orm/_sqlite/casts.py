"""Casts between text and other types on SQLite, in the forms that PostgreSQL writes and reads.

What is read is what the columns of this package hold: decimals as scaled integers, dates and times
as text of fixed width. Text in another form fails the statement with a `DataError`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import sys
import uuid
from typing import Any

from treefold_orm._base.data_errors import DATES, FORM, RANGE
from treefold_orm._fields.text_forms import TEXT_FORMS, TRUE
from treefold_orm._fields.zones import parse_zone_name
from treefold_orm._sqlite.refusals import fail_statement

_READ = {kind: re.compile(form, re.ASCII | re.IGNORECASE) for kind, form in TEXT_FORMS.items()}
_WIDE = decimal.Context(prec=2000)
_MOST = 10**18
"""Decimals on SQLite are integers of at most 18 digits: 19 do not all fit into 64 bits."""
_FAR = 2.0**54
"""From here on floats are 4 or more apart, and a short text may lie half-way between two."""


def _require_text_form(text: str, kind: str) -> str:
    if _READ[kind].fullmatch(text) is None:
        fail_statement(FORM)
    return text.strip()


def sql_boolean_of_text(text: str) -> int:
    return int(_require_text_form(text, "boolean").lower() in TRUE)


def sql_integer_of_text(text: str) -> int:
    digits = _require_text_form(text, "integer")
    # int() refuses text of more than 4300 digits with a ValueError of its own
    if len(digits) > 4000 or not -(2**63) <= int(digits) < 2**63:
        fail_statement(RANGE)
    return int(digits)


def sql_float_of_text(text: str) -> float:
    number = float(_require_text_form(text, "float"))
    # "1e-400" is 0.0 in Python and out of range for PostgreSQL
    lost = not number and any(digit in "123456789" for digit in text.lower().partition("e")[0])
    if lost or not math.isfinite(number):
        fail_statement(RANGE)
    return number


def sql_decimal_of_text(text: str, places: int) -> int:
    number = decimal.Decimal(_require_text_form(text, "decimal"))
    # before the shift: scaleb() of "1e999999" raises decimal.Overflow
    if number and number.adjusted() > 18:
        fail_statement(RANGE)
    if number and number.adjusted() < -places - 1:
        return 0
    scaled = number.scaleb(places, _WIDE).to_integral_value(decimal.ROUND_HALF_UP, _WIDE)
    if abs(scaled) >= _MOST:
        fail_statement(RANGE)
    return int(scaled)


def sql_date_of_text(text: str) -> str:
    try:
        # "2024-02-30" has the form of a date, so that only the parser can refuse it
        return dt.date.fromisoformat(_require_text_form(text, "date")).isoformat()
    except ValueError:
        fail_statement(DATES)


def sql_time_of_text(text: str) -> str:
    return dt.time.fromisoformat(
        _pad_fractional_seconds(_require_text_form(text, "time"))
    ).isoformat("microseconds")


def sql_datetime_of_text(text: str) -> str:
    try:
        moment = dt.datetime.fromisoformat(
            _pad_fractional_seconds(_require_text_form(text, "datetime").upper())
        )
        return moment.astimezone(dt.UTC).isoformat(" ", "microseconds")
    except (ValueError, OverflowError):
        fail_statement(DATES)


def _pad_fractional_seconds(text: str) -> str:
    # a fraction of a second of any length, to six places
    return re.sub(r"\.([0-9]+)", lambda found: f".{found[1]:0<6}", text)


def sql_uuid_of_text(text: str) -> str:
    return str(uuid.UUID(_require_text_form(text, "uuid")))


def sql_text_of_decimal(value: int, places: int) -> str:
    # SQLite has turned a sum or product that leaves 64 bits into a REAL
    if value.__class__ is float:
        fail_statement(RANGE)
    digits = f"{abs(value):0>{places + 1}}"
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if value < 0 else text


def find_shortest_decimal(value: float) -> decimal.Decimal:
    """Return the shortest decimal that no other float is as near to, as PostgreSQL takes it.

    Python also takes one that lies half-way between two floats, which has few digits only where
    floats are whole numbers far from each other.
    """
    found = decimal.Decimal(repr(value))
    if -_FAR < value < _FAR or not math.isfinite(value):
        return found
    whole = int(value)
    below = whole - int(math.nextafter(value, 0.0))
    above = (
        int(math.nextafter(value, math.copysign(math.inf, value))) - whole
        if (abs(value) < sys.float_info.max)
        else below
    )
    places = len(found.as_tuple().digits)
    # half-way between two floats: each further digit moves the text nearer to the value
    while 2 * (int(found) - whole) in {above, -below}:
        places += 1
        found = decimal.Decimal(f"{value:.{places - 1}e}")
    return found


def sql_text_of_float(value: Any) -> str:
    """Return a float as PostgreSQL writes it: as short as possible, no point after whole numbers,
    an exponent from 15 digits on.
    """
    sign, digits, exponent = find_shortest_decimal(float(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        fail_statement(RANGE)
    figures = "".join(map(str, digits))
    first = len(figures) + exponent - 1
    if figures == "0":
        text = "0"
    elif first < -4 or first >= 15:
        fraction = f".{figures[1:]}" if len(figures) > 1 else ""
        text = f"{figures[0]}{fraction}e{'-' if first < 0 else '+'}{abs(first):02d}"
    elif exponent >= 0:
        text = figures + "0" * exponent
    elif first >= 0:
        text = f"{figures[: first + 1]}.{figures[first + 1 :]}"
    else:
        text = f"0.{'0' * (-first - 1)}{figures}"
    return f"-{text}" if sign else text


def sql_clock_in_zone(datetime_text: Any, zone_name: Any) -> str:
    """The time that the clocks of a zone show at a point in time, as if it were one in UTC."""
    try:
        local = dt.datetime.fromisoformat(datetime_text).astimezone(parse_zone_name(zone_name))
    except OverflowError:
        fail_statement(DATES)
    return local.replace(tzinfo=dt.UTC).isoformat(" ", "microseconds")
