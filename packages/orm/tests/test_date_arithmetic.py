"""Arithmetic on points in time and spans: the same values on both databases, to the microsecond."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Everything

from treefold_orm import (
    Avg,
    Exists,
    Expression,
    F,
    FieldError,
    FieldValueError,
    Max,
    Model,
    OuterRef,
    Sum,
    Trunc,
    Value,
    acreate_all,
    create_all,
    fields,
)

D = dt.timedelta
TICK = D(microseconds=1)


class Event(Model):
    """From one moment to another."""

    number = fields.IntegerField()
    starts = fields.DateTimeField()
    ends = fields.DateTimeField(null=True)
    first = fields.DateField(null=True)
    last = fields.DateField(null=True)
    opens = fields.TimeField(null=True)
    closes = fields.TimeField(null=True)
    span = fields.DurationField(null=True)


def at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


ROWS: list[dict[str, Any]] = [
    {
        "starts": at(2026, 3, 28, 23, 59, 59, 999999),
        "ends": at(2026, 3, 29, 4, 0, 0, 1),
        "first": dt.date(2026, 2, 27),
        "last": dt.date(2026, 3, 2),
        "opens": dt.time(8, 30, 0, 250000),
        "closes": dt.time(22, 0),
        "span": D(hours=5, microseconds=3),
    },
    {
        "starts": at(1969, 12, 31, 23, 59, 59, 1),
        "ends": at(1969, 12, 31, 23, 59, 58, 999999),
        "first": dt.date(1969, 12, 31),
        "last": dt.date(1900, 1, 1),
        "opens": dt.time(0, 0),
        "closes": dt.time(23, 59, 59, 999999),
        "span": -D(days=400, microseconds=1),
    },
    {"starts": at(2024, 2, 28, 12)},
    {
        # the very first and last of a type stand for infinity in PostgreSQL's driver
        "starts": at(1, 1, 3),
        "ends": at(9999, 12, 30, 23, 59, 59, 999999),
        "first": dt.date(1, 1, 3),
        "last": dt.date(9999, 10, 30),
        "opens": dt.time(12, 0),
        "closes": dt.time(11, 0),
        "span": D(0),
    },
]


async def seed(half: Any) -> None:
    await half.call(lambda: create_all(Event), lambda: acreate_all(Event))
    await half(Event.objects).bulk_create(
        [Event(number=place, **values) for place, values in enumerate(ROWS)]
    )


def clock(value: dt.time, span: dt.timedelta) -> dt.time:
    return (dt.datetime.combine(dt.date(2000, 1, 1), value) + span).time()


def since_midnight(value: dt.time) -> dt.timedelta:
    return dt.datetime.combine(dt.date.min, value) - dt.datetime.min


SPANS = [TICK, -TICK, D(seconds=1), D(days=1, microseconds=-1), D(days=-3, hours=5), D(0)]

EXPRESSIONS: list[tuple[Expression, Callable[[Any], Any]]] = [
    (F("ends") - F("starts"), lambda e: e.ends - e.starts),
    (F("starts") - F("ends"), lambda e: e.starts - e.ends),
    (F("ends") - at(2000, 1, 1, 0, 0, 0, 5), lambda e: e.ends - at(2000, 1, 1, 0, 0, 0, 5)),
    (at(2000, 1, 1) - F("starts"), lambda e: at(2000, 1, 1) - e.starts),
    (F("last") - F("first"), lambda e: e.last - e.first),
    (dt.date(2020, 2, 29) - F("first"), lambda e: dt.date(2020, 2, 29) - e.first),
    (F("closes") - F("opens"), lambda e: since_midnight(e.closes) - since_midnight(e.opens)),
    (F("span") + F("span"), lambda e: e.span + e.span),
    (F("span") - D(hours=1), lambda e: e.span - D(hours=1)),
    (F("span") * 3, lambda e: e.span * 3),
    (2 * F("span"), lambda e: 2 * e.span),
    ((F("ends") - F("starts")) - F("span"), lambda e: e.ends - e.starts - e.span),
    (F("starts") + (F("ends") - F("starts")), lambda e: e.ends),
    (F("starts") + D(hours=1) + D(hours=-1), lambda e: e.starts),
    (F("opens") + D(hours=3), lambda e: clock(e.opens, D(hours=3))),
    (
        F("opens") - D(hours=9, microseconds=1),
        lambda e: clock(e.opens, -D(hours=9, microseconds=1)),
    ),
    (F("first") + D(days=40), lambda e: e.first + D(days=40)),
    (Trunc(F("starts") + D(days=2), "day"), lambda e: day_of(e.starts + D(days=2))),
]


def day_of(value: dt.datetime) -> dt.datetime:
    return value.replace(hour=0, minute=0, second=0, microsecond=0)


async def test_arithmetic_gives_what_python_gives(empty: Any, half: Any) -> None:
    await seed(half)
    for place, (expression, wanted) in enumerate(EXPRESSIONS):
        rows = await half.rows(Event.objects.order_by("number").annotate(x=expression))
        for row in rows:
            try:
                expected = wanted(row)
            except TypeError:  # a part of it is None
                expected = None
            assert row.x == expected, (place, row.number)
            assert type(row.x) is type(expected), (place, row.number)


async def test_points_move_by_spans_and_keep_every_microsecond(empty: Any, half: Any) -> None:
    await seed(half)
    middle = Event.objects.filter(number__lt=3).order_by("number")
    for span in SPANS:
        for expression, sign in ((F("starts") + span, 1), (F("starts") - span, -1)):
            found = await half.rows(middle.annotate(x=expression))
            assert [row.x for row in found] == [row.starts + sign * span for row in found]
    found = await half.rows(middle.annotate(x=F("starts") + F("span"), y=D(1) + F("starts")))
    assert [row.x for row in found] == [row.span and row.starts + row.span for row in found]
    assert [row.y for row in found] == [row.starts + D(1) for row in found]


async def test_a_date_moved_by_hours_is_the_day_it_comes_to(empty: Any, half: Any) -> None:
    await seed(half)
    row = await half(
        Event.objects.filter(number=0).annotate(
            up=F("first") + D(hours=36),
            down=F("first") - D(hours=1),
            still=F("first") + D(hours=23),
        )
    ).get()
    assert row.up == dt.date(2026, 2, 28)
    assert row.down == dt.date(2026, 2, 26)
    assert row.still == row.first


async def test_arithmetic_in_conditions_order_and_aggregates(empty: Any, half: Any) -> None:
    await seed(half)

    async def numbers(query: Any) -> list[int]:
        return [row.number for row in await half.rows(query)]

    events = Event.objects.order_by("number")
    assert await numbers(events.filter(F("ends") - F("starts") > D(hours=4))) == [0, 3]
    assert await numbers(events.exclude(F("ends") - F("starts") > D(hours=4))) == [1, 2]
    assert await numbers(events.filter(ends__lt=F("starts") + D(hours=5))) == [0, 1]
    assert await numbers(events.filter(ends=F("starts") + D(hours=4, microseconds=2))) == [0]
    assert await numbers(events.filter(span__gt=F("ends") - F("starts"))) == [0]
    assert await numbers(events.filter(last__gte=F("first") + D(days=3))) == [0, 3]
    assert await numbers(events.annotate(x=F("last") - F("first")).filter(x=D(days=3))) == [0]
    assert await numbers(events.annotate(x=F("ends") - F("starts")).filter(x__isnull=True)) == [2]
    by_length = Event.objects.order_by((F("ends") - F("starts")).desc(nulls="last"))
    assert await numbers(by_length) == [3, 0, 1, 2]
    later = Event.objects.filter(starts__gt=OuterRef("starts") + D(days=700))
    assert await numbers(events.filter(Exists(later))) == [1, 2, 3]
    early = events.filter(number__lt=3)
    found = await half(early).aggregate(
        total=Sum(F("ends") - F("starts")),
        middle=Avg(F("ends") - F("starts")),
        top=Max(F("starts") + D(days=1)),
    )
    assert found["total"] == D(hours=4)
    assert found["middle"] == D(hours=2)
    assert found["top"] == ROWS[0]["starts"] + D(days=1)


async def test_an_update_moves_points_in_the_database(empty: Any, half: Any) -> None:
    await seed(half)
    early = Event.objects.filter(number__lt=3)
    assert (
        await half(early).update(
            ends=F("starts") + D(minutes=90, microseconds=7),
            starts=F("starts") - D(days=1),
            first=F("first") + D(days=2),
            span=F("ends") - F("starts"),
        )
        == 3
    )
    for row, before in zip(await half.rows(early.order_by("number")), ROWS, strict=False):
        assert row.starts == before["starts"] - D(days=1)
        assert row.ends == before["starts"] + D(minutes=90, microseconds=7)
        assert row.first == (before["first"] + D(days=2) if "first" in before else None)
        assert row.span == (before["ends"] - before["starts"] if "ends" in before else None)


async def test_a_day_has_24_hours_whatever_the_clocks_of_the_server_do(
    half: Any, place: Any, engine: str
) -> None:
    if engine == "postgres":
        place.configure(server_settings={"timezone": "Europe/Berlin"})
    else:
        place.configure()
    before = at(2026, 3, 28, 12)  # clocks go forward in the night that follows
    await half(Everything.objects).create(integer=1, moment=before)
    moved = Everything.objects.annotate(x=F("moment") + D(days=1), y=F("moment") - D(days=-1))
    row = await half(moved).get()
    assert (row.x, row.y) == (before + D(hours=24), before + D(hours=24))


WRONG: list[Callable[[], Expression]] = [
    lambda: F("starts") + F("ends"),
    lambda: F("starts") + 5,
    lambda: F("first") + 5,
    lambda: F("starts") * 2,
    lambda: F("starts") - F("first"),
    lambda: F("span") - F("starts"),
    lambda: F("span") * F("span"),
    lambda: 2 / F("span"),
    lambda: F("span") % 2,
    lambda: F("opens") - F("starts"),
]


@pytest.mark.parametrize("make", WRONG, ids=range(len(WRONG)))
def test_what_has_no_meaning_is_refused(make: Any) -> None:
    with pytest.raises(FieldError, match="has no meaning: add or subtract a timedelta"):
        Event.objects.annotate(x=make())


def test_a_point_without_a_zone_is_refused() -> None:
    with pytest.raises(FieldValueError, match="aware datetime"):
        Event.objects.annotate(x=F("starts") - Value(dt.datetime(2026, 1, 1)))  # noqa: DTZ001, RUF100 - what is refused
