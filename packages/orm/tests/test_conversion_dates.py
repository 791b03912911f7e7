"""Dates beside datetimes: compared as midnight UTC, stored as the column keeps them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from orm_models import Everything

from treefold_orm import (
    Case,
    Coalesce,
    Exists,
    F,
    FieldError,
    Greatest,
    Now,
    NullIf,
    OuterRef,
    Subquery,
    Trunc,
    Value,
    When,
)

DAY = dt.date(2026, 3, 1)


def at(day: int, hour: int = 0, *rest: int) -> dt.datetime:
    return dt.datetime(2026, 3, day, hour, *rest, tzinfo=dt.UTC)


MOMENTS = [at(1), at(1, 0, 0, 0, 1), at(1, 23, 59, 59, 999999), at(2), None]


def seed() -> None:
    Everything.objects.bulk_create(
        [
            Everything(integer=place, day=DAY, moment=moment, char="x")
            for place, moment in enumerate(MOMENTS)
        ]
    )


def numbers(*conditions: Any, **lookups: Any) -> list[int | None]:
    found = Everything.objects.filter(*conditions, **lookups).order_by("integer")
    return [row.integer for row in found]


def values(expression: Any) -> list[Any]:
    query: Any = Everything.objects.annotate(x=expression).order_by("integer")
    return [row.x for row in query]


COMPARED: list[tuple[dict[str, Any], list[int]]] = [
    ({"moment": F("day")}, [0]),
    ({"day": F("moment")}, [0]),
    ({"moment__gt": F("day")}, [1, 2, 3]),
    ({"day__lt": F("moment")}, [1, 2, 3]),
    ({"day__gte": F("moment")}, [0]),
    ({"moment__date": F("day")}, [0, 1, 2]),
    ({"moment__lt": F("day") + dt.timedelta(days=1)}, [0, 1, 2]),
    ({"moment__day": F("integer") + 1}, [0]),
    ({"day__year": F("moment__year")}, [0, 1, 2, 3]),
    ({"day__in": Everything.objects.values("moment")}, [0, 1, 2, 3, 4]),
    ({"moment__in": Everything.objects.values("day")}, [0]),
    ({"moment__in": Everything.objects.values("day").distinct()}, [0]),
]


@pytest.mark.parametrize(("lookups", "wanted"), COMPARED, ids=range(len(COMPARED)))
def test_a_date_is_midnight_beside_a_datetime(
    db: Any, lookups: dict[str, Any], wanted: list[int]
) -> None:
    seed()
    assert numbers(**lookups) == wanted


def test_expressions_and_outer_rows_compare_as_datetimes(db: Any) -> None:
    seed()
    assert numbers(Trunc("moment", "day") > F("day")) == [3]
    assert numbers(Coalesce("moment", "day") > F("day")) == [1, 2, 3]
    later = Everything.objects.filter(moment__gt=OuterRef("day"), integer=OuterRef("integer"))
    assert numbers(Exists(later)) == [1, 2, 3]
    same = Everything.objects.filter(day=OuterRef("moment"), integer=4)
    assert numbers(Exists(same)) == [0]


def test_a_choice_of_date_and_datetime_is_a_datetime(db: Any) -> None:
    seed()
    assert values(Coalesce("moment", F("day"))) == [*MOMENTS[:4], at(1)]
    assert values(Greatest("moment", "day"))[:4] == MOMENTS[:4]
    assert values(NullIf("moment", "day")) == [None, *MOMENTS[1:]]
    chosen = Case(When(integer=0, then=F("day")), default=F("moment"))
    assert values(chosen) == MOMENTS


def test_a_union_of_date_and_datetime_is_of_datetimes(db: Any) -> None:
    seed()
    days = Everything.objects.values_list("day", flat=True)
    found = days.union(Everything.objects.filter(integer__lt=4).values_list("moment", flat=True))
    assert sorted(found) == MOMENTS[:4]
    both = Everything.objects.values_list("moment", flat=True).intersection(days)
    assert list(both) == [at(1)]


ASSIGNED: list[tuple[str, Any, list[Any]]] = [
    ("day", F("moment"), [DAY, DAY, DAY, dt.date(2026, 3, 2), None]),
    ("day", Trunc("moment", "month"), [DAY, DAY, DAY, DAY, None]),
    ("day", Value(at(5, 23, 59, 59, 999999)), [dt.date(2026, 3, 5)] * 5),
    ("day", Coalesce("moment", "day"), [DAY, DAY, DAY, dt.date(2026, 3, 2), DAY]),
    ("moment", F("day"), [at(1)] * 5),
    ("moment", Trunc("moment", "day"), [at(1), at(1), at(1), at(2), None]),
    ("moment", F("day") + dt.timedelta(days=2), [at(3)] * 5),
    ("moment", Value(DAY), [at(1)] * 5),
    ("moment", Subquery(Everything.objects.filter(integer=3).values("day")), [at(1)] * 5),
]


@pytest.mark.parametrize(("name", "value", "wanted"), ASSIGNED, ids=range(len(ASSIGNED)))
def test_an_update_stores_what_the_column_keeps(
    db: Any, name: str, value: Any, wanted: list[Any]
) -> None:
    seed()
    Everything.objects.update(**{name: value})
    found = list(Everything.objects.order_by("integer").values_list(name, flat=True))
    assert found == wanted
    assert [row.integer for row in Everything.objects.filter(**{name: wanted[0]})] != []


async def test_the_present_is_stored_in_columns_of_both_kinds(db: Any, half: Any) -> None:
    await half(Everything.objects).create(integer=1)
    before = dt.datetime.now(dt.UTC)
    await half(Everything.objects).update(day=Now(), moment=Now())
    row = await half(Everything.objects).get()
    assert row.day in {before.date(), dt.datetime.now(dt.UTC).date()}
    assert abs(row.moment - before) < dt.timedelta(minutes=1)
    assert await half(Everything.objects.filter(day=row.day, moment=row.moment)).exists()


REFUSED: list[Any] = [
    lambda: Everything.objects.filter(day=F("time")),
    lambda: Everything.objects.filter(moment=F("char")),
    lambda: Everything.objects.filter(F("moment") > F("span")),
    lambda: Everything.objects.annotate(x=Coalesce("day", "integer")),
    lambda: Everything.objects.filter(day__in=Everything.objects.values("char")),
    lambda: Everything.objects.values("day").union(Everything.objects.values("integer")),
]


@pytest.mark.parametrize("build", REFUSED, ids=range(len(REFUSED)))
def test_times_have_no_type_in_common_with_others(build: Any) -> None:
    with pytest.raises(FieldError, match=r"have no type in common: convert one with Cast\(\)"):
        build()


@pytest.mark.parametrize(
    "given", [{"day": F("time")}, {"time": F("moment")}, {"moment": F("char")}, {"char": F("day")}]
)
def test_an_update_with_another_kind_of_time_is_refused(db: Any, given: dict[str, Any]) -> None:
    with pytest.raises(FieldError, match=r"cannot be set to .*: convert it with Cast\(\)"):
        Everything.objects.update(**given)
