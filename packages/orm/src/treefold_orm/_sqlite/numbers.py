"""Numbers on SQLite as PostgreSQL computes them: exact, rounded half away from zero, never a REAL
in place of an integer.

Decimals are integers scaled by their places. An operation without a result raises here, and reaches
the caller as `DataError`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import sys
from typing import Any

from treefold_orm._base.data_errors import RANGE, ZERO
from treefold_orm._sqlite.refusals import fail_statement

_MOST = 10**18  # a scaled decimal has at most 18 digits
DATES = "A date or time must lie between the years 1 and 9999"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY = 86_400_000_000
"""Microseconds."""
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def divide_and_round(number: int, divisor: int) -> int:
    """Return the quotient rounded half away from zero; `DataError` for a division by zero."""
    if not divisor:
        fail_statement(ZERO)
    # of the absolute values: divmod() rounds towards minus infinity, and -7 // 2 is -4
    quotient, rest = divmod(abs(number), abs(divisor))
    quotient += 2 * rest >= abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def sql_whole(integer_result: Any) -> Any:
    # SQLite turns the sum or product of integers into a REAL where it leaves 64 bits
    if integer_result.__class__ is float:
        fail_statement(RANGE)
    return integer_result


def sql_exact(scaled_decimal: Any) -> Any:
    if scaled_decimal.__class__ is float or not -_MOST < scaled_decimal < _MOST:
        fail_statement(RANGE)
    return scaled_decimal


def sql_finite(float_result: Any) -> Any:
    if not math.isfinite(float_result):
        fail_statement(RANGE)
    return float_result


def sql_fit(scaled_integer: Any, places_shift: int, low: int, high: int) -> int:
    """A scaled integer moved by `places_shift` places and rounded, which must lie between two
    bounds.
    """
    if scaled_integer.__class__ is float:
        fail_statement(RANGE)
    moved = (
        scaled_integer * 10**places_shift
        if places_shift >= 0
        else divide_and_round(scaled_integer, 10**-places_shift)
    )
    return _check_range(moved, low, high)


def _check_range(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        fail_statement(RANGE)
    return value


def sql_rounded(value: Any, low: int, high: int) -> int:
    number = decimal.Decimal(value).to_integral_value(decimal.ROUND_HALF_UP)
    return _check_range(int(number), low, high)


def sql_scaled(stored_number: Any, places: int, low: int, high: int) -> int:
    # 15 significant digits, as PostgreSQL takes of a double for a numeric
    text = f"{stored_number:.15g}" if stored_number.__class__ is float else stored_number
    number = decimal.Decimal(text).scaleb(places, _WIDE)
    return _check_range(int(number.to_integral_value(decimal.ROUND_HALF_UP)), low, high)


def sql_real(scaled_integer: Any, places: int) -> float:
    """The float that is nearest to a scaled integer."""
    return scaled_integer / 10**places


def sql_ratio(dividend: Any, divisor: Any) -> float:
    if not divisor:
        fail_statement(ZERO)
    return sql_finite(float(dividend) / float(divisor))


def sql_quotient(dividend: Any, divisor: Any, places_shift: int) -> int:
    """The scaled quotient of two scaled integers; `places_shift` makes up for their places."""
    return sql_exact(divide_and_round(sql_whole(dividend) * 10**places_shift, sql_whole(divisor)))


def sql_part(dividend: Any, divisor: Any) -> int:
    """A whole number divided by another one and rounded."""
    return _check_range(divide_and_round(dividend, divisor), _LOWEST, _HIGHEST)


def sql_mean(high_bits_sum: int, low_bits_sum: int, count: int) -> float:
    """The mean of integers whose upper and lower 32 bits were summed apart, as the server rounds
    it: the sum to a float, and the quotient.
    """
    return float((high_bits_sum << 32) + low_bits_sum) / count


def sql_rest(dividend: Any, divisor: Any, dividend_places: int, divisor_places: int) -> int:
    """The remainder of scaled integers at the finer scale; it has the sign of the dividend."""
    if not divisor:
        fail_statement(ZERO)
    finer = max(dividend_places, divisor_places)
    dividend = dividend * 10 ** (finer - dividend_places)
    divisor = divisor * 10 ** (finer - divisor_places)
    # the % of Python has the sign of the divisor
    rest = abs(sql_whole(dividend)) % abs(sql_whole(divisor))
    return _check_range(-rest if dividend < 0 else rest, _LOWEST, _HIGHEST)


def sql_datetime(microseconds: Any) -> str:
    try:
        moment = _EPOCH + dt.timedelta(microseconds=sql_whole(microseconds))
        return moment.isoformat(" ", "microseconds")
    except OverflowError:
        fail_statement(DATES)


def sql_date(microseconds: Any) -> str:
    return sql_datetime(microseconds)[:10]


def sql_time(microseconds: Any) -> str:
    moment = _EPOCH + dt.timedelta(microseconds=microseconds % _DAY)
    return moment.time().isoformat("microseconds")


def sql_json_as(json_text: Any, kind: str) -> Any:
    """A JSON text as a value of the kind, None where it is of another one."""
    value: Any = json.loads(json_text)
    match kind:
        case "text":
            return value if isinstance(value, str) else None
        case "boolean":
            return int(value) if isinstance(value, bool) else None
        case _:
            # bool is a kind of int in Python, and no number in JSON
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return None
            if isinstance(value, int) and _LOWEST <= value <= _HIGHEST and kind == "number":
                return value
            return float(value) if abs(value) <= _LARGEST_FLOAT else fail_statement(RANGE)


_LARGEST_FLOAT = int(sys.float_info.max)
_WIDE = decimal.Context(prec=2000)
