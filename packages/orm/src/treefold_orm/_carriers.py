"""Which field carries a bare Python value: what `Value(5)` or `F("n") + 5` become as parameters."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any, cast

from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import BigIntegerField, BooleanField, DecimalField, FloatField
from treefold_orm._fields._structured import BinaryField, JSONField, UUIDField
from treefold_orm._fields._text import TextField
from treefold_orm._fields._times import DateField, DateTimeField, DurationField, TimeField

AnyField = Field[Any]

INTEGER: AnyField = BigIntegerField()
FLOAT: AnyField = FloatField()
TEXT: AnyField = TextField()
BOOLEAN: AnyField = BooleanField()
DATE: AnyField = DateField()
TIME: AnyField = TimeField()
DATETIME: AnyField = DateTimeField()
DURATION: AnyField = DurationField()
_BY_TYPE: dict[type, AnyField] = {
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


def field_of(value: Any) -> AnyField:
    """Return the field that carries a bare Python value, or raise `FieldError`."""
    if isinstance(value, decimal.Decimal):
        exponent = value.as_tuple().exponent
        places = max(0, -exponent) if isinstance(exponent, int) else 0
        return decimal_carrier(places)
    found = _BY_TYPE.get(cast("type", value.__class__))
    if found is None:
        raise FieldError(f"Value({type(value).__name__}) has no column type: give an output_field")
    return found


_DECIMALS: dict[int, AnyField] = {}


def decimal_carrier(places: int) -> AnyField:
    """Return the field that carries decimals of so many places."""
    if places not in _DECIMALS:
        if places > 100:
            raise FieldError(f"Value(Decimal) has {places} places: at most 100 are possible")
        made: AnyField = DecimalField(max_digits=1000, decimal_places=places)
        _DECIMALS[places] = made
    return _DECIMALS[places]
