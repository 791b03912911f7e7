"""`db_default`: values that the database gives where an insert has none."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import orm_models
import pytest

from treefold_orm import (
    F,
    Model,
    ModelError,
    Now,
    Value,
    acreate_all,
    create_all,
    fields,
)
from treefold_orm._dialects.postgres import Postgres
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._schema.describe import table_of


class Filled(Model):
    """Columns of several types that the database fills."""

    name = fields.CharField(max_length=20)
    state = fields.CharField(max_length=10, db_default="new")
    rank = fields.IntegerField(db_default=Value(3))
    price = fields.DecimalField(max_digits=6, decimal_places=2, db_default=decimal.Decimal("1.50"))
    flag = fields.BooleanField(db_default=True)
    made = fields.DateTimeField(db_default=Now())
    day = fields.DateField(db_default=dt.date(2026, 1, 2))
    today = fields.DateField(db_default=Now())
    color = fields.EnumField(orm_models.Color, db_default=orm_models.Color.BLUE)
    data = fields.JSONField(db_default={"a": "it's"})
    note = fields.TextField(null=True, db_default="empty")
    blob = fields.BinaryField(db_default=b"\x00'")
    uid = fields.UUIDField(db_default=uuid.UUID(int=5))


class OnlyDefaults(Model):
    """No column that an insert must name."""

    state = fields.CharField(max_length=10, db_default="new")


class Chosen(Model):
    """A key that the database gives, and a default of Python beside one of the database."""

    code = fields.CharField(max_length=10, primary_key=True, db_default="first")
    both = fields.IntegerField(default=1, db_default=2)


GIVEN = {
    "state": "new",
    "rank": 3,
    "price": decimal.Decimal("1.50"),
    "flag": True,
    "day": dt.date(2026, 1, 2),
    "color": orm_models.Color.BLUE,
    "data": {"a": "it's"},
    "note": "empty",
    "blob": b"\x00'",
    "uid": uuid.UUID(int=5),
}


@pytest.fixture
def tables(empty: Any) -> Any:
    create_all(Filled, OnlyDefaults, Chosen)
    return empty


def values_of(row: Filled) -> dict[str, Any]:
    return {name: getattr(row, name) for name in GIVEN}


async def test_an_insert_leaves_out_what_is_not_given_and_reads_it_back(
    tables: Any, half: Any
) -> None:
    before = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=5)
    made = await half(Filled.objects).create(name="a")
    assert values_of(made) == GIVEN
    assert before < made.made < before + dt.timedelta(minutes=10)
    stored = await half(Filled.objects).get(pk=made.pk)
    assert values_of(stored) == GIVEN
    assert (stored.made, stored.today) == (made.made, made.today)
    assert before.date() <= made.today <= before.date() + dt.timedelta(days=1)


async def test_what_is_given_is_kept_and_none_means_null(tables: Any, half: Any) -> None:
    made = await half(Filled.objects).create(name="a", rank=7, note=None)
    stored = await half(Filled.objects).get(pk=made.pk)
    assert (stored.rank, stored.note, stored.state) == (7, None, "new")


async def test_an_instance_with_filled_columns_saves_what_changes(tables: Any, half: Any) -> None:
    made = Filled(name="a")
    await half(made).save()
    made.rank = 4
    await half(made).save()
    stored = await half(Filled.objects).get(pk=made.pk)
    assert (stored.rank, values_of(stored) | {"rank": 3}) == (4, GIVEN)


async def test_bulk_rows_may_leave_out_different_columns(tables: Any, half: Any) -> None:
    rows = [Filled(name=str(i), **({"rank": i} if i % 2 else {})) for i in range(7)]
    rows.append(Filled(name="all", **GIVEN, made=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)))
    made = await half(Filled.objects).bulk_create(rows)
    assert [row.rank for row in made] == [3, 1, 3, 3, 3, 5, 3, 3]
    stored = await half.rows(Filled.objects.order_by("id"))
    by_name = {row.name: row for row in stored}
    for row in made:
        assert row.pk == by_name[row.name].pk
        assert (values_of(row), row.made) == (values_of(by_name[row.name]), by_name[row.name].made)
    made[0].state = "old"
    await half(made[0]).save()
    assert (await half(Filled.objects).get(pk=made[0].pk)).state == "old"


async def test_rows_of_defaults_alone_can_be_inserted(tables: Any, half: Any) -> None:
    one = await half(OnlyDefaults.objects).create()
    many = await half(OnlyDefaults.objects).bulk_create([OnlyDefaults() for _ in range(3)])
    assert {row.state for row in (one, *many)} == {"new"}
    assert len({row.pk for row in (one, *many)}) == 4


async def test_upserts_read_back_what_the_database_filled(tables: Any, half: Any) -> None:
    made = await half(Chosen.objects).create()
    assert (made.pk, made.both) == ("first", 1)
    (again,) = await half(Chosen.objects).bulk_create(
        [Chosen(both=9)], update_conflicts=["both"], unique_fields=["code"]
    )
    assert (again.pk, again.both) == ("first", 9)
    assert (await half(Chosen.objects).get()).both == 9


async def test_get_or_create_fills_columns(tables: Any, half: Any) -> None:
    made, created = await half(Filled.objects).get_or_create(name="x", defaults={"rank": 5})
    assert (created, made.rank, made.state) == (True, 5, "new")


def test_a_filled_attribute_is_not_set_before_the_insert() -> None:
    row = Filled(name="a")
    assert "state" not in repr(row)
    with pytest.raises(AttributeError, match=r"Filled\.state was never set; the database"):
        _ = row.state


async def test_null_is_refused_where_the_column_takes_none(tables: Any, half: Any) -> None:
    with pytest.raises(ValueError, match=r"Filled\.state: may not be null"):
        await half(Filled.objects).create(name="a", state=None)


@pytest.mark.parametrize("dialect", [SQLite(), Postgres()], ids=["sqlite", "postgres"])
def test_defaults_are_part_of_the_schema(dialect: Any) -> None:
    columns = {column.name: column.default for column in table_of(Filled._meta, dialect).columns}
    assert columns["name"] == ""
    assert columns["state"] == "'new'"
    assert columns["rank"] == "3"
    assert columns["day"] == "'2026-01-02'"
    assert columns["price"] == ("150" if dialect.name == "sqlite" else "'1.50'")
    assert columns["made"].startswith("(")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (fields.IntegerField(db_default="x"), "Wrong.value: db_default takes an int, not str"),
        (fields.CharField(max_length=2, db_default="long"), "db_default longer than 2 characters"),
        (fields.IntegerField(db_default=F("id")), "db_default cannot look at columns"),
        (fields.IntegerField(db_default=F("nothing")), "db_default cannot be used: Wrong has no"),
        (
            fields.BooleanField(db_default=Now()),
            r"Wrong\.value \(bool\) cannot be set to datetime",
        ),
    ],
)
def test_defaults_that_cannot_work_say_so(field: Any, message: str) -> None:
    body = {"__module__": __name__, "_space": "faulty", "value": field}
    model = type("Wrong", (Model,), body)
    with pytest.raises(ModelError, match=message):
        table_of(model._meta, SQLite())


def test_generated_keys_take_no_db_default() -> None:
    with pytest.raises(ModelError, match="BigAutoField has a default of its own: drop db_default"):
        fields.BigAutoField(db_default=5)


async def test_set_default_is_done_by_the_database(empty: Any, half: Any) -> None:
    class Shelf(Model):
        name = fields.CharField(max_length=10)

    class Jar(Model):
        shelf = fields.ForeignKey(Shelf, on_delete="SET_DEFAULT", default=1, related_name="jars")

    await half.call(lambda: create_all(Shelf, Jar), lambda: acreate_all(Shelf, Jar))
    one, two = [await half(Shelf.objects).create(name=name) for name in ("one", "two")]
    jar = await half(Jar.objects).create(shelf=two)
    await half(two).delete()
    assert (await half(Jar.objects).get(pk=jar.pk)).shelf_id == one.pk
