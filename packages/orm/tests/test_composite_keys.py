"""Primary keys of several columns: instances, writes, and what cannot be declared."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import pickle
import uuid
from typing import Any

import pytest
from orm_composite import ALL, Badge, Label, Line, Reading, Shelf, Tenant

from treefold_orm import (
    CompositePrimaryKey,
    F,
    FieldError,
    FieldValueError,
    Model,
    ModelError,
    SearchIndex,
    StaleObject,
    UniqueConstraint,
    UniqueViolation,
    UnsupportedFeature,
    create_all,
    fields,
    transaction,
)
from treefold_orm._dialects.postgres import Postgres
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._schema.ddl import statements
from treefold_orm._schema.describe import table_of
from treefold_orm._schema.records import CreateTable

DAY = dt.date(2026, 3, 4)
SENSOR = uuid.UUID(int=7)


@pytest.fixture
def tables(empty: Any) -> Any:
    create_all(*ALL)
    return empty


async def some_lines(half: Any) -> tuple[Tenant, Tenant]:
    one, two = await half(Tenant.objects).bulk_create([Tenant(name="one"), Tenant(name="two")])
    await half(Line.objects).bulk_create(
        [
            Line(tenant=tenant, number=number, title=f"{tenant.name}{number}")
            for tenant in (one, two)
            for number in (1, 2, 3)
        ]
    )
    return one, two


async def titles(half: Any, query: Any) -> list[str]:
    return sorted([line.title for line in await half.rows(query)])


# -- instances ------------------------------------------------------------------------------------


def test_the_key_of_an_instance_is_a_tuple_once_all_parts_are_set() -> None:
    line = Line(number=3)
    assert line.pk is None
    line.tenant_id = 5
    assert line.pk == (5, 3)
    line.pk = (6, 4)
    assert (line.tenant_id, line.number) == (6, 4)
    line.pk = None
    assert (line.tenant_id, line.number) == (None, None)
    assert Line(pk=(1, 2)).pk == (1, 2)
    tenant = Tenant(id=9)
    assert Line(pk=(tenant, 2)).tenant is tenant


@pytest.mark.parametrize("wrong", [5, (1,), (1, 2, 3), "12"])
def test_a_key_takes_a_tuple_of_its_length(wrong: Any) -> None:
    with pytest.raises(FieldValueError, match=r"Line\.pk: takes a tuple of 2 values, or None"):
        Line(pk=wrong)


def test_instances_are_equal_by_their_whole_key() -> None:
    one, same, other, new = Line(pk=(1, 2)), Line(pk=(1, 2)), Line(pk=(1, 3)), Line(number=2)
    assert one == same
    assert one not in (other, new)
    assert new != Line(number=2)
    assert len({one, same, other}) == 2
    assert copy.copy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one


# -- writes ---------------------------------------------------------------------------------------


async def test_rows_are_created_changed_and_deleted(tables: Any, half: Any) -> None:
    one, _ = await some_lines(half)
    line = await half(Line.objects).get(pk=(one.pk, 2))
    line.title = "changed"
    await half(line).save()
    assert (await half(Line.objects).get(pk=line.pk)).title == "changed"
    assert await half(line).delete() == 1
    assert await titles(half, Line.objects.all()) == ["one1", "one3", "two1", "two2", "two3"]


async def test_a_second_row_with_the_key_is_refused(tables: Any, half: Any) -> None:
    one, _ = await some_lines(half)
    with pytest.raises(UniqueViolation, match=r"Line\.tenant, number exists already") as caught:
        await half(Line.objects).create(tenant=one, number=1)
    assert (caught.value.model, caught.value.fields) == ("Line", ("tenant", "number"))


async def test_the_key_of_a_stored_row_cannot_change(tables: Any, half: Any) -> None:
    one, two = await some_lines(half)
    line = await half(Line.objects).get(pk=(one.pk, 2))
    line.tenant = two
    with pytest.raises(FieldError, match="The key of a stored Line cannot change"):
        await half(line).save()
    for values in ({"number": 9}, {"tenant": two}, {"tenant_id": 1}):
        with pytest.raises(FieldError, match="is the key and cannot be updated"):
            await half(Line.objects).update(**values)
    with pytest.raises(FieldError, match="the key not among them"):
        await half(Line.objects).bulk_update([line], ["number"])


async def test_a_copy_is_saved_under_another_key(tables: Any, half: Any) -> None:
    one, two = await some_lines(half)
    line = await half(Line.objects.only("number")).get(pk=(one.pk, 2))
    line.number = 9
    await half(line).save(force_insert=True)
    assert line.pk == (one.pk, 9)
    line.pk = None
    with pytest.raises(FieldValueError, match="may not be null"):
        await half(line).save()
    assert line.pk is None
    line.pk = (two.pk, 9)
    await half(line).save(force_insert=True)
    copies = await half.rows(Line.objects.filter(title="one2").order_by("pk"))
    assert [copied.pk for copied in copies] == [(one.pk, 2), (one.pk, 9), (two.pk, 9)]


async def test_a_part_that_the_database_fills_is_filled_in_a_copy(tables: Any, half: Any) -> None:
    made = await half(Reading.objects).create(sensor=SENSOR, day=DAY, rank=decimal.Decimal(3))
    made.rank = None
    await half(made).save()
    assert made.rank == decimal.Decimal(1)
    assert await half(Reading.objects).count() == 2


async def test_expressions_in_attributes_are_saved_by_the_whole_key(tables: Any, half: Any) -> None:
    one, _ = await some_lines(half)
    lines = await half.rows(Line.objects.filter(tenant=one).order_by("pk"))
    lines[0].price = F("number") + 1
    await half(lines[0]).save()
    assert lines[0].price == decimal.Decimal(2)
    for line in lines:
        line.price = F("price") + F("number")
    assert await half(Line.objects).bulk_update(lines, ["price"]) == 3
    assert [line.price for line in lines] == [decimal.Decimal(n) for n in (3, 2, 3)]
    stored = await half.rows(Line.objects.order_by("pk").values_list("price", flat=True))
    assert stored == [decimal.Decimal(n) for n in (3, 2, 3, 0, 0, 0)]


async def test_encoded_parts_filled_parts_and_versions(tables: Any, half: Any) -> None:
    made = await half(Reading.objects).create(sensor=SENSOR, day=DAY, value=1)
    assert made.pk == (SENSOR, DAY, decimal.Decimal("1.00"))
    found = await half(Reading.objects).get(pk=made.pk)
    assert (found.pk, found.made) == (made.pk, made.made)
    found.value = 5
    await half(found).save()
    made.value = 6
    with pytest.raises(StaleObject, match="its version is no longer 1"):
        await half(made).save()
    await half(made).refresh()
    assert (made.value, made.version) == (5, 2)


async def test_bulk_writes_go_by_the_whole_key(tables: Any, half: Any) -> None:
    rows = [Reading(sensor=SENSOR, day=DAY, rank=decimal.Decimal(i)) for i in range(1, 6)]
    await half(Reading.objects).bulk_create(rows)
    for i, row in enumerate(rows):
        row.value = i
    assert await half(Reading.objects).bulk_update(rows, ["value"]) == 5
    stored = await half.rows(Reading.objects.order_by("pk"))
    assert [(row.value, row.version) for row in stored] == [(i, 2) for i in range(5)]
    assert [row.version for row in rows] == [2] * 5
    await half(Reading.objects).bulk_create(
        [Reading(sensor=SENSOR, day=DAY, rank=decimal.Decimal(2), value=40)],
        update_conflicts=["value"],
        unique_fields=["pk"],
    )
    assert (await half(Reading.objects).get(pk=rows[1].pk)).value == 40
    await half(Reading.objects).bulk_create(
        [Reading(sensor=SENSOR, day=DAY, rank=decimal.Decimal(2), value=50)],
        ignore_conflicts=True,
    )
    assert await half(Reading.objects.filter(value=50)).count() == 0


async def test_get_or_create_and_update_or_create(tables: Any, half: Any) -> None:
    one, _ = await some_lines(half)
    found, created = await half(Line.objects).get_or_create(tenant=one, number=1)
    assert (found.title, created) == ("one1", False)
    made, created = await half(Line.objects).update_or_create(
        tenant=one, number=8, defaults={"title": "new"}
    )
    assert (made.pk, created) == ((one.pk, 8), True)
    changed, created = await half(Line.objects).update_or_create(
        tenant=one, number=8, defaults={"title": "newer"}
    )
    assert (created, (await half(Line.objects).get(pk=changed.pk)).title) == (False, "newer")


async def test_a_rolled_back_insert_leaves_the_key_of_the_caller(tables: Any) -> None:
    tenant = await Tenant.objects.acreate(name="one")
    line = Line(tenant=tenant, number=1)
    async with transaction(rollback=True):
        await line.asave()
    assert line.pk == (tenant.pk, 1)
    assert await Line.objects.acount() == 0


async def test_columns_left_out_are_loaded_later(tables: Any, half: Any) -> None:
    await some_lines(half)
    lines = await half.rows(Line.objects.only("number").order_by("pk"))
    for line in lines:
        await half(line).load("title")
    assert [line.title for line in lines] == ["one1", "one2", "one3", "two1", "two2", "two3"]


def test_left_out_columns_are_loaded_for_the_whole_result(tables: Any) -> None:
    tenant = Tenant.objects.create(name="one")
    Line.objects.bulk_create([Line(tenant=tenant, number=i, title=str(i)) for i in range(3)])
    lines = list(Line.objects.defer("title").order_by("pk"))
    assert [line.title for line in lines] == ["0", "1", "2"]


# -- relations ------------------------------------------------------------------------------------


async def test_relations_of_the_key_are_loaded(tables: Any, half: Any) -> None:
    one, _ = await some_lines(half)
    line = await half(Line.objects.select_related("tenant")).get(pk=(one.pk, 1))
    assert line.tenant.name == "one"
    tenants = await half.rows(Tenant.objects.prefetch_related("lines").order_by("id"))
    assert [[line.number for line in tenant.lines.all()] for tenant in tenants] == [[1, 2, 3]] * 2
    lines = await half.rows(Line.objects.prefetch_related("tenant"))
    assert {line.tenant.name for line in lines} == {"one", "two"}


async def test_related_rows_are_made_and_deleted_with_their_target(tables: Any, half: Any) -> None:
    one, two = await some_lines(half)
    made = await half(one.lines).create(number=7)
    assert made.pk == (one.pk, 7)
    await half(two).delete()
    assert await half(Line.objects).count() == 4


async def test_many_to_many_through_rows_with_such_a_key(tables: Any, half: Any) -> None:
    shelf = await half(Shelf.objects).create(name="s")
    red, blue = await half(Label.objects).bulk_create([Label(text="red"), Label(text="blue")])
    await half(shelf.labels).add(red, blue)
    await half(shelf.labels).add(red)
    assert [badge.pk for badge in await half.rows(Badge.objects.order_by("pk"))] == [
        (shelf.pk, red.pk),
        (shelf.pk, blue.pk),
    ]
    await half(shelf.labels).remove(red)
    assert [label.text for label in await half.rows(shelf.labels.all())] == ["blue"]
    assert [s.name for s in await half.rows(Shelf.objects.filter(labels__text="blue"))] == ["s"]


# -- declarations ---------------------------------------------------------------------------------


def model(**body: Any) -> type[Model]:
    return type("Odd", (Model,), {"__module__": __name__, "_space": "faulty", **body})


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: CompositePrimaryKey("a"), "at least two different fields, got"),
        (lambda: CompositePrimaryKey("a", "a"), "at least two different fields, got"),
        (lambda: model(pk=CompositePrimaryKey("a", "b")), "Odd has no field 'a'"),
        (
            lambda: model(
                pk=CompositePrimaryKey("a", "b"),
                a=fields.IntegerField(primary_key=True),
                b=fields.IntegerField(),
            ),
            "Odd has two primary keys: 'a' and a, b",
        ),
        (
            lambda: model(
                pk=CompositePrimaryKey("a", "b"),
                a=fields.IntegerField(null=True),
                b=fields.IntegerField(),
            ),
            r"Odd\.a cannot be part of the primary key: drop null=True",
        ),
        (
            lambda: model(
                pk=CompositePrimaryKey("a", "b"),
                a=fields.JSONField(),
                b=fields.IntegerField(),
            ),
            r"Odd\.a cannot be part of the primary key: a JSONField has no order",
        ),
        (
            lambda: model(
                key=CompositePrimaryKey("a", "b"),
                a=fields.IntegerField(),
                b=fields.IntegerField(),
            ),
            r"Odd\.key must be called pk",
        ),
        (
            lambda: model(line=fields.ForeignKey(Line)),
            r"Odd\.line cannot use the primary key of Line, which has several columns",
        ),
        (
            lambda: model(line=fields.OneToOneField(Line)),
            r"Odd\.line cannot use the primary key of Line, which has several columns",
        ),
        (
            lambda: model(lines=fields.ManyToManyField(Line)),
            r"Odd\.lines cannot use the primary key of Line, which has several columns",
        ),
        (
            lambda: model(
                pk=CompositePrimaryKey("a", "b"),
                a=fields.IntegerField(),
                b=fields.IntegerField(),
                tags=fields.ManyToManyField(Tenant),
            ),
            r"Odd\.tags cannot use the primary key of Odd, which has several columns",
        ),
    ],
)
def test_keys_that_cannot_work_say_so(declare: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        declare()


def test_a_key_is_inherited_from_an_abstract_model() -> None:
    class Owned(Model):
        pk = CompositePrimaryKey("owner", "number")
        owner = fields.ForeignKey(Tenant, related_name="+")
        number = fields.IntegerField()

        class Meta:
            abstract = True

    class Paper(Owned):
        title = fields.CharField(max_length=10)

    assert [key.name for key in Paper._meta.keys] == ["owner", "number"]
    assert "id" not in Paper._meta.fields
    assert all(key.meta is Paper._meta for key in Paper._meta.keys)


@pytest.mark.parametrize("dialect", [SQLite(), Postgres()], ids=["sqlite", "postgres"])
def test_the_schema_has_the_columns_of_the_key(dialect: Any) -> None:
    table = table_of(Line._meta, dialect)
    assert table.primary_key == ("tenant_id", "number")
    assert 'PRIMARY KEY ("tenant_id", "number")' in statements(CreateTable(table), dialect)[0]


def test_the_schema_refuses_what_needs_one_column() -> None:
    columns = {"a": fields.IntegerField(), "b": fields.TextField()}
    found = model(
        pk=CompositePrimaryKey("a", "b"),
        **columns,
        Meta=type("Meta", (), {"indexes": [SearchIndex(["b"])]}),
    )
    with pytest.raises(UnsupportedFeature, match="needs a key that is an integer"):
        table_of(found._meta, SQLite())
    with pytest.raises(ModelError, match="must name the columns of the key"):
        model(
            pk=CompositePrimaryKey("a", "b"),
            a=fields.IntegerField(),
            b=fields.IntegerField(),
            Meta=type("Meta", (), {"constraints": [UniqueConstraint("pk")]}),
        )


def test_assign_takes_the_key_only_where_it_is_named() -> None:
    line = Line(pk=(1, 2))
    assert line.assign({"pk": [5, 6], "title": "x"}, fields=["title"]) == ["title"]
    assert line.pk == (1, 2)
    assert line.assign({"pk": [5, 6]}, fields=["pk"]) == ["pk"]
    assert line.pk == (5, 6)


def test_a_key_has_no_single_value_in_an_expression(tables: Any) -> None:
    for query in (
        lambda: Line.objects.annotate(x=F("pk") + 1),
        lambda: Line.objects.filter(number=F("pk")),
        lambda: Line.objects.order_by(F("pk") + 1),
    ):
        with pytest.raises(FieldError, match=r"key of several|over its key"):
            query()
