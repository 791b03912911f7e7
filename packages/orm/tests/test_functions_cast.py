"""Cast: which types have a meaning as which, in one form on both databases."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import pytest
from orm_expressions import Case, differences
from orm_models import Color, Everything

from treefold_orm import Cast, DataError, F, FieldError, Trunc, Value, fields

D = decimal.Decimal
UID = uuid.UUID("0A1B2C3D-0000-4000-8000-00000000ffff")
MOMENT = dt.datetime(2026, 5, 14, 23, 59, 59, 999999, tzinfo=dt.UTC)
ROW = {
    "small": -7,
    "big": 2**53 + 1,
    "real": 2.5,
    "money": D("-3.500"),
    "char": " 12 ",
    "flag": True,
    "uid": UID,
    "day": dt.date(826, 5, 14),
    "time": dt.time(23, 59, 59, 999999),
    "moment": MOMENT,
    "span": dt.timedelta(1),
    "data": {"n": 4, "r": 2.5, "s": "2026-01-05", "b": True},
    "color": Color.RED,
}
TEXT = fields.TextField()
CENTS = fields.DecimalField(max_digits=8, decimal_places=2)
EARLY = dt.datetime(2026, 1, 5, 5, 30, tzinfo=dt.UTC)
EAST = dt.timezone(dt.timedelta(hours=2))

CASES: list[Case] = [
    (Cast("real", int), 3),
    (Cast(Value(1.5), int), 2),
    (Cast(Value(-2.5), fields.SmallIntegerField()), -3),
    (Cast(Value(2.0**62 + 2.0**30), int), 2**62 + 2**30),
    (Cast(Value(2.0**52 - 0.5), int), 2**52),
    (Cast(Value(-9223372036854774784.0), int), -9223372036854774784),
    (Cast("money", int), -4),
    (Cast("small", int), -7),
    (Cast("big", fields.BigIntegerField()), 2**53 + 1),
    (Cast("flag", int), 1),
    (Cast("char", int), 12),
    (Cast(Value("+007"), int), 7),
    (Cast(Value("-9223372036854775808"), int), -(2**63)),
    (Cast("data__n", int), 4),
    (Cast("data__r", int), 3),
    (Cast("data__s", int), None),
    (Cast("small", float), -7.0),
    (Cast("money", float), -3.5),
    (Cast("big", float), float(2**53)),
    (Cast(Value(".5e1"), float), 5.0),
    (Cast(Value("-0.1"), fields.FloatField()), -0.1),
    (Cast("data__r", float), 2.5),
    (Cast("small", CENTS), D("-7.00")),
    (Cast("real", CENTS), D("2.50")),
    (Cast("money", CENTS), D("-3.50")),
    (Cast(Value(D("0.005")), CENTS), D("0.01")),
    (Cast(Value("-12.345"), CENTS), D("-12.35")),
    (Cast(Value("1e3"), CENTS), D("1000.00")),
    (Cast(Value(1 / 3), CENTS), D("0.33")),
    (Cast(Value(2.675), CENTS), D("2.68")),
    (Cast("data__n", CENTS), D("4.00")),
    (Cast("small", str), "-7"),
    (Cast("money", TEXT), "-3.500"),
    (Cast("real", str), "2.5"),
    (Cast(Value(1e-5), str), "1e-05"),
    (Cast(Value(3.57053e20), str), "3.5705299999999997e+20"),
    (Cast(Value(-3.04446875e19), str), "-3.0444687500000002e+19"),
    (Cast(Value(0.0001), str), "0.0001"),
    (Cast(Value(-0.0), str), "-0"),
    (Cast(Value(123456789012345.0), str), "123456789012345"),
    (Cast(Value(1.7976931348623157e308), str), "1.7976931348623157e+308"),
    (Cast("flag", str), "true"),
    (Cast("uid", str), str(UID)),
    (Cast("day", str), "0826-05-14"),
    (Cast("time", str), "23:59:59.999999"),
    (Cast(Value(dt.time(7)), str), "07:00:00"),
    (Cast("moment", str), "2026-05-14 23:59:59.999999+00:00"),
    (Cast("color", str), "red"),
    (Cast("char", fields.CharField(max_length=2)), " 12 "),
    (Cast("data__s", str), "2026-01-05"),
    (Cast("data__n", str), None),
    (Cast("small", bool), True),
    (Cast(F("small") + 7, bool), False),
    (Cast(Value(" YES "), bool), True),
    (Cast(Value("f"), bool), False),
    (Cast("data__b", bool), True),
    (Cast("moment", dt.date), dt.date(2026, 5, 14)),
    (Cast("day", dt.datetime), dt.datetime(826, 5, 14, tzinfo=dt.UTC)),
    (Cast("moment", dt.time), dt.time(23, 59, 59, 999999)),
    (Cast(Value("0826-02-28"), dt.date), dt.date(826, 2, 28)),
    (Cast("data__s", dt.date), dt.date(2026, 1, 5)),
    (Cast(Value("23:59:59.9"), dt.time), dt.time(23, 59, 59, 900000)),
    (Cast(Value("07:30"), fields.TimeField()), dt.time(7, 30)),
    (Cast(Value("2026-01-05T07:30:00+02:00"), dt.datetime), EARLY),
    (Cast(Value("2026-01-05 05:30Z"), dt.datetime), EARLY),
    (Cast(Cast("moment", str), dt.datetime), MOMENT),
    (Cast(Trunc("moment", "day", EAST), dt.date), dt.date(2026, 5, 14)),
    (Cast(Value(UID.hex), uuid.UUID), UID),
    (Cast(Cast("uid", str), fields.UUIDField()), UID),
    *((Cast("url", kind), None) for kind in (int, float, str, bool, dt.date, dt.time, dt.datetime)),
    *((Cast(kind, str), None) for kind in ("integer", "data__missing", "url__length")),
    (Cast("url", CENTS), None),
    (Cast("integer", CENTS), None),
    (Cast("positive", bool), None),
    (Cast("span", fields.DurationField()), dt.timedelta(1)),
]


async def test_values_as_other_types(db: Any, half: Any) -> None:
    assert await differences(half, ROW, CASES) == []


REFUSED = [
    (lambda: Cast("day", int), r"Everything.day \(date\) cannot be cast to int"),
    (lambda: Cast("flag", float), r"Everything.flag \(bool\) cannot be cast to float"),
    (lambda: Cast("span", str), "cannot be cast to text"),
    (lambda: Cast("blob", str), "cannot be cast to text"),
    (lambda: Cast("time", dt.datetime), "cannot be cast to datetime"),
    (lambda: Cast("real", bool), "cannot be cast to bool"),
    (lambda: Cast("char", fields.DurationField()), "cannot be cast to duration"),
    (lambda: Cast("char", fields.JSONField()), "cannot be cast to JSON"),
    (lambda: Cast("data", fields.BinaryField()), "cannot be cast to binary"),
    (lambda: Cast("char", D), r"got <class 'decimal.Decimal'>; use a field such as fields.Dec"),
    (lambda: Cast("char", fields.EnumField(Color)), "use str"),
    (lambda: Cast("char", "int"), "Cast must be given a field or a type, got 'int'"),  # pyright: ignore[reportArgumentType] - a wrong type on purpose
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_casts_without_a_meaning_are_refused(build: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Everything.objects.annotate(x=build())


RANGE = "A number must fit the range of its type"
FORM = "A text must have the form of the type that it is cast to"
DATES = "A date or time must exist and lie between the years 1 and 9999"
FAILING = [
    (Cast(Value(text), kind), message)
    for kind, message, texts in (
        (int, FORM, ("b", "", "1.5", "0x10", "1_000", "\uff11")),
        (int, RANGE, ("9223372036854775808",)),
        (fields.IntegerField(), RANGE, ("2147483648",)),
        (float, FORM, ("nan", "inf", "1,5", ".")),
        (float, RANGE, ("1e999", "1e-999")),
        (CENTS, FORM, ("nan", "x")),
        (CENTS, RANGE, ("1000000", "999999.995")),
        (bool, FORM, ("2", "tr")),
        (dt.date, FORM, ("today", "2026-1-5", "20260105", "infinity")),
        (dt.date, DATES, ("2026-02-30", "2026-13-01", "0000-01-01")),
        (dt.time, FORM, ("24:00:00", "12:60")),
        (dt.datetime, FORM, ("2026-01-05 07:30", "2026-01-05", "now")),
        (dt.datetime, DATES, ("2026-02-30 07:30Z",)),
        (uuid.UUID, FORM, ("x", "{0a1b2c3d-0000-4000-8000-00000000ffff}")),
    )
    for text in texts
] + [
    (Cast("big", fields.IntegerField()), RANGE),
    (Cast("big", fields.SmallIntegerField()), RANGE),
    (Cast(Value(1e19), int), RANGE),
    (Cast("big", CENTS), RANGE),
    (Cast(Value(1e18), CENTS), RANGE),
]


async def test_a_row_that_cannot_be_cast_is_a_data_error(db: Any, half: Any) -> None:
    await half(Everything.objects).create(**ROW)
    for expression, message in FAILING:
        with pytest.raises(DataError, match=message):
            await half.rows(Everything.objects.values(x=expression))


async def test_casts_to_equal_fields_share_a_plan(db: Any, half: Any) -> None:
    before = len(db.plans)
    for _ in range(5):
        field = fields.DecimalField(max_digits=12, decimal_places=2)
        await half.rows(Everything.objects.values(x=Cast("real", field)))
    assert len(db.plans) - before == 1
