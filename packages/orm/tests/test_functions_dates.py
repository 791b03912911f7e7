"""Functions of dates and times, above all at the ends of days and years."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

import pytest
from orm_expressions import Case, differences
from orm_models import Everything, Stamped

from treefold_orm import Count, Extract, F, FieldError, Now, Trunc

UTC = dt.UTC
LAST = dt.time(23, 59, 59, 999999)
MOMENTS = [
    dt.datetime(2026, 5, 14, 23, 59, 59, 999999, UTC),
    dt.datetime(2026, 5, 16, 23, 59, 59, 999999, UTC),
    dt.datetime(2026, 5, 17, 23, 59, 59, 999999, UTC),
    dt.datetime(2027, 1, 3, 23, 59, 59, 999999, UTC),
    dt.datetime(2024, 12, 30, 0, 0, 0, 0, UTC),
    dt.datetime(2024, 2, 29, 12, 30, 29, 500000, UTC),
    dt.datetime(1, 1, 2, 0, 0, 0, 1, UTC),
    dt.datetime(9999, 12, 30, 23, 59, 59, 999999, UTC),
]


def midnight(day: int) -> dt.datetime:
    return dt.datetime.combine(dt.date.fromordinal(day), dt.time(0), UTC)


def dates(moment: dt.datetime) -> list[Case]:
    day = moment.date()
    week = day - dt.timedelta(days=day.weekday())
    month = day.replace(day=1)
    quarter = month.replace(month=(day.month - 1) // 3 * 3 + 1)
    found: list[Case] = []
    for name in ("moment", "day"):
        parts = {
            "year": day.year,
            "quarter": (day.month + 2) // 3,
            "month": day.month,
            "week": day.isocalendar().week,
            "day": day.day,
            "week_day": day.isoweekday() % 7 + 1,
            "iso_year": day.isocalendar().year,
            "iso_week_day": day.isoweekday(),
        }
        found += [(Extract(name, part), value) for part, value in parts.items()]  # pyright: ignore[reportArgumentType] - the names are literals
        found += [(F(f"{name}__{part}"), value) for part, value in parts.items()]
        found.append((Extract(name, "date"), day))
        cut = midnight if name == "moment" else dt.date.fromordinal
        units = {"year": day.replace(month=1, day=1), "quarter": quarter, "month": month}
        units |= {"week": week, "day": day}
        found += [(Trunc(name, unit), cut(value.toordinal())) for unit, value in units.items()]  # pyright: ignore[reportArgumentType] - the names are literals
    return found


def clocks(moment: dt.datetime) -> list[Case]:
    time = moment.time()
    found: list[Case] = []
    for name in ("moment", "time"):
        found += [
            (Extract(name, "hour"), time.hour),
            (Extract(name, "minute"), time.minute),
            (Extract(name, "second"), time.second),
            (Extract(name, "time"), time),
            (F(f"{name}__hour"), time.hour),
            (F(f"{name}__second"), time.second),
        ]
    return [
        *found,
        (F("moment__date"), moment.date()),
        (F("moment__time"), time),
        (Trunc("moment", "hour"), moment.replace(minute=0, second=0, microsecond=0)),
        (Trunc("moment", "minute"), moment.replace(second=0, microsecond=0)),
        (Trunc("moment", "second"), moment.replace(microsecond=0)),
    ]


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
async def test_parts_of_dates_and_times(db: Any, half: Any, moment: dt.datetime) -> None:
    row = {"moment": moment, "day": moment.date(), "time": moment.time()}
    assert await differences(half, row, [*dates(moment), *clocks(moment)]) == []


async def test_parts_of_no_date_are_null(db: Any, half: Any) -> None:
    cases = [*dates(MOMENTS[0]), *clocks(MOMENTS[0])]
    assert await differences(half, {}, [(expression, None) for expression, _ in cases]) == []


async def test_the_last_microsecond_belongs_to_its_day_in_lookups(db: Any, half: Any) -> None:
    await half(Everything.objects).create(moment=MOMENTS[2], time=LAST)
    lookups = {
        "moment__week": 20,
        "moment__week_day": 1,
        "moment__date": dt.date(2026, 5, 17),
        "moment__time": LAST,
        "moment__day": 17,
        "time__second": 59,
    }
    for name, value in lookups.items():
        assert await half(Everything.objects.filter(**{name: value})).count() == 1, name


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
WRONG: list[Any] = [object(), "Europe/Berlin\0", 10**30, "\ud800"]
ZONES = [
    BERLIN,
    zoneinfo.ZoneInfo("Asia/Kathmandu"),
    dt.timezone(dt.timedelta(hours=-9, minutes=-30)),
    UTC,
]


@pytest.mark.parametrize("zone", ZONES, ids=str)
async def test_parts_are_those_of_the_clocks_of_a_zone(db: Any, half: Any, zone: dt.tzinfo) -> None:
    changes = [
        dt.datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC),
        dt.datetime(2026, 10, 25, 1, tzinfo=UTC),
    ]
    for moment in (*MOMENTS, *changes):
        local = moment.astimezone(zone)
        parts: dict[Any, Any] = {
            "year": local.year,
            "iso_year": local.isocalendar().year,
            "quarter": (local.month + 2) // 3,
            "month": local.month,
            "week": local.isocalendar().week,
            "day": local.day,
            "week_day": local.isoweekday() % 7 + 1,
            "iso_week_day": local.isoweekday(),
            "hour": local.hour,
            "minute": local.minute,
            "second": local.second,
            "date": local.date(),
            "time": local.time(),
        }
        cases: list[Case] = [(Extract("moment", p, tzinfo=zone), v) for p, v in parts.items()]
        assert await differences(half, {"moment": moment}, cases) == []
        assert await differences(half, {}, [(case, None) for case, _ in cases]) == []


async def test_rows_are_counted_by_the_hour_of_a_zone(db: Any, half: Any) -> None:
    moments = [dt.datetime(2026, month, 1, hour, tzinfo=UTC) for month in (1, 7) for hour in (6, 7)]
    await half(Everything.objects).bulk_create([Everything(moment=moment) for moment in moments])
    hour = Extract("moment", "hour", tzinfo=BERLIN)
    counted = Everything.objects.values(hour=hour).annotate(n=Count("pk")).order_by("hour")
    assert await half.rows(counted.values_list("hour", "n")) == [(7, 1), (8, 2), (9, 1)]
    assert await half(Everything.objects.annotate(h=hour).filter(h=8)).count() == 2
    assert await half(Everything.objects.filter(moment__iso_year=2026)).count() == 4
    assert await half(Everything.objects.filter(moment__iso_week_day=4)).count() == 2


REFUSED = [
    (lambda: Extract("day", "year", tzinfo=BERLIN), "with a tzinfo must be given a datetime"),
    (lambda: Extract("time", "hour", tzinfo=BERLIN), "with a tzinfo must be given a datetime"),
    (lambda: Extract("moment", "hour", tzinfo=WRONG[0]), "ZoneInfo or a datetime.timezone, not o"),
    (lambda: Extract("moment", "hour", tzinfo=WRONG[1]), "ZoneInfo or a datetime.timezone, not s"),
    (lambda: Extract("moment", "hour", tzinfo=WRONG[2]), "ZoneInfo or a datetime.timezone, not i"),
    (lambda: Extract("moment", WRONG[3]), "Extract: part must be one of"),
    (lambda: Extract("time", "year"), r"must be given a date, got Everything.time \(time\)"),
    (lambda: Extract("day", "hour"), r"must be given a time, got Everything.day \(date\)"),
    (lambda: Extract("day", "time"), "must be given a time"),
    (lambda: Extract("char", "year"), "Extract must be given a date or time"),
    (lambda: Trunc("time", "hour"), "Trunc must be given a date or a datetime"),
    (lambda: Trunc("day", "hour"), "Trunc with 'hour' must be given a datetime"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_parts_that_a_value_does_not_have_are_refused(build: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Everything.objects.annotate(x=build())


async def test_now_is_one_time_for_all_rows_of_a_statement(db: Any, half: Any) -> None:
    await half(Everything.objects).bulk_create([Everything() for _ in range(500)])
    before = dt.datetime.now(UTC)
    rows = await half.rows(Everything.objects.annotate(x=Now()).values_list("x", flat=True))
    assert len(set(rows)) == 1
    assert abs(rows[0] - before) < dt.timedelta(seconds=60)
    later = await half.rows(Everything.objects.annotate(x=Now()).values_list("x", flat=True)[:1])
    assert later[0] > rows[0]


async def test_now_comes_after_what_was_stamped_before(db: Any, half: Any) -> None:
    for _ in range(20):
        await half(Stamped.objects).create(name="x")
        assert await half(Stamped.objects.filter(created__gt=Now())).count() == 0
