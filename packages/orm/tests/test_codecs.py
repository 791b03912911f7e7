"""Values at the edge of what Python and the databases hold, and stored values that a field cannot
have written: read exactly, or refused with the field and what to do.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Everything, Stamped

from treefold_orm import DataError, F, Max, Min, Model, acreate_all, araw, fields, raw

DAYS = (dt.date.min, dt.date(1, 1, 2), dt.date(2026, 3, 4), dt.date(9999, 12, 30), dt.date.max)
FIRST = dt.datetime.min.replace(tzinfo=dt.UTC)
LAST = dt.datetime.max.replace(tzinfo=dt.UTC)
STEP = dt.timedelta(microseconds=1)
MOMENTS = (FIRST, FIRST + STEP, dt.datetime(2026, 3, 4, 5, 6, 7, 8, dt.UTC), LAST - STEP, LAST)


class Calendar(Model):
    """Arrays of days and moments, which PostgreSQL has."""

    _space = "arrays"  # not among the models that `create_all()` makes without a name
    days = fields.ArrayField(fields.DateField())
    moments = fields.ArrayField(fields.DateTimeField())


def rows() -> list[Everything]:
    return [Everything(day=d, moment=m) for d, m in zip(DAYS, MOMENTS, strict=True)]


async def pairs(h: Handle, query: Any = None) -> list[tuple[Any, Any]]:
    chosen = Everything.objects.all() if query is None else query
    return [(e.day, e.moment) for e in await h.rows(chosen.order_by("id"))]


WANTED = list(zip(DAYS, MOMENTS, strict=True))


async def test_the_first_and_the_last_day_are_kept(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        for each in rows():
            await h(each).save()
        assert await pairs(h) == WANTED
        assert all(m.tzinfo is dt.UTC for _, m in await pairs(h))
        values = await h.rows(Everything.objects.order_by("id").values_list("day", "moment"))
        assert values == WANTED
        named = await h.rows(Everything.objects.order_by("id").values("day", "moment"))
        assert [(row["day"], row["moment"]) for row in named] == WANTED

    await in_half(half, body)


@pytest.mark.parametrize("count", [1, 5])
async def test_bulk_writes_keep_them(db: Any, half: Any, count: int) -> None:
    async def body(h: Handle) -> None:
        made = rows()[-count:]
        await h(Everything.objects).bulk_create(made)
        assert await pairs(h) == WANTED[-count:]
        for each in made:
            each.day, each.moment = dt.date.min, FIRST
        await h(Everything.objects).bulk_update(made, ["day", "moment"])
        assert await pairs(h) == [(dt.date.min, FIRST)] * count

    await in_half(half, body)


async def test_conditions_and_assignments_keep_them(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        objects = Everything.objects
        await h(objects).bulk_create(rows())
        assert await h(objects.filter(day=dt.date.max)).count() == 1
        assert await h(objects.filter(moment=LAST)).count() == 1
        assert await h(objects.filter(day__in=[dt.date.max, dt.date.min])).count() == 2
        assert await h(objects.filter(moment__range=(FIRST, LAST))).count() == 5
        assert await h(objects.filter(moment__lt=LAST)).count() == 4
        assert await h(objects.filter(day__gt=dt.date.min)).count() == 4
        assert await h(objects.filter(day=dt.date(9999, 12, 30))).update(day=dt.date.max) == 1
        assert await h(objects.filter(day=dt.date.max)).count() == 2
        found = await h(objects).aggregate(first=Min("moment"), last=Max("moment"))
        assert found == {"first": FIRST, "last": LAST}

    await in_half(half, body)


async def test_they_do_not_poison_the_other_rows(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        objects = Everything.objects
        await h(objects).bulk_create(rows())
        assert await h(objects.filter(day__year=9999)).count() == 2
        assert await h(objects.filter(moment__year=1)).count() == 2
        assert await h(objects.filter(moment__year=2026)).count() == 1
        assert await h(objects.filter(day__month=12, moment__day=31)).count() == 2

    await in_half(half, body)


async def test_they_stream_and_are_found_by_raw_sql(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        await h(Everything.objects).bulk_create(rows())
        sql: Any = "SELECT count(*) AS n FROM everything WHERE moment = :moment AND day = :day"
        values: dict[str, Any] = {"moment": LAST, "day": dt.date.max}
        found = await araw(sql, **values) if h.name == "async" else raw(sql, **values)
        assert found == [{"n": 1}]

    await in_half(half, body)
    query = Everything.objects.filter(moment__gte=LAST).order_by("id")
    assert [e.moment for e in await half.iterate(query, 2)] == [LAST]


async def test_a_row_with_them_is_not_changed_by_reading(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        await h(Everything.objects).bulk_create(rows())
        for each in await h.rows(Everything.objects.all()):
            each.integer = 1
            await h(each).save()
        assert await pairs(h) == WANTED

    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_arrays_keep_them(empty: Any, half: Any) -> None:
    await acreate_all(Calendar)

    async def body(h: Handle) -> None:
        await h(Calendar.objects).create(days=list(DAYS), moments=list(MOMENTS))
        found = await h(Calendar.objects).get()
        assert (found.days, found.moments) == (list(DAYS), list(MOMENTS))

    await in_half(half, body)


# -- infinity and other years, which PostgreSQL has -----------------------------------------------


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_infinity_is_the_last_moment_in_utc(db: Any, half: Any) -> None:
    await araw("INSERT INTO everything (day, moment) VALUES ('infinity', 'infinity')")
    await araw("INSERT INTO everything (day, moment) VALUES ('-infinity', '-infinity')")

    async def body(h: Handle) -> None:
        assert await pairs(h) == [(dt.date.max, LAST), (dt.date.min, FIRST)]
        query = Everything.objects.order_by("id")
        assert await h.rows(query.values_list("moment", flat=True)) == [LAST, FIRST]
        assert [r["moment"] for r in await h.rows(query.values("moment"))] == [LAST, FIRST]
        found = await h(Everything.objects).aggregate(last=Max("moment"))
        assert found["last"].tzinfo is dt.UTC
        each = await h(query).first()
        each.integer = 5
        await h(each).save()

    await in_half(half, body)
    kept = await araw("SELECT moment::text AS m FROM everything ORDER BY id LIMIT 1")
    assert kept == [{"m": "infinity"}]


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
@pytest.mark.parametrize("day", ["10000-01-01", "0044-03-15 BC"])
async def test_years_that_python_lacks_are_an_error(db: Any, half: Any, day: str) -> None:
    await araw("INSERT INTO everything (day, moment) VALUES (:day::text::date, NULL)", day=day)
    await araw("UPDATE everything SET moment = day")

    async def body(h: Handle) -> None:
        for name in ("day", "moment"):
            with pytest.raises(DataError, match="outside of the years 1 to 9999"):
                await h.rows(Everything.objects.only(name))
        assert await h(Everything.objects).count() == 1

    await in_half(half, body)


# -- what a field cannot have written -------------------------------------------------------------

WRONG = [
    ("money", "12.5", "Everything.money cannot be read as DecimalField: the row holds a float"),
    ("money", "'12.50'", "the row holds a str; give storage="),
    ("moment", "'2026-01-02 03:04:05'", "a date and time that is not in UTC; give zone="),
    ("moment", "'2026-01-02 03:04:05+02:00'", "Everything.moment cannot be read as DateTimeField"),
    ("moment", "'soon'", "Everything.moment cannot be read as DateTimeField"),
    ("moment", "1767225600", "cannot be read as DateTimeField: the row holds an int"),
    ("day", "'02.01.2026'", "Everything.day cannot be read as DateField: the row holds a str"),
    ("time", "'noon'", "Everything.time cannot be read as TimeField"),
    ("span", "1.5", "Everything.span cannot be read as DurationField: the row holds a float"),
    ("flag", "'f'", "Everything.flag cannot be read as BooleanField: the row holds a str"),
    ("flag", "7", "Everything.flag cannot be read as BooleanField: the row holds an int"),
    ("uid", "'x'", "Everything.uid cannot be read as UUIDField: the row holds a str"),
    ("data", "'{'", "Everything.data cannot be read as JSONField: the row holds a str"),
]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("column", "value", "message"), WRONG)
async def test_what_a_field_cannot_have_written_is_named(
    empty: Any, half: Any, column: str, value: str, message: str
) -> None:
    columns = ", ".join(field.column_name for field in Everything._meta.columns_without_key)
    statements: list[Any] = [
        f"CREATE TABLE everything (id INTEGER PRIMARY KEY, {columns})",  # as another tool might
        "INSERT INTO everything (small) VALUES (1)",
        f"INSERT INTO everything ({column}) VALUES ({value})",
    ]
    for sql in statements:
        await araw(sql)

    async def body(h: Handle) -> None:
        queries: list[Any] = [
            Everything.objects.all(),
            Everything.objects.only(column),
            Everything.objects.values(column),
            Everything.objects.values_list(column),
            Everything.objects.values_list(column, flat=True),
        ]
        for query in queries:
            with pytest.raises(DataError, match=message) as caught:
                await h.rows(query)
            assert len(value) < 4 or value.strip("'") not in str(caught.value)
        with pytest.raises(DataError, match=message):
            await h(Everything.objects.filter(small=None)).get()
        assert len(await h.rows(Everything.objects.filter(small=1))) == 1

    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_a_column_without_a_zone_is_named_on_postgres(empty: Any, half: Any) -> None:
    await araw("CREATE TABLE stamped (id bigint, name text, created timestamp, changed timestamp)")
    await araw("INSERT INTO stamped VALUES (1, 'a', '2026-01-02 03:04:05', NULL)")

    async def body(h: Handle) -> None:
        message = "Stamped.created cannot be read as DateTimeField: .* not in UTC; give zone="
        with pytest.raises(DataError, match=message):
            await h(Stamped.objects).get()

    await in_half(half, body)


async def test_values_computed_by_the_database_are_what_fields_write(db: Any, half: Any) -> None:
    await Everything.objects.acreate(
        money=decimal.Decimal("1.250"), moment=MOMENTS[2], span=dt.timedelta(hours=1), flag=True
    )
    await Author.objects.acreate(name="Ann")

    async def body(h: Handle) -> None:
        found = await h(
            Everything.objects.annotate(later=F("moment") + F("span"), twice=F("money") * 2)
        ).get()
        assert found.later == MOMENTS[2] + dt.timedelta(hours=1)
        assert found.twice == decimal.Decimal("2.500")

    await in_half(half, body)
