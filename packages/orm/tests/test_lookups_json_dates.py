"""Lookups into JSON documents and by parts of dates, on both databases and in both halves."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from orm_models import Color, Everything

MOMENT = dt.datetime(2026, 5, 14, 13, 45, 59, 999999, tzinfo=dt.UTC)

JSON: list[tuple[dict[str, Any], list[int]]] = [
    ({"data__a": 1}, [0]),
    ({"data__a": "1"}, [1]),
    ({"data__a": True}, [2]),
    ({"data__a": None}, [3]),
    ({"data__a__isnull": True}, [7, 8]),
    ({"data__a__b": 5}, [4]),
    ({"data__a__b__gt": 4}, [4]),
    ({"data__a__gte": 1}, [0]),
    ({"data__a__0": 7}, [5]),
    ({"data__a": [7, 8]}, [5]),
    ({"data__a": {"b": 5}}, [4]),
    ({"data": {"a": 1}}, [0]),
    ({"data__a__contains": "1"}, [1]),
    ({"data__a__icontains": "X"}, [6]),
    ({"data__has_key": "c"}, [7]),
    ({"data__a__has_key": "b"}, [4]),
    ({"data__a'b": 1}, []),
    ({'data__x"y': 1}, []),
    ({"data__a]b[$.": 1}, []),
    ({"data__isnull": True}, [8]),
]


@pytest.mark.parametrize(("lookups", "wanted"), JSON, ids=range(len(JSON)))
async def test_json_paths(db: Any, half: Any, lookups: dict[str, Any], wanted: list[int]) -> None:
    values: list[Any] = [
        {"a": 1},
        {"a": "1"},
        {"a": True},
        {"a": None},
        {"a": {"b": 5}},
        {"a": [7, 8]},
        {"a": "xyz"},
        {"c": 0},
        None,
    ]
    for place, value in enumerate(values):
        await half(Everything.objects).create(integer=place, data=value)
    query = Everything.objects.filter(**lookups).order_by("integer")
    assert [e.integer for e in await half.rows(query)] == wanted
    others = [e.integer for e in await half.rows(Everything.objects.exclude(**lookups))]
    assert sorted([*wanted, *others]) == list(range(9))


DATES = [
    {"moment__year": 2026},
    {"moment__month__gte": 5},
    {"moment__date": dt.date(2026, 5, 14)},
    {"moment__hour__in": [1, 13]},
    {"moment__time__gt": dt.time(13, 45)},
    {"moment__lt": MOMENT + dt.timedelta(microseconds=1)},
    {"moment": MOMENT.astimezone(dt.timezone(dt.timedelta(hours=9)))},
    {"day__week": 1},
    {"day__gt": "2025-12-31"},
    {"time__minute": 30},
    {"span__gt": dt.timedelta(hours=1)},
    {"color": Color.RED},
    {"color": "red"},
    {"color__in": [Color.RED]},
    {"color__startswith": "r"},
]


@pytest.mark.parametrize("lookups", DATES, ids=range(len(DATES)))
async def test_dates_and_choices_in_lookups(db: Any, half: Any, lookups: dict[str, Any]) -> None:
    await half(Everything.objects).create(
        moment=MOMENT,
        day=dt.date(2026, 1, 1),
        time=dt.time(12, 30),
        span=dt.timedelta(hours=2),
        color=Color.RED,
    )
    await half(Everything.objects).create()
    assert await half(Everything.objects.filter(**lookups)).count() == 1
