"""Functions of numbers on SQLite as PostgreSQL computes them.

Decimals are integers scaled by their places. An operation without a result fails the statement with
a `DataError`, also where SQLite would say NULL or infinity.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

from treefold_orm._base.data_errors import LOGARITHM, POWER, RANGE, ZERO
from treefold_orm._sqlite.casts import find_shortest_decimal
from treefold_orm._sqlite.numbers import divide_and_round
from treefold_orm._sqlite.refusals import fail_statement

_MOST = 10**18
"""Decimals on SQLite are integers of at most 18 digits: 19 do not all fit into 64 bits."""
_PRECISE = decimal.Context(prec=50)


def _check_decimal_range(value: int) -> int:
    if not -_MOST < value < _MOST:
        fail_statement(RANGE)
    return value


def sql_round(value: Any, places: int) -> float:
    """A float rounded as it is written, half away from zero."""
    number = find_shortest_decimal(float(value))
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= places:
        return float(value)
    unit = decimal.Decimal(1).scaleb(-places)
    return float(number.quantize(unit, decimal.ROUND_HALF_UP, _WIDE))


def sql_round_decimal(value: Any, places: int, scale: int) -> int:
    """A scaled integer rounded to so many places, which are then its scale, or to tens."""
    if value.__class__ is float:
        fail_statement(RANGE)
    rounded = divide_and_round(value, 10 ** (scale - places))
    whole = rounded if places >= 0 else rounded * 10**-places
    return _check_bigint_range(whole) if not scale else _check_decimal_range(whole)


def _check_bigint_range(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        fail_statement(RANGE)
    return value


def sql_floor(value: Any) -> int:
    return _check_bigint_range(math.floor(value))


def sql_ceil(value: Any) -> int:
    return _check_bigint_range(math.ceil(value))


def sql_floor_decimal(value: Any, scale: int) -> int:
    if value.__class__ is float:
        fail_statement(RANGE)
    return value // 10**scale


def sql_ceil_decimal(value: Any, scale: int) -> int:
    return -sql_floor_decimal(-value, scale)


def sql_power(base: Any, exponent: Any) -> float:
    try:
        made = math.pow(base, exponent)
    except OverflowError:
        fail_statement(RANGE)
    except ValueError:
        fail_statement(POWER)
    # too small for a float: PostgreSQL reports it, Python gives 0.0
    if not made and base:
        fail_statement(RANGE)
    return made


def sql_sqrt(value: Any) -> float:
    if value < 0:
        fail_statement(POWER)
    return math.sqrt(value)


def sql_exp(value: Any) -> float:
    try:
        made = math.exp(value)
    except OverflowError:
        fail_statement(RANGE)
    # exp(-1000) is 0.0 in Python and out of range for PostgreSQL
    if not made:
        fail_statement(RANGE)
    return made


def sql_ln(value: Any) -> float:
    if value <= 0:
        fail_statement(LOGARITHM)
    return math.log(value)


def sql_log(base: Any, value: Any) -> float:
    if base <= 0 or value <= 0:
        fail_statement(LOGARITHM)
    if base == 1:
        fail_statement(ZERO)
    # 50 digits: float logarithms are off in the last one, as math.log(1000, 10) is
    above, below = (find_shortest_decimal(float(n)).ln(_PRECISE) for n in (value, base))
    return float(_PRECISE.divide(above, below))


def sql_greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


def sql_least(*values: Any) -> Any:
    return min((value for value in values if value is not None), default=None)


_WIDE = decimal.Context(prec=2000)
