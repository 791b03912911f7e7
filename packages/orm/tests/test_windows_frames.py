"""Frames of windows, defaults of Lag and Lead, and what a window takes."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any, cast

import pytest
from orm_library import library
from orm_models import Author, Everything, Post

from treefold_orm import (
    Avg,
    Count,
    F,
    FieldError,
    FirstValue,
    GroupRange,
    Lag,
    LastValue,
    Lead,
    Lower,
    Max,
    NthValue,
    Ntile,
    Rank,
    RowRange,
    Sum,
    Value,
    ValueRange,
    Window,
)

D = decimal.Decimal
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
FIRST = dt.datetime(2026, 3, 24, 23, 59, 59, 999999, dt.UTC)
DAYS = (1, 2, 2, 5, 9)
NUMBERS = (10, 20, 20, 30, 50)


@pytest.fixture
def rows(db: Any) -> None:
    """Five rows, of which two are equal but for their `positive`."""
    for place, (day, number) in enumerate(zip(DAYS, NUMBERS, strict=True)):
        Everything.objects.create(
            positive=place,
            integer=number,
            real=number / 10,
            money=D(number) / 100,
            day=FIRST.date() + day * DAY,
            moment=FIRST + day * DAY,
            time=dt.time(day, 30),
            span=dt.timedelta(hours=day),
        )


def decimals(*numbers: str) -> list[decimal.Decimal]:
    return [D(number) for number in numbers]


def over(frame: Any, *order: Any, function: Any = None) -> Window:
    return Window(function or Sum("integer"), order_by=order or ("integer",), frame=frame)


def test_a_window_takes_one_term_or_several(rows: None) -> None:
    several = Window(Sum("integer"), partition_by=["day"], order_by=["-integer"])
    term = Window(expression=Sum("integer"), partition_by=F("day"), order_by=F("integer").desc())
    found = Everything.objects.annotate(a=several, b=term).values_list("a", "b")
    assert len(found) == len(NUMBERS)
    assert all(a == b for a, b in found)
    assert len({a for a, _ in found}) > 1


LATE = Sum("integer", filter=F("positive") > 1)
FRAMES: list[tuple[Window, list[Any]]] = [
    (over(RowRange(-1, 0), "positive"), [10, 30, 40, 50, 80]),
    (over(RowRange(0, 1), "positive"), [30, 40, 50, 80, 50]),
    (over(RowRange(-1, 1), "positive"), [30, 50, 70, 100, 80]),
    (over(RowRange(None, 0), "positive"), [10, 30, 50, 80, 130]),
    (over(RowRange(0), "positive"), [130, 120, 100, 80, 50]),
    (over(RowRange(-3, -1), "positive"), [None, 10, 30, 50, 70]),
    (over(RowRange(1, 2), "positive"), [40, 50, 80, 50, None]),
    (over(RowRange(-2, 2, exclude="current"), "positive"), [40, 60, 110, 90, 50]),
    (over("rows_to_current", "positive"), [10, 30, 50, 80, 130]),
    (over("all", "positive"), [130] * 5),
    (over("", "integer"), [10, 50, 50, 80, 130]),
    (over(GroupRange(-1, 0)), [10, 50, 50, 70, 80]),
    (over(GroupRange(0, 0)), [10, 40, 40, 30, 50]),
    (over(GroupRange(0, 0, exclude="group")), [None] * 5),
    (over(GroupRange(None, 0, exclude="ties")), [10, 30, 30, 80, 130]),
    (over(ValueRange(-10, 0)), [10, 50, 50, 70, 50]),
    (over(ValueRange(None, 10)), [50, 80, 80, 80, 130]),
    (over(ValueRange(0, 0)), [10, 40, 40, 30, 50]),
    (over(ValueRange()), [130] * 5),
    (over(ValueRange(-1, 0), "-integer"), [10, 40, 40, 30, 50]),
    (over(ValueRange(-10, 0), "-integer"), [50, 70, 70, 30, 50]),
    (over(ValueRange(-1.0, 0), "real"), [10, 50, 50, 70, 50]),
    (over(ValueRange(-1, 0), "real"), [10, 50, 50, 70, 50]),
    (over(ValueRange(D("-0.1"), 0), "money"), [10, 50, 50, 70, 50]),
    (over(ValueRange(-1, 0), F("money") * 10), [10, 50, 50, 70, 50]),
    (over(ValueRange(-3 * DAY, dt.timedelta(0)), "day"), [10, 50, 50, 70, 50]),
    (over(ValueRange(-3 * DAY, 0 * DAY), "moment"), [10, 50, 50, 70, 50]),
    (over(ValueRange(-4 * DAY, 4 * DAY), "moment"), [80, 80, 80, 130, 80]),
    (over(ValueRange(-1 * HOUR, 3 * HOUR), "time"), [50, 80, 80, 30, 50]),
    (over(ValueRange(-1 * HOUR, 3 * HOUR), "span"), [50, 80, 80, 30, 50]),
    (
        over(RowRange(-1, 0), "positive", function=Avg("money")),
        decimals("0.100000", "0.150000", "0.200000", "0.250000", "0.400000"),
    ),
    (over(RowRange(-1, 0), "positive", function=Count("id")), [1, 2, 2, 2, 2]),
    (over(RowRange(-1, 0), "positive", function=LATE), [None, None, 20, 50, 80]),
    (over(RowRange(-1, 1), "positive", function=FirstValue("integer")), [10, 10, 20, 20, 30]),
    (over(RowRange(-1, 1), "positive", function=LastValue("integer")), [20, 20, 30, 50, 50]),
    (over(RowRange(-1, 1), "positive", function=NthValue("integer", 3)), [None, 20, 30, 50, None]),
    (over("all", "positive", function=NthValue("money", 4)), [D("0.300")] * 5),
    (over("", "positive", function=NthValue("integer", 2)), [None, 20, 20, 20, 20]),
    (over("", "positive", function=Lag("integer")), [None, 10, 20, 20, 30]),
    (over("", "positive", function=Lag("integer", 2, 0)), [0, 0, 10, 20, 20]),
    (over("", "positive", function=Lag("integer", default="positive")), [0, 10, 20, 20, 30]),
    (
        over("", "positive", function=Lag("money", default=0)),
        decimals("0.000", "0.100", "0.200", "0.200", "0.300"),
    ),
    (
        over("", "positive", function=Lead("integer", default="money")),
        decimals("20.000", "20.000", "30.000", "50.000", "0.500"),
    ),
    (over("", "positive", function=Lead(Lower("char"), default=Value("x"))), [None] * 4 + ["x"]),
    (over("", "positive", function=Ntile(2)), [1, 1, 1, 2, 2]),
]


async def test_frames_of_windows(db: Any, rows: None, half: Any) -> None:
    named = {f"w{place}": window for place, (window, _) in enumerate(FRAMES)}
    found = await half.rows(Everything.objects.order_by("positive").values(**named))
    for place, (_, wanted) in enumerate(FRAMES):
        assert [row[f"w{place}"] for row in found] == wanted, f"case {place}"


def test_equal_frames_share_a_plan_and_their_bounds_are_bound(db: Any, rows: None) -> None:
    before = len(db.plans)
    for number in (1, 2, 3):
        found = Everything.objects.order_by("positive").values(w=over(RowRange(-number, 0)))
        assert "7" not in found.explain_sql()
        assert len(list(found)) == 5
    assert len(db.plans) - before == 1


async def test_windows_over_groups(db: Any, half: Any) -> None:
    await library(half)
    groups = Post.objects.values("views").annotate(n=Count("id"), likes=Sum("comments__likes"))
    running = groups.annotate(
        total=Window(Sum("n"), order_by="views"), rank=Window(Rank(), order_by="-n")
    )
    found = await half.rows(running.order_by("views"))
    assert [(row["views"], row["n"], row["total"], row["rank"]) for row in found] == [
        (1, 1, 1, 2),
        (5, 1, 2, 2),
        (10, 2, 4, 1),
    ]


async def test_windows_take_columns_of_related_rows(db: Any, half: Any) -> None:
    await library(half)
    age = Window(Max("author__age"), partition_by="author", order_by="title")
    found = await half.rows(Post.objects.annotate(age=age).order_by("title"))
    assert [post.age for post in found] == [30, 30, 30, 50]


REFUSED: list[tuple[Any, str]] = [
    (lambda: RowRange(1, -1), "RowRange must not end before it starts, got 1 to -1"),
    (lambda: RowRange(0.5), "RowRange: bounds must be a whole number"),
    (lambda: RowRange(True), "RowRange: bounds must be a whole number"),
    (lambda: ValueRange("1"), "bounds must be numbers or timedeltas, got '1'"),
    (
        lambda: RowRange(exclude=cast("Any", "rows")),
        "exclude must be one of current, group, ties, got 'rows'",
    ),
    (lambda: over("rows"), "frame='rows' is not 'rows_to_current' or 'all'"),
    (lambda: Window(Sum("integer"), frame=GroupRange()), "must have an order_by in its Window"),
    (lambda: Window(Sum("integer"), frame=ValueRange(-1)), "must have an order_by of one term"),
    (lambda: over(ValueRange(-1), "integer", "id"), "an order_by of one term in its Window, got 2"),
    (lambda: over(ValueRange(-1), "char"), "order its Window by a number or a date"),
    (lambda: over(ValueRange(-1), "day"), "takes a timedelta, not int"),
    (lambda: over(ValueRange(-DAY), "integer"), "takes an int, not timedelta"),
    (lambda: over(ValueRange(D("0.00001")), "money"), "more than 3 decimal places"),
    (lambda: Window(Lower("char")), "must be given an aggregate or a function of windows"),
    (lambda: Window(Sum("integer", distinct=True)), "cannot aggregate distinct values"),
    (lambda: Lag("integer", 0), "Lag: offset must be a whole number of at least 1, got 0"),
    (
        lambda: Lead("integer", cast("Any", F("id"))),
        "Lead: offset must be a whole number of at least 1",
    ),
    (lambda: Window(Lag("integer", default="day")), "have no type in common"),
    (lambda: NthValue("integer", 0), "NthValue: nth must be a whole number of at least 1, got 0"),
    (lambda: Ntile(0), "Ntile: buckets must be a whole number of at least 1, got 0"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_windows_that_cannot_be_are_refused_when_the_query_is_made(
    build: Any, message: str
) -> None:
    from treefold_orm import ORMError

    with pytest.raises(ORMError, match=message):
        Everything.objects.annotate(w=build())


def test_functions_of_windows_stand_in_windows_only() -> None:
    with pytest.raises(FieldError, match=r"Rank\(\) must stand in a Window"):
        Author.objects.annotate(r=Rank())
