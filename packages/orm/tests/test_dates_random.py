"""Every unit of Trunc and every part of Extract, over random values and zones, beside Python.

`hatch run orm:test-dates-long` takes more moments.
"""

from __future__ import annotations

import datetime as dt
import functools
import os
import random
import zoneinfo
from collections import Counter
from typing import Any

import orm_postgres
import pytest
from orm_models import Everything

from treefold_orm import Count, Extract, F, Model, Trunc, acreate_all, create_all, fields
from treefold_orm._functions.dates import PARTS, UNITS

UTC = dt.UTC
MOMENTS = int(os.environ.get("TREEFOLD_DATE_MOMENTS", "60"))
ZONE_STEP = 1 if MOMENTS > 60 else 4  # the zones of groups, of which each is three statements
CLOCK = {"hour": "%Y-%m-%d %H", "minute": "%Y-%m-%d %H:%M", "second": "%Y-%m-%d %H:%M:%S"}
ZONES: list[dt.tzinfo] = [
    *map(
        zoneinfo.ZoneInfo,
        [
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "America/Sao_Paulo",  # clocks skipped midnight
            "America/Havana",  # midnight came twice
            "Asia/Kathmandu",  # 5:45
            "Asia/Tokyo",
            "Australia/Lord_Howe",  # clocks change by half an hour
            "Pacific/Kiritimati",
            "Pacific/Apia",  # left out a whole day
            "Africa/Casablanca",
        ],
    ),
    dt.timezone(dt.timedelta(hours=-12)),
    dt.timezone(dt.timedelta(hours=5, minutes=30)),
    dt.timezone(dt.timedelta(seconds=-3723)),
]
CHANGES = [
    dt.datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    dt.datetime(2026, 10, 25, 1, 0, tzinfo=UTC),
    dt.datetime(2018, 11, 4, 3, 0, tzinfo=UTC),
    dt.datetime(2025, 11, 2, 5, 0, tzinfo=UTC),
    dt.datetime(2026, 4, 4, 15, 0, tzinfo=UTC),
    dt.datetime(2011, 12, 30, 10, 0, tzinfo=UTC),
]


class Naive(Model):
    """A model whose column holds no zone."""

    moment = fields.DateTimeField(zone=None)


def random_moments(seed: int) -> list[dt.datetime]:
    draw = random.Random(seed)
    begin, end = dt.datetime(1970, 1, 3, tzinfo=UTC), dt.datetime(2037, 12, 28, tzinfo=UTC)
    span = (end - begin) // dt.timedelta(microseconds=1)
    found = [begin + dt.timedelta(microseconds=draw.randrange(span)) for _ in range(MOMENTS)]
    found += [
        draw.choice(CHANGES) + dt.timedelta(microseconds=draw.randrange(-(10**11), 10**11))
        for _ in range(MOMENTS)
    ]
    edges = (dt.datetime(y, m, 1, tzinfo=UTC) for y in (1999, 2024) for m in range(1, 13))
    return [*found, *(e + dt.timedelta(microseconds=n) for e in edges for n in (-1, 0))]


def first_day(day: dt.date, unit: str) -> dt.date:
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return dt.date.fromisocalendar(*day.isocalendar()[:2], 1)
        case _:
            return day


def cut(moment: dt.datetime, unit: str, zone: dt.tzinfo) -> dt.datetime:
    """Return the begin of the unit that a moment is in, as the clocks of a zone have it."""
    local = moment.astimezone(zone)
    distance = local.utcoffset() or dt.timedelta()
    if unit in CLOCK:
        wall = dt.datetime.strptime(local.strftime(CLOCK[unit]), CLOCK[unit])
        return (wall - distance).replace(tzinfo=UTC)
    wall = dt.datetime.combine(first_day(local.date(), unit), dt.time(0))
    # a midnight that clocks skip counts before the change, one that comes twice after it
    offsets = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return (wall - min(o for o in offsets if o is not None)).replace(tzinfo=UTC)


def instant(moment: dt.datetime) -> dt.datetime:
    # Python finds an hour that comes twice equal to nothing in another zone
    return moment.astimezone(UTC)


def part_of(value: Any, part: str) -> Any:
    match part:
        case "quarter":
            return (value.month + 2) // 3
        case "week":
            return value.isocalendar().week
        case "iso_year":
            return value.isocalendar().year
        case "week_day":
            return value.isoweekday() % 7 + 1
        case "iso_week_day":
            return value.isoweekday()
        case "date":
            return value.date() if isinstance(value, dt.datetime) else value
        case "time":
            return value.time() if isinstance(value, dt.datetime) else value
        case _:
            return getattr(value, part)


@pytest.fixture
def moments() -> list[dt.datetime]:
    return random_moments(2028)


@functools.cache
def has_same_rules(dsn: str, zone: dt.tzinfo) -> bool:
    """True where the server and Python, which both may bring data of zones, agree on each day."""
    if not isinstance(zone, zoneinfo.ZoneInfo):
        return True
    days = [dt.datetime(1970, 1, 1, 12, tzinfo=UTC) + dt.timedelta(days=n) for n in range(24837)]
    offsets: str = orm_postgres.ask(
        dsn,
        f"SELECT string_agg(extract(epoch FROM (day AT TIME ZONE '{zone.key}') - (day AT TIME ZONE "
        "'UTC'))::integer::text, ',' ORDER BY day) FROM generate_series("
        f"'{days[0]}'::timestamptz, '{days[-1]}', '1 day') AS day",
    )
    ours = ((day.astimezone(zone).utcoffset() or dt.timedelta()) for day in days)
    return offsets == ",".join(str(int(offset.total_seconds())) for offset in ours)


@pytest.fixture
def zones(place: Any) -> list[dt.tzinfo]:
    """The zones of which database and Python have the same rules."""
    if place.engine == "sqlite":
        return ZONES
    found = [zone for zone in ZONES if has_same_rules(place.address, zone)]
    assert len(found) >= len(ZONES) - 2
    return found


async def store(half: Any, moments: list[dt.datetime]) -> None:
    rows = [Everything(moment=m, day=m.date(), time=m.time()) for m in moments]
    await half(Everything.objects).bulk_create(rows)


async def test_every_unit_in_every_zone(
    db: Any, half: Any, moments: list[dt.datetime], zones: list[dt.tzinfo]
) -> None:
    await store(half, moments)
    wrong: list[Any] = []
    for zone in zones:
        units: dict[str, Any] = {f"u_{unit}": Trunc("moment", unit, zone) for unit in UNITS}
        for row in await half.rows(Everything.objects.values(m=F("moment"), **units)):
            for unit in UNITS:
                wanted = cut(row["m"], unit, zone)
                got = row[f"u_{unit}"]
                if instant(got) != wanted or got.tzinfo is not zone:
                    wrong.append((zone, unit, row["m"], got, wanted))
    assert wrong == []


@pytest.mark.parametrize("unit", UNITS)
async def test_groups_and_datetimes_in_every_zone(
    db: Any, half: Any, moments: list[dt.datetime], zones: list[dt.tzinfo], unit: Any
) -> None:
    await store(half, moments)
    everything, one = Everything.objects.all(), moments[0]
    for zone in zones[1::ZONE_STEP]:
        wanted = Counter(cut(moment, unit, zone) for moment in moments)
        found = await half.rows(everything.datetimes("moment", unit, tzinfo=zone))
        assert list(map(instant, found)) == sorted(wanted)
        groups = everything.values(at=Trunc("moment", unit, zone)).annotate(n=Count("*"))
        assert {instant(row["at"]): row["n"] for row in await half.rows(groups)} == wanted
        same = everything.annotate(at=Trunc("moment", unit, zone)).filter(at=cut(one, unit, zone))
        assert await half(same).count() == wanted[cut(one, unit, zone)]


async def test_every_part_and_unit_in_utc(db: Any, half: Any, moments: list[dt.datetime]) -> None:
    await store(half, moments)
    taken = {"moment": PARTS, "day": [p for p in PARTS if p not in CLOCK and p != "time"]}
    taken["time"] = [*CLOCK, "time"]
    wrong: list[Any] = []
    for name, parts in taken.items():
        wanted: dict[str, Any] = {f"p_{part}": Extract(name, part) for part in parts}  # pyright: ignore[reportArgumentType] - the names are literals
        units = UNITS if name == "moment" else UNITS[:5] if name == "day" else ()
        wanted |= {f"u_{unit}": Trunc(name, unit) for unit in units}
        for row in await half.rows(Everything.objects.values(m=F(name), **wanted)):
            for label, got in row.items():
                kind, _, word = label.partition("_")
                if kind == "m":
                    continue
                value = part_of(row["m"], word) if kind == "p" else unit_of(row["m"], word)
                if got != value:
                    wrong.append((name, label, row["m"], got, value))
    assert wrong == []


def unit_of(value: Any, unit: str) -> Any:
    return cut(value, unit, UTC) if isinstance(value, dt.datetime) else first_day(value, unit)


async def test_every_part_and_unit_of_a_column_without_a_zone(
    empty: Any, half: Any, moments: list[dt.datetime]
) -> None:
    await half.call(lambda: create_all(Naive), lambda: acreate_all(Naive))
    plain = [moment.replace(tzinfo=None) for moment in moments]
    await half(Naive.objects).bulk_create([Naive(moment=moment) for moment in plain])
    wanted: dict[str, Any] = {f"p_{part}": Extract("moment", part) for part in PARTS}
    wanted |= {f"u_{unit}": Trunc("moment", unit) for unit in UNITS}
    for row in await half.rows(Naive.objects.values(m=F("moment"), **wanted)):
        moment = row["m"]
        for part in PARTS:
            assert row[f"p_{part}"] == part_of(moment, part), (part, moment)
        for unit in UNITS:
            value = cut(moment.replace(tzinfo=UTC), unit, UTC).replace(tzinfo=None)
            assert row[f"u_{unit}"] == value, (unit, moment)
