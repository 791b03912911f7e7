"""Coalesce, Greatest, Least and NullIf: operands of several types, and NULL among them."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import pytest
from orm_expressions import Case, differences
from orm_models import Color, Everything

from treefold_orm import Coalesce, F, Greatest, Least, NullIf, Value, fields

D = decimal.Decimal
UID = uuid.UUID(int=5)
MOMENT = dt.datetime(2026, 5, 14, 23, 59, 59, 999999, tzinfo=dt.UTC)
ROW = {
    "small": 3,
    "positive": 9,
    "big": 2**53 + 1,
    "real": 2.5,
    "money": D("3.500"),
    "char": "b",
    "slug": "a",
    "uid": UID,
    "day": dt.date(2026, 5, 14),
    "time": dt.time(1),
    "moment": MOMENT,
    "span": dt.timedelta(1),
    "data": {"n": 4, "s": "c", "b": True},
    "flag": False,
    "color": Color.RED,
}
MIDNIGHT = dt.datetime(2026, 5, 14, tzinfo=dt.UTC)

CASES: list[Case] = [
    (Coalesce("char"), "b"),
    (Coalesce("text", "slug"), "a"),
    (Coalesce("text", Value("none")), "none"),
    (Coalesce("text", "url"), None),
    (Coalesce("integer", 7), 7),
    (Coalesce("integer", "money"), D("3.500")),
    (Coalesce("money", "small"), D("3.500")),
    (Coalesce(NullIf("money", "money"), "small"), D("3.000")),
    (Coalesce(NullIf("money", "money"), 0), D("0.000")),
    (Coalesce(NullIf("money", "money"), D("0.1")), D("0.100")),
    (Coalesce("integer", "real"), 2.5),
    (Coalesce("small", "real"), 3.0),
    (Coalesce("day", "moment"), MIDNIGHT),
    (Coalesce("moment", "day"), MOMENT),
    (Coalesce("integer", "data__n"), 4),
    (Coalesce("url", "data__s"), "c"),
    (Coalesce("color", Value("none")), "red"),
    (Coalesce("color", "color"), Color.RED),
    (Coalesce("flag", True), False),
    (Coalesce("text", Everything.objects.values("char")[:1]), "b"),
    (Greatest("small", "positive"), 9),
    (Greatest("small", "integer", "positive"), 9),
    (Greatest("integer", "small"), 3),
    (Greatest("integer", "integer"), None),
    (Greatest("small", "money"), D("3.500")),
    (Greatest("money", 4), D("4.000")),
    (Greatest("small", "real", 2.75), 3.0),
    (Greatest("char", "slug", Value("A")), "b"),
    (Greatest("day", "moment"), MOMENT),
    (Greatest("data__n", "small"), 4),
    (Greatest("flag", True), True),
    (Greatest("span", "span"), dt.timedelta(1)),
    (Greatest("time", dt.time(0)), dt.time(1)),
    (Least("small", "money"), D("3.000")),
    (Least("integer", "small", "positive"), 3),
    (Least("url", "char"), "b"),
    (Least("day", "moment"), MIDNIGHT),
    (Least("big", F("real") * 2**55), float(2**53)),
    (NullIf("char", Value("b")), None),
    (NullIf("char", "slug"), "b"),
    (NullIf("text", "slug"), None),
    (NullIf("char", "text"), "b"),
    (NullIf("money", "small"), D("3.500")),
    (NullIf("money", F("small") + D("0.5")), None),
    (NullIf("money", D("3.5")), None),
    (NullIf("small", 3), None),
    (NullIf("color", Color.RED), None),
    (NullIf("uid", UID), None),
]


async def test_one_of_several_values(db: Any, half: Any) -> None:
    assert await differences(half, ROW, CASES) == []


REFUSED = [
    (lambda: Coalesce("small", "char"), r"Everything.small \(int\) and Everything.char \(text\)"),
    (lambda: Coalesce("small", Value("x")), "have no type in common: convert one with Cast"),
    (lambda: Coalesce("flag", "small"), "have no type in common"),
    (lambda: Coalesce("money", 0.5), "takes a Decimal, not float"),
    (lambda: Coalesce("small", "missing"), "has no field 'missing'"),
    (lambda: Coalesce(), "Coalesce must be given 1 operands, got 0"),
    (lambda: Greatest("small"), "Greatest must be given 2 operands, got 1"),
    (lambda: Greatest("day", "time"), "have no type in common"),
    (lambda: Greatest("data", "data__n"), "Greatest must be given values that have an order"),
    (lambda: Least("data__n", "data__m"), "Least must be given values that have an order"),
    (lambda: NullIf("uid", "char"), "have no type in common"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_operands_without_a_common_type_are_refused(build: Any, message: str) -> None:
    from treefold_orm import ORMError

    with pytest.raises(ORMError, match=message):
        Everything.objects.annotate(x=build())


async def test_a_choice_is_stored_and_compared_as_its_type(db: Any, half: Any) -> None:
    row = await half(Everything.objects).create(**ROW)
    chosen = Greatest("small", "money")
    found = Everything.objects.annotate(x=chosen)
    assert await half(found.filter(x=D("3.5"))).count() == 1
    assert await half(found.filter(x__gt=F("small"))).count() == 1
    assert await half(found.filter(x=F("money"))).count() == 1
    field = fields.DecimalField(max_digits=10, decimal_places=1)
    wide = Everything.objects.values(x=Coalesce("integer", 2, output_field=field))
    assert await half.rows(wide) == [{"x": D("2.0")}]
    assert await half(Everything.objects.filter(pk=row.pk)).update(money=Least("small", "money"))
    assert (await half(Everything.objects).get()).money == D("3.000")
