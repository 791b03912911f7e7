"""Functions of an OuterRef, whose type is known only where its query enters another one."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from orm_models import Everything

from treefold_orm import (
    Abs,
    Case,
    Cast,
    Coalesce,
    Concat,
    Expression,
    Extract,
    F,
    FieldError,
    Floor,
    Greatest,
    Least,
    Lower,
    NullIf,
    OuterRef,
    Power,
    Round,
    Subquery,
    Trunc,
    Value,
    When,
    fields,
)

D = decimal.Decimal
MOMENT = dt.datetime(2026, 5, 14, 23, 59, 59, 999999, tzinfo=dt.UTC)
ROW = {"integer": 3, "real": 2.5, "money": D("-2.345"), "char": "Ab", "moment": MOMENT}
CENTS = fields.DecimalField(max_digits=8, decimal_places=2)
MILLS = fields.DecimalField(max_digits=9, decimal_places=4)
CASES: list[tuple[Expression, Any]] = [
    (Round(OuterRef("money"), 2), D("-2.35")),
    (Round(OuterRef("real")), 3.0),
    (Round(OuterRef("money") * OuterRef("money"), 1), D("5.5")),
    (Floor(OuterRef("money")), D("-3")),
    (Abs(OuterRef("money")), D("2.345")),
    (Power(OuterRef("money"), 1), -2.345),
    (Lower(OuterRef("char")), "ab"),
    (Concat(OuterRef("integer"), Value("/"), OuterRef("money")), "3/-2.345"),
    (Cast(OuterRef("money"), int), -2),
    (Cast(OuterRef("money"), CENTS), D("-2.35")),
    (Cast(Coalesce("integer", OuterRef("money")), str), "3.000"),
    (Round(Coalesce(OuterRef("real"), "integer")), 3.0),
    (Round(Coalesce("integer", OuterRef("real"))), 3.0),
    (Floor(Coalesce(OuterRef("money"), "integer")), D("-3")),
    (Abs(Coalesce(OuterRef("money"), "integer")), D("2.345")),
    (Abs(NullIf(OuterRef("money"), "integer")), D("2.345")),
    (Abs(Least(OuterRef("money") + F("integer"), F("integer"))), D("0.655")),
    (Round(Case(When(integer=3, then=OuterRef("money")), default=F("integer"))), D("-2")),
    (
        Case(When(integer=3, then=OuterRef("money")), default=F("integer"), output_field=MILLS),
        D("-2.3450"),
    ),
    (Coalesce(OuterRef("integer"), F("integer"), output_field=MILLS), D("3.0000")),
    (Coalesce(OuterRef("money"), 1.5), -2.345),
    (Cast(OuterRef("moment"), dt.date), dt.date(2026, 5, 14)),
    (Greatest(OuterRef("money"), "integer"), D("3.000")),
    (Extract(OuterRef("moment"), "week_day"), 5),
    (Trunc(OuterRef("moment"), "day"), MOMENT.replace(hour=0, minute=0, second=0, microsecond=0)),
]


@pytest.mark.parametrize(("expression", "wanted"), CASES, ids=range(len(CASES)))
async def test_functions_of_outer_columns(
    db: Any, half: Any, expression: Expression, wanted: Any
) -> None:
    await half(Everything.objects).create(**ROW)
    inner = Subquery(Everything.objects.values(y=expression)[:1])
    assert await half.rows(Everything.objects.values(x=inner)) == [{"x": wanted}]


REFUSED = [
    (lambda: Lower(OuterRef("integer")), r"Lower must be given text, got Everything.integer"),
    (lambda: Round(OuterRef("char")), "Round must be given a number"),
    (lambda: Concat(OuterRef("moment")), "Concat must be given text"),
    (lambda: Cast(OuterRef("moment"), int), "cannot be cast to int"),
    (lambda: Extract(OuterRef("char"), "year"), "Extract must be given a date or time"),
    (lambda: Trunc(OuterRef("char"), "year"), "Trunc must be given a date or a datetime"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_outer_columns_of_another_type_are_refused(build: Any, message: str) -> None:
    inner = Everything.objects.values(y=build())
    with pytest.raises(FieldError, match=message):
        Everything.objects.values(x=Subquery(inner[:1]))
