"""Functions of numbers: one meaning on both databases, and an error where there is no result."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pytest
from orm_expressions import Case, differences
from orm_models import Everything

from treefold_orm import (
    Abs,
    Ceil,
    DataError,
    Exp,
    Expression,
    F,
    FieldError,
    Floor,
    Ln,
    Log,
    Power,
    Random,
    Round,
    Sign,
    Sqrt,
    Sum,
    Value,
)

D = decimal.Decimal
ROW = {
    "small": -(2**15),
    "integer": -(2**31),
    "big": 2**62 + 1,
    "positive": 7,
    "real": 4.5,
    "money": D("-2.345"),
    "data": {"n": 5, "r": -2.5, "s": "5"},
    "char": "7",
    "span": dt.timedelta(hours=1),
}

CASES: list[Case] = [
    (Abs("small"), 2**15),
    (Abs("integer"), 2**31),
    (Abs("money"), D("2.345")),
    (Abs(F("real") * -1), 4.5),
    (Abs("data__r"), 2.5),
    (Abs("data__s"), None),
    (Abs("data__missing"), None),
    (Sign("integer"), -1),
    (Sign("money"), -1),
    (Sign(F("real")), 1),
    (Sign(Value(0)), 0),
    (Round("real"), 5.0),
    (Round(Value(2.5)), 3.0),
    (Round(Value(-2.5)), -3.0),
    (Round(Value(0.49999999999999994)), 0.0),
    (Round(Value(4503599627370497.0)), 4503599627370497.0),
    (Round(Value(1e300)), 1e300),
    (Round(Value(2.675), 2), 2.68),
    (Round(Value(-0.125), 2), -0.13),
    (Round(Value(1250.0), -2), 1300.0),
    (Round("money"), D("-2")),
    (Round(F("money") - D("0.155")), D("-3")),
    (Round("money", 2), D("-2.35")),
    (Round("money", 3), D("-2.345")),
    (Round("money", 9), D("-2.345")),
    (Round(F("money") * 100, -1), D("-230")),
    (Round("positive"), 7),
    (Round("positive", -1), 10),
    (Round("big", -1), 2**62 + 6),
    (Round("big", 3), 2**62 + 1),
    (Round("data__r"), -3.0),
    (Floor("money"), D("-3")),
    (Ceil("money"), D("-2")),
    (Floor(Abs("money")), D("2")),
    (Floor(F("money") * 0), D("0")),
    (Floor("real"), 4),
    (Ceil("real"), 5),
    (Floor(Value(-0.5)), -1),
    (Ceil(Value(-0.5)), 0),
    (Floor("integer"), -(2**31)),
    (Ceil("big"), 2**62 + 1),
    (Floor("data__r"), -3),
    (Power("positive", 2), 49.0),
    (Power(2, Value(-1)), 0.5),
    (Power("money", 2), (-2.345) ** 2),
    (Power(Value(0), Value(0)), 1.0),
    (F("positive") ** 2, 49.0),
    (2 ** F("positive"), 128.0),
    (F("real") ** F("positive"), 4.5**7),
    (-F("positive"), -7),
    (-F("money"), D("2.345")),
    (-F("real"), -4.5),
    (-F("span"), dt.timedelta(hours=-1)),
    (-(F("positive") + 1), -8),
    (Sqrt(Value(2)), math.sqrt(2)),
    (Sqrt(Value(D("6.25"))), 2.5),
    (Sqrt(Value(0)), 0.0),
    (Exp(Value(1)), math.e),
    (Ln(Value(10)), math.log(10)),
    (Log(10, Value(1000)), 3.0),
    (Log(2, Value(8)), 3.0),
    (Log(2, Value(0.125)), -3.0),
    (Log(Value(D("0.1")), Value(1e-40)), 40.0),
    (Log(10, Value(2)), math.log10(2)),
]
OF_NULL: list[Expression] = [
    *(f("url__length") for f in (Abs, Sign, Round, Floor, Ceil, Sqrt, Exp, Ln)),
    Power("url__length", 2),
    Power(2, "url__length"),
    Log(10, "url__length"),
    Log("url__length", 10),
    Round("data__missing", 2),
    -F("url__length"),
]


async def test_functions_of_numbers(db: Any, half: Any) -> None:
    assert await differences(half, ROW, CASES) == []


async def test_functions_of_no_number_are_null(db: Any, half: Any) -> None:
    assert await differences(half, ROW, [(expression, None) for expression in OF_NULL]) == []


async def test_random_numbers_differ_and_lie_below_one(db: Any, half: Any) -> None:
    await half(Everything.objects).bulk_create([Everything() for _ in range(20)])
    rows = await half.rows(Everything.objects.values(a=Random(), b=Random()))
    found = {number for row in rows for number in row.values()}
    assert len(found) == 40
    assert all(type(number) is float and 0 <= number < 1 for number in found)


REFUSED = [
    (lambda: Abs("char"), r"Abs must be given a number, got Everything.char \(text\)"),
    (lambda: Round("flag"), "Round must be given a number"),
    (lambda: Floor("day"), "Floor must be given a number"),
    (lambda: Sqrt("span"), "Sqrt must be given a number"),
    (lambda: Power("real", "moment"), "Power must be given a number"),
    (lambda: F("char") ** 2, "Power must be given a number"),
    (lambda: Round("real", 1.5), "places must be a whole number from -30 to 30, got 1.5"),  # pyright: ignore[reportArgumentType] - a wrong type on purpose
    (lambda: Round("real", 31), "places must be a whole number from -30 to 30, got 31"),
    (lambda: Round("real", True), "places must be a whole number"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_number_is_refused_when_the_query_is_made(build: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Everything.objects.annotate(x=build())


RANGE = "A number must fit the range of its type"
POWER = "A power or root must have a real result"
LOGARITHM = "A logarithm must be taken of a number above zero"
FAILING: list[tuple[Expression, str]] = [
    (Abs(F("small") * 2**48), RANGE),
    (Sqrt(Value(-1)), POWER),
    (Power(-8, Value(1.5)), POWER),
    (Power(0, Value(-1)), POWER),
    (Power(10, Value(400)), RANGE),
    (Power(10, Value(-400)), RANGE),
    (F("big") ** 99, RANGE),
    (Exp(Value(1000)), RANGE),
    (Exp(Value(-1000)), RANGE),
    (Ln(Value(0)), LOGARITHM),
    (Ln("money"), LOGARITHM),
    (Log(10, Value(0)), LOGARITHM),
    (Log(-2, Value(8)), LOGARITHM),
    (Log(1, Value(8)), "A number cannot be divided by zero"),
    (Floor(Value(1e30)), RANGE),
    (Round(F("big") + 2**62 - 2, -9), RANGE),
]


@pytest.mark.parametrize(("expression", "message"), FAILING, ids=range(len(FAILING)))
async def test_a_number_without_a_result_is_a_data_error(
    db: Any, half: Any, expression: Expression, message: str
) -> None:
    await half(Everything.objects).create(**ROW)
    with pytest.raises(DataError, match=message):
        await half.rows(Everything.objects.annotate(x=expression))


async def test_a_sum_beyond_64_bits_is_a_data_error(db: Any, half: Any) -> None:
    await half(Everything.objects).bulk_create([Everything(big=2**63 - 1) for _ in range(2)])
    with pytest.raises(DataError, match="A number must fit the range of its type"):
        await half(Everything.objects).aggregate(x=Sum("big"))
