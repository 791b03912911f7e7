"""Expressions among the values of `in` and `range`."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from orm_library import library
from orm_models import Author, Everything, Post

from treefold_orm import Coalesce, F, FieldError, Lower, Q, Round, Value

D = decimal.Decimal


@pytest.fixture
def rows(db: Any) -> None:
    moment = dt.datetime(2026, 5, 14, 12, tzinfo=dt.UTC)
    for number, small in ((1, 1), (2, 5), (3, None)):
        Everything.objects.create(
            integer=number,
            small=small,
            money=D(number),
            real=number + 0.5,
            char="x" * number,
            text="X",
            day=dt.date(2026, 5, 13 + number),
            moment=moment,
            data={"n": number},
        )


FILTERS: list[tuple[Any, list[int]]] = [
    (Q(integer__in=[F("small"), 3]), [1, 3]),
    (Q(integer__in=[F("small")]), [1]),
    (Q(integer__in=(F("small"), F("money"))), [1, 2, 3]),
    (Q(integer__in=[F("small"), None]), [1]),
    (~Q(integer__in=[F("small"), 3]), [2]),
    (Q(money__in=[F("integer")]), [1, 2, 3]),
    (Q(money__in=[F("small"), D("2.0")]), [1, 2]),
    (Q(char__in=[Lower("text"), "xx"]), [1, 2]),
    (Q(integer__range=(F("small"), 9)), [1]),
    (Q(integer__range=[1, F("small")]), [1, 2]),
    (Q(integer__range=(F("small") - 4, F("small") - 1)), [2]),
    (Q(money__range=(Round("real"), F("integer") + 1)), []),
    (Q(real__range=(F("money"), F("integer") + 1)), [1, 2, 3]),
    (Q(day__range=(F("moment"), dt.date(2026, 5, 15))), [2]),
    (Q(moment__date__in=[F("day")]), [1]),
    (Q(data__n__in=[F("small"), 2]), [1, 2]),
    (Q(data__n__range=(F("small"), 2)), [1]),
    (Everything.small.in_([F("integer"), 5]), [1, 2]),
    (Everything.integer.between(F("small"), 5), [1]),
]


@pytest.mark.parametrize(("condition", "wanted"), FILTERS, ids=range(len(FILTERS)))
async def test_values_may_be_expressions(
    db: Any, rows: None, half: Any, condition: Any, wanted: list[int]
) -> None:
    found = Everything.objects.filter(condition).order_by("integer")
    assert [row.integer for row in await half.rows(found)] == wanted


async def test_keywords_of_filter_take_them_too(db: Any, rows: None, half: Any) -> None:
    assert await half(Everything.objects.filter(integer__in=[F("small"), 3])).count() == 2
    noted = Everything.objects.annotate(x=F("integer") * 2)
    assert await half(noted.filter(x__in=[F("small") * 2, 4])).count() == 2
    assert await half(noted.filter(x__range=(F("small"), Value(2)))).count() == 1


async def test_they_speak_of_the_same_related_row(db: Any, half: Any) -> None:
    await library(half)
    same = Author.objects.filter(posts__views__in=[F("age"), 10], posts__title="a1")
    assert await half(same).count() == 0
    other = Author.objects.filter(posts__views__range=(F("age") - 30, 1), posts__title="a1")
    assert await half(other).count() == 1
    assert await half(Post.objects.filter(author__age__in=[F("views") * 10])).count() == 1


async def test_binary_values_have_no_order(db: Any, half: Any) -> None:
    await half(Everything.objects).bulk_create([Everything(blob=b"z"), Everything()])
    noted = Everything.objects.annotate(b=Coalesce("blob", Value(b"x")))
    for values, count in (([b"y"], 0), ([b"x"], 1), ([F("blob"), b"x"], 2)):
        assert await half(noted.filter(b__in=values)).count() == count
    with pytest.raises(FieldError, match="gt cannot compare binary values"):
        noted.filter(b__gt=b"y")


def test_a_range_of_expressions_has_two_ends() -> None:
    with pytest.raises(FieldError, match="range must be given two values, got 3"):
        Everything.objects.filter(integer__range=(F("small"), 1, 2))
