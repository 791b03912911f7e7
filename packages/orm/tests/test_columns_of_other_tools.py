"""Columns that another tool writes: decimals kept as REAL or text, times without a zone. They are
read, computed with and written like any other column.
"""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
from typing import Any

import pytest
from orm_halves import Handle, in_half

from treefold_orm import (
    Avg,
    Case,
    Cast,
    CheckConstraint,
    Coalesce,
    DatabaseError,
    DataError,
    F,
    FieldError,
    FieldValueError,
    Max,
    Model,
    ModelError,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Trunc,
    Value,
    When,
    acreate_all,
    araw,
    fields,
)

D = decimal.Decimal
NOON = dt.datetime(2009, 1, 2, 12, 0)
LATER = dt.datetime(2009, 1, 3, 4, 5, 6, 789000)


class Sale(Model):
    """A table as another tool has made it."""

    _space = "others"
    label = fields.CharField(max_length=20)
    price = fields.DecimalField(max_digits=10, decimal_places=2, storage="real")
    fee = fields.DecimalField(max_digits=12, decimal_places=3, storage="text", null=True)
    exact = fields.DecimalField(max_digits=10, decimal_places=4, default=D("0.5"))
    sold = fields.DateTimeField(zone=None)
    paid = fields.DateTimeField(zone=None, null=True)
    seen = fields.DateTimeField(null=True)
    day = fields.DateField(null=True)

    class Meta:
        table = "sale"


TABLES = {
    "sqlite": "CREATE TABLE sale (id INTEGER PRIMARY KEY, label TEXT, price NUMERIC(10,2),"
    " fee TEXT, exact INTEGER DEFAULT 5000, sold DATETIME, paid TEXT, seen TEXT, day TEXT)",
    "postgres": "CREATE TABLE sale (id bigserial PRIMARY KEY, label text, price double precision,"
    " fee text, exact numeric(10,4) DEFAULT 0.5, sold timestamp, paid timestamp,"
    " seen timestamptz, day date)",
}
ROWS = (
    "INSERT INTO sale (label, price, fee, sold, paid, day) VALUES"
    " ('a', 1.0, '0.5', '2009-01-02 12:00:00', NULL, '2009-01-02'),"
    " ('b', 0.99, '10', '2009-01-03 04:05:06.789', '2009-01-03 00:00:00', '2009-01-02'),"
    " ('c', 12.345, NULL, '2009-01-03T00:00:00', '2009-02-01 00:00:00', NULL)"
)


async def filled(engine: str) -> None:
    table: Any = TABLES[engine]
    rows: Any = ROWS
    await araw(table)
    await araw(rows)


async def column(h: Handle, query: Any, name: str = "label") -> list[Any]:
    return await h.rows(query.order_by("label").values_list(name, flat=True))


async def test_values_are_read_with_their_places(empty: Any, half: Any) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        found = await h.rows(Sale.objects.order_by("label"))
        assert [s.price for s in found] == [D("1.00"), D("0.99"), D("12.35")]
        assert [str(s.price) for s in found] == ["1.00", "0.99", "12.35"]
        assert [s.fee for s in found] == [D("0.500"), D("10.000"), None]
        assert [s.sold for s in found] == [NOON, LATER, dt.datetime(2009, 1, 3)]
        assert [s.paid for s in found] == [None, dt.datetime(2009, 1, 3), dt.datetime(2009, 2, 1)]
        assert await column(h, Sale.objects, "price") == [s.price for s in found]
        assert await column(h, Sale.objects, "sold") == [s.sold for s in found]

    await in_half(half, body)


FILTERS: list[tuple[Any, str]] = [
    (Q(price=1), "a"),
    (Q(price="0.99"), "b"),
    (Q(price__gt=D("0.99")), "ac"),
    (Q(price__in=[1, D("12.35")]), "ac"),
    (Q(fee="0.5"), "a"),
    (Q(fee__gt=F("price")), "b"),
    (Q(price__gt=F("exact")), "abc"),
    (Q(exact__lt=F("fee")), "b"),
    (Q(sold=NOON), "a"),
    (Q(sold__gt=NOON), "bc"),
    (Q(sold__year=2009, sold__day=3), "bc"),
    (Q(sold__date=dt.date(2009, 1, 3)), "bc"),
    (Q(sold__gt=F("paid")), "b"),
    (Q(sold__gt=F("day")), "ab"),
    (Q(sold__range=(NOON, LATER)), "abc"),
    (Q(paid__isnull=True), "a"),
]


@pytest.mark.parametrize(("condition", "labels"), FILTERS)
async def test_conditions_compare_values(
    empty: Any, half: Any, condition: Any, labels: str
) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        assert await column(h, Sale.objects.filter(condition)) == list(labels)
        assert await h(Sale.objects.filter(condition)).count() == len(labels)

    await in_half(half, body)


EXPRESSIONS: list[tuple[Any, list[Any]]] = [
    (F("price") * 2, [D("2.00"), D("1.98"), D("24.70")]),
    (F("price") + F("exact"), [D("1.5000"), D("1.4900"), D("12.8500")]),
    (Coalesce("fee", F("price")), [D("0.500"), D("10.000"), D("12.350")]),
    (Case(When(price__lt=1, then=Value(0)), default=F("price")), [D("1.00"), D(0), D("12.35")]),
    (F("sold") + dt.timedelta(days=1), [NOON + dt.timedelta(1), LATER + dt.timedelta(1)]),
    (Trunc("sold", "month"), [dt.datetime(2009, 1, 1)] * 3),
    (Coalesce("paid", F("sold")), [NOON, dt.datetime(2009, 1, 3), dt.datetime(2009, 2, 1)]),
    (F("sold") - F("paid"), [None, dt.timedelta(seconds=14706.789)]),
    (Cast("sold", dt.date), [dt.date(2009, 1, 2), dt.date(2009, 1, 3), dt.date(2009, 1, 3)]),
    (Cast("sold", dt.datetime), [NOON.replace(tzinfo=dt.UTC)]),
    (Cast("price", str), ["1.00", "0.99", "12.35"]),
    (
        Subquery(Sale.objects.filter(pk=OuterRef("pk")).values("price")),
        [D("1.00"), D("0.99"), D("12.35")],
    ),
]


@pytest.mark.parametrize(("expression", "wanted"), EXPRESSIONS)
async def test_expressions_compute_with_values(
    empty: Any, half: Any, expression: Any, wanted: list[Any]
) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        query = Sale.objects.annotate(found=expression)
        assert (await column(h, query, "found"))[: len(wanted)] == wanted
        made = await h.rows(query.order_by("label"))
        assert [each.found for each in made][: len(wanted)] == wanted

    await in_half(half, body)


async def test_aggregates_and_groups_are_exact(empty: Any, half: Any) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        found = await h(Sale.objects).aggregate(
            total=Sum("price"), mean=Avg("fee"), last=Max("sold")
        )
        assert found == {"total": D("14.34"), "mean": D("5.25"), "last": LATER}
        groups = Sale.objects.values("price").annotate(n=Sum("fee")).order_by("-price")
        assert [g["price"] for g in await h.rows(groups)] == [D("12.35"), D("1.00"), D("0.99")]

    await in_half(half, body)


async def test_writes_leave_what_the_other_tool_expects(empty: Any, half: Any) -> None:
    await filled(empty.engine)
    stored = "SELECT price, fee, sold, paid FROM sale WHERE label = :label"

    async def body(h: Handle) -> None:
        await h(Sale.objects.filter(label__in=["new", "bulk", "x"])).delete()
        new = await h(Sale.objects).create(
            label="new", price=D("7.5"), fee=D("1.25"), sold=NOON, paid=LATER
        )
        new.price += 1
        new.sold = LATER
        await h(new).save()
        bulk = [Sale(label="bulk", price=n, fee=D(n), sold=NOON, paid=None) for n in (1, 2)]
        await h(Sale.objects).bulk_create(bulk)
        for each in bulk:
            each.price, each.paid = D("3.25"), NOON
        await h(Sale.objects).bulk_update(bulk, ["price", "paid"])
        await h(Sale.objects.filter(pk=bulk[1].pk)).update(
            price=F("fee") * 2, fee=F("price"), sold=F("paid"), label="x"
        )
        assert await column(h, Sale.objects.filter(label="x"), "price") == [D("4.00")]

    await in_half(half, body)
    rows = {label: (await araw(stored, label=label))[0] for label in ("new", "bulk", "x")}
    if empty.engine == "postgres":
        assert rows["new"] == {"price": 8.5, "fee": "1.250", "sold": LATER, "paid": LATER}
        assert rows["bulk"] == {"price": 3.25, "fee": "1.000", "sold": NOON, "paid": NOON}
        assert rows["x"] == {"price": 4.0, "fee": "3.250", "sold": NOON, "paid": NOON}
        return
    late, noon = "2009-01-03 04:05:06.789000", "2009-01-02 12:00:00"
    assert rows["new"] == {"price": 8.5, "fee": "1.250", "sold": late, "paid": late}
    assert rows["bulk"] == {"price": 3.25, "fee": "1.000", "sold": noon, "paid": noon}
    assert rows["x"] == {"price": 4.0, "fee": "3.250", "sold": noon, "paid": noon}


async def test_upserts_give_the_stored_values_back(empty: Any, half: Any) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        first = await h(Sale.objects).get(label="a")
        again = Sale(pk=first.pk, label="a", price=D("2.00"), sold=LATER)
        await h(Sale.objects).bulk_create([again], update_conflicts=["price"], unique_fields=["id"])
        again.fee = D("0.75")
        await h(again).save()
        found = await h(Sale.objects).get(pk=first.pk)
        assert (found.price, found.fee, found.sold) == (D("2.00"), D("0.750"), LATER)

    await in_half(half, body)


async def test_only_what_changed_is_written(empty: Any, half: Any) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        third = await h(Sale.objects).get(label="c")
        third.label = "c"
        await h(third).save()
        assert pickle.loads(pickle.dumps(third)).price == D("12.35")  # noqa: S301, RUF100 - our own

    await in_half(half, body)
    assert await araw("SELECT price FROM sale WHERE label = 'c'") == [{"price": 12.345}]


async def test_raw_sql_gives_instances_with_the_same_values(empty: Any, half: Any) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        found = await h(Sale.objects).raw("SELECT * FROM sale ORDER BY label")
        wanted = await h.rows(Sale.objects.order_by("label"))
        for one, other in zip(found, wanted, strict=True):
            assert (one.price, one.fee, one.sold) == (other.price, other.fee, other.sold)
        found[0].label = "z"
        await h(found[0]).save()
        assert (await h(Sale.objects).get(label="z")).price == D("1.00")

    await in_half(half, body)


async def test_tables_can_be_made_with_such_columns(empty: Any, half: Any) -> None:
    await acreate_all(Sale)

    async def body(h: Handle) -> None:
        await h(Sale.objects).create(label="a", price=D("1.25"), fee=D("1.5"), sold=NOON)
        found = await h(Sale.objects).get()
        assert (found.price, found.fee, found.sold) == (D("1.25"), D("1.500"), NOON)

    await in_half(half, body)


@pytest.mark.parametrize("edge", [dt.datetime.min, dt.datetime.max])
async def test_the_ends_of_time_without_a_zone_are_kept(
    empty: Any, half: Any, edge: dt.datetime
) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        await h(Sale.objects.filter(label="a")).update(sold=edge)
        assert (await h(Sale.objects).get(sold=edge)).sold == edge

    await in_half(half, body)


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [Q(sold__gt=F("seen")), Q(seen=F("paid")), Q(seen__lt=Coalesce("seen", F("sold")))],
)
async def test_times_with_and_without_a_zone_are_not_compared(empty: Any, condition: Any) -> None:
    with pytest.raises(FieldError, match=r"datetime without a zone.*Cast\(\)"):
        await Sale.objects.filter(condition)


async def test_a_cast_takes_a_time_without_a_zone_as_utc(empty: Any, half: Any) -> None:
    await filled(empty.engine)

    async def body(h: Handle) -> None:
        await h(Sale.objects.filter(label="a")).update(seen=NOON.replace(tzinfo=dt.UTC))
        same = Sale.objects.filter(seen=Cast("sold", fields.DateTimeField()))
        assert await column(h, same) == ["a"]

    await in_half(half, body)


def test_values_with_a_zone_are_refused() -> None:
    with pytest.raises(FieldValueError, match=r"Sale.sold: takes a datetime without a zone"):
        Sale.objects.filter(sold=NOON.replace(tzinfo=dt.UTC))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("price", "'much'", "Sale.price cannot be read as DecimalField: the row holds no such"),
        ("fee", "'1,5'", "Sale.fee cannot be read as DecimalField"),
        ("sold", "'soon'", r"Sale.sold cannot be read as DateTimeField\(zone=None\)"),
        ("sold", "'2009-01-02 12:00:00+02:00'", "holds no date and time without a zone"),
        ("sold", "1230897600", "Sale.sold cannot be read as"),
    ],
)
async def test_what_cannot_be_read_is_named(
    empty: Any, half: Any, name: str, value: str, message: str
) -> None:
    await filled("sqlite")
    sql: Any = f"UPDATE sale SET {name} = {value} WHERE label = 'a'"  # noqa: S608, RUF100 - above
    await araw(sql)

    async def body(h: Handle) -> None:
        for query in (Sale.objects.all(), Sale.objects.values(name), Sale.objects.order_by(name)):
            with pytest.raises(DataError, match=message):
                await h.rows(query)
        with pytest.raises(DataError, match=rf"Sale.{name} cannot be read as"):
            await h(Sale.objects).raw("SELECT * FROM sale")

    await in_half(half, body)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda: fields.DecimalField(max_digits=4, decimal_places=2, storage="json"),  # pyright: ignore[reportArgumentType] - refused
            "storage must be 'real' or 'text', got 'json'",
        ),
        (
            lambda: fields.DecimalField(
                max_digits=4, decimal_places=2, storage="real", primary_key=True
            ),
            "primary_key must be left out for a column with storage='real'",
        ),
        (
            lambda: fields.DateTimeField(zone=None, db_default=NOON),
            "db_default must be left out for a column with zone=None",
        ),
        (
            lambda: fields.DateTimeField(zone=dt.timezone(dt.timedelta(hours=1))),
            r"zone must be datetime.UTC or None",
        ),
    ],
)
def test_wrong_options_are_refused(declare: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        declare()


def test_a_check_over_such_a_column_is_refused() -> None:
    from treefold_orm._dialects.sqlite import SQLite
    from treefold_orm._schema.describe import table_of

    class Guarded(Model):
        _space = "others"
        price = fields.DecimalField(max_digits=4, decimal_places=2, storage="real")

        class Meta:
            constraints = (CheckConstraint(Q(price__gte=0), name="not_negative"),)

    with pytest.raises(ModelError, match=r"Guarded.price: a column that another tool writes"):
        table_of(Guarded._meta, SQLite())


class Dated(Model):
    """A time with a zone over a column without one."""

    label = fields.CharField(max_length=10, null=True)
    sold = fields.DateTimeField(null=True)

    class Meta:
        table = "sale"
        managed = False


async def test_a_zone_over_a_column_without_one_names_field_and_remedy(
    empty: Any, half: Any
) -> None:
    await filled(empty.engine)
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    if empty.engine == "sqlite":  # the column holds text: the time is kept as it is
        assert (await half(Dated.objects).create(sold=moment)).sold == moment
        return
    message = r"^Dated\.sold takes times with a zone, and its column .* with zone=None, or make"
    with pytest.raises(DatabaseError, match=message):
        await half(Dated.objects).create(label="x", sold=moment)
    with pytest.raises(DatabaseError, match=message):
        await half(Dated.objects).create(id=77, sold=moment)
    row = await half(Dated.objects.only("label")).get(label="a")
    row.sold = moment
    with pytest.raises(DatabaseError, match=message):
        await half(row).save()
    with pytest.raises(DatabaseError, match=r"^Argument 1 of the statement takes times with a"):
        await half(Dated.objects.filter(sold=moment)).count()
