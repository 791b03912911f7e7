"""The schema as data and as SQL, and `create_all`."""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from orm_models import ALL, Author, Club, Order, Person, Post

from treefold_orm import (
    CheckConstraint,
    CheckViolation,
    Index,
    Lower,
    Model,
    ModelError,
    Q,
    UniqueConstraint,
    UniqueViolation,
    UnsupportedFeature,
    acreate_all,
    create_all,
    fields,
)
from treefold_orm._dialects.postgres import Postgres
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._schema.constants import literal
from treefold_orm._schema.create import plan_tables
from treefold_orm._schema.ddl import statements
from treefold_orm._schema.describe import table_of
from treefold_orm._schema.records import (
    AddForeignKey,
    CreateIndex,
    CreateTable,
    DropTable,
    ForeignKeyDef,
    IndexDef,
)


async def create(half: Any, *models: type[Model]) -> None:
    await half.call(lambda: create_all(*models), lambda: acreate_all(*models))


async def test_create_all_creates_what_is_missing_and_leaves_the_rest(
    empty: Any, half: Any
) -> None:
    await create(half, *ALL)
    await half(Author.objects).create(name="Ann")
    await create(half, *ALL)
    assert await half(Author.objects).count() == 1


async def test_connecting_tables_come_with_their_models(empty: Any, half: Any) -> None:
    await create(half, Person)
    ann, bob = [await half(Person.objects).create(name=name) for name in ("Ann", "Bob")]
    await half(ann.friends).add(bob)
    assert await half(bob.friend_of).count() == 1


async def test_tables_that_point_to_each_other_can_be_created(empty: Any, half: Any) -> None:
    class Hen(Model):
        egg = fields.ForeignKey("Egg", null=True, related_name="+")

    class Egg(Model):
        hen = fields.ForeignKey(Hen, null=True, related_name="eggs")

    await create(half, Hen, Egg)
    hen = await half(Hen.objects).create()
    egg = await half(Egg.objects).create(hen=hen)
    await half(Hen.objects).update(egg=egg)
    assert (await half(Hen.objects.select_related("egg")).get()).egg == egg


async def test_partial_unique_constraints_and_expression_indexes(empty: Any, half: Any) -> None:
    class Seat(Model):
        row = fields.IntegerField()
        name = fields.CharField(max_length=10)
        taken = fields.BooleanField(default=False)

        class Meta:
            constraints = (
                UniqueConstraint(["row"], name="one_taken", condition=Q(taken=True)),
                CheckConstraint(Q(row__gte=1) & ~Q(name="it's"), name="sane"),
            )
            indexes = (Index([Lower("name")], name="lowered"), Index(["row", "-name"]))

    await create(half, Seat)
    await half(Seat.objects).bulk_create(
        [Seat(row=1, name="a"), Seat(row=1, name="b"), Seat(row=1, name="c", taken=True)]
    )
    with pytest.raises(UniqueViolation, match=r"Seat\.row exists already"):
        await half(Seat.objects).create(row=1, name="d", taken=True)


async def test_a_check_over_a_list_of_values(empty: Any, half: Any) -> None:
    class Ticket(Model):
        state = fields.CharField(max_length=10)
        price = fields.DecimalField(max_digits=6, decimal_places=2)

        class Meta:
            constraints = (
                CheckConstraint(Q(state__in=["new", "it's"]), name="known_state"),
                CheckConstraint(~Q(price__in=[decimal.Decimal("1.50"), 2]), name="other_price"),
            )

    await create(half, Ticket)
    await half(Ticket.objects).create(state="it's", price=3)
    with pytest.raises(CheckViolation, match="known_state"):
        await half(Ticket.objects).create(state="old", price=3)
    with pytest.raises(CheckViolation, match="other_price"):
        await half(Ticket.objects).create(state="new", price="1.50")


def test_a_table_is_plain_data_that_can_be_compared() -> None:
    table = table_of(Post._meta, SQLite())
    assert table == table_of(Post._meta, SQLite())
    assert (table.name, table.primary_key) == ("post", ("id",))
    assert [c.name for c in table.columns] == [
        "id",
        "title",
        "body",
        "views",
        "author_id",
        "editor_id",
    ]
    assert table.foreign_keys[0] == ForeignKeyDef(
        "fk_post_author_id", "author_id", "author", "id", "RESTRICT"
    )
    assert [i.name for i in table.indexes] == ["ix_post_author_id", "ix_post_editor_id"]
    order = table_of(Order._meta, Postgres())
    assert [u.name for u in order.uniques] == ["one_number_per_shop", "one_unpaid"]
    assert order.checks[0].name == "total_not_negative"


def test_targets_come_before_what_points_to_them() -> None:
    names = [
        op.table.name
        for op in plan_tables([m._meta for m in ALL], Postgres())
        if isinstance(op, CreateTable)
    ]
    assert (
        names.index("country")
        < names.index("author")
        < names.index("post")
        < names.index("comment")
    )
    assert names.index("person") < names.index("membership")
    assert Club._meta.table_name in names


def test_operations_become_statements() -> None:
    index = IndexDef("ix", ('"a"', '"b" DESC'), '"a" > 1')
    assert statements(CreateIndex("t", index, unique=True), SQLite()) == [
        'CREATE UNIQUE INDEX "ix" ON "t" ("a", "b" DESC) WHERE "a" > 1'
    ]
    assert statements(DropTable("t", if_present=True), Postgres()) == ['DROP TABLE IF EXISTS "t"']
    key = ForeignKeyDef("fk", "a", "u", "id", "SET_NULL")
    assert statements(AddForeignKey("t", key), Postgres()) == [
        'ALTER TABLE "t" ADD CONSTRAINT "fk" FOREIGN KEY ("a") '
        'REFERENCES "u" ("id") ON DELETE SET NULL'
    ]
    with pytest.raises(UnsupportedFeature, match="SQLite cannot add a foreign key to a table"):
        statements(AddForeignKey("t", key), SQLite())


def test_sqlite_tables_are_strict_and_check_lengths() -> None:
    sql = statements(CreateTable(table_of(Author._meta, SQLite())), SQLite())[0]
    assert sql.endswith(") STRICT")
    assert 'CONSTRAINT "ck_author_name" CHECK (length("name") <= 40)' in sql
    assert '"id" INTEGER PRIMARY KEY' in sql


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (5, "5"),
        (0.5, "0.5"),
        ("it's", "'it''s'"),
        ("\\", "'\\'"),
        (["a", 1], "ARRAY['a', 1]"),
    ],
)
def test_literals_for_ddl(value: Any, wanted: str) -> None:
    assert literal(value, Postgres()) == wanted


def test_declarations_that_cannot_become_a_schema_say_so() -> None:
    with pytest.raises(ModelError, match="NUL character cannot stand in a constraint or index"):
        literal("a\0b", SQLite())
    with pytest.raises(ModelError, match="UniqueConstraint needs at least one field"):
        UniqueConstraint([])
    with pytest.raises(ModelError, match="CheckConstraint needs a name"):
        CheckConstraint(Q(a=1), name="")
    with pytest.raises(ModelError, match="Index needs at least one field or expression"):
        Index([])
    with pytest.raises(ModelError, match="Index over expressions needs a name"):
        Index([Lower("name")])

    class Far(Model):
        author = fields.ForeignKey(Author, related_name="+")

        class Meta:
            constraints = (CheckConstraint(Q(author__name="x"), name="far"),)

    with pytest.raises(
        ModelError, match="Far: constraints and indexes cannot look into another table"
    ):
        table_of(Far._meta, SQLite())
