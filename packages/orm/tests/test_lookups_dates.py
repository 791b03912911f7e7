"""Lookups by parts of dates, on both databases and in both halves."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from orm_models import Color, Everything

MOMENT = dt.datetime(2026, 5, 14, 13, 45, 59, 999999, tzinfo=dt.UTC)

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
