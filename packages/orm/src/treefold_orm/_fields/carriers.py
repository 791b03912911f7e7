"""The field that carries a bare Python value: the parameters of `Value(5)` or `F("n") + 5`."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any, ClassVar, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._fields.base import AnyField, Codec, Field
from treefold_orm._fields.numbers import BigIntegerField, BooleanField, DecimalField, FloatField
from treefold_orm._fields.structured import BinaryField, JSONField, UUIDField
from treefold_orm._fields.text import TextField
from treefold_orm._fields.times import DateField, DateTimeField, DurationField, TimeField


class NumberField(Field[Any]):
    """Carries numbers of JSON: an int or a float, as it was written."""

    types: ClassVar[dict[str, str]] = {"sqlite": "NUMERIC", "postgres": "numeric"}
    internal = "number"

    def coerce(self, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.build_value_error(f"takes an int or a float, not {type(value).__name__}")
        if not math.isfinite(value):
            raise self.build_value_error("must be finite")
        return value

    def encoder(self, dialect: str) -> Codec | None:
        return _float_to_decimal if dialect == "postgres" else _convert_huge_int_to_float

    def decoder(self, dialect: str) -> Codec | None:
        return _decimal_to_int_or_float if dialect == "postgres" else None


def _float_to_decimal(value: float) -> decimal.Decimal:
    return decimal.Decimal(repr(value))


def _convert_huge_int_to_float(value: float) -> float:
    # the driver of SQLite raises OverflowError for an int beyond 64 bits
    return float(value) if abs(value) >= 2**63 else value


def _decimal_to_int_or_float(value: decimal.Decimal) -> int | float:
    exponent = value.as_tuple().exponent
    # PostgreSQL keeps the places of a number in JSON: 1.0 was written as a float, 1 was not
    return float(value) if isinstance(exponent, int) and exponent < 0 else int(value)


INTEGER: AnyField = BigIntegerField()
FLOAT: AnyField = FloatField()
TEXT: AnyField = TextField()
BOOLEAN: AnyField = BooleanField()
NUMBER: AnyField = NumberField()
DATE: AnyField = DateField()
TIME: AnyField = TimeField()
DATETIME: AnyField = DateTimeField()
NAIVE: AnyField = DateTimeField(zone=None)
DURATION: AnyField = DurationField()
BY_TYPE: dict[type, AnyField] = {
    int: INTEGER,
    float: FLOAT,
    str: TEXT,
    bool: BOOLEAN,
    dt.datetime: DATETIME,
    dt.date: DATE,
    dt.time: TIME,
    dt.timedelta: DURATION,
    bytes: BinaryField(),
    uuid.UUID: UUIDField(),
    dict: JSONField(),
    list: JSONField(),
}


def infer_value_field(value: Any) -> AnyField:
    """Return the field that carries a bare Python value, or raise `FieldError`."""
    if isinstance(value, decimal.Decimal):
        exponent = value.as_tuple().exponent
        places = max(0, -exponent) if isinstance(exponent, int) else 0
        return make_decimal_field(places)
    found = BY_TYPE.get(cast("type", value.__class__))
    if found is None:
        raise FieldError(f"Value({type(value).__name__}) has no column type: give an output_field")
    return found


_DECIMALS: dict[int, AnyField] = {}


def make_decimal_field(places: int) -> AnyField:
    """Return the field that carries decimals of so many places."""
    if places not in _DECIMALS:
        if places > 100:
            raise FieldError(f"Value(Decimal) has {places} places: at most 100 are possible")
        # 1,000 digits are the most that PostgreSQL's numeric can be declared with
        made: AnyField = DecimalField(max_digits=1000, decimal_places=places)
        _DECIMALS[places] = made
    return _DECIMALS[places]
