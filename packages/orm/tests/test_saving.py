"""Saving instances: what changed, versions, bulk writes, upserts, streaming, pickling."""

from __future__ import annotations

import asyncio
import copy
import decimal
import pickle
import traceback
from typing import Any, LiteralString

import pytest
from orm_models import Author, Country, Everything, Keyed, Order, Post, Tag

from treefold_orm import (
    CheckViolation,
    DatabaseError,
    F,
    FieldError,
    ForeignKeyViolation,
    IntegrityError,
    NotNullViolation,
    StaleObject,
    UniqueViolation,
    acreate_all,
    araw,
    configure,
    create_all,
    raw,
    record_queries,
    transaction,
)
from treefold_orm.testing import sandbox


def order(number: int = 1, shop: str = "s", total: str = "1.00") -> Order:
    return Order(number=number, shop=shop, total=decimal.Decimal(total))


async def test_save_writes_only_what_changed(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann", age=30)
    mine = await half(Author.objects).get(pk=made.pk)
    await half(Author.objects).update(age=31)
    mine.name = "Anna"
    with record_queries() as seen:
        await half(mine).save()
        await half(mine).save()
    assert len(seen) == 1
    assert '"age"' not in seen.events[0].sql
    fresh = await half(Author.objects).get(pk=made.pk)
    assert (fresh.name, fresh.age) == ("Anna", 31)


async def test_changes_inside_of_json_are_noticed(db: Any, half: Any) -> None:
    made = await half(Everything.objects).create(data={"a": [1]})
    made.data["a"].append(2)
    await half(made).save()
    found = await half(Everything.objects).get()
    found.data["b"] = 3
    await half(found).save()
    assert (await half(Everything.objects).get()).data == {"a": [1, 2], "b": 3}


async def test_update_fields_limits_what_is_written(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann", age=30)
    made.name, made.age = "Anna", 31
    await half(made).save(update_fields=["age"])
    fresh = await half(Author.objects).get(pk=made.pk)
    assert (fresh.name, fresh.age) == ("Ann", 31)
    with pytest.raises(FieldError, match="Author has no field 'nothing'"):
        await half(made).save(update_fields=["nothing"])
    with pytest.raises(FieldError, match=r"save\(update_fields=...\) cannot insert a new Author"):
        await half(Author(name="x")).save(update_fields=["name"])


async def test_saving_a_deleted_row_is_refused(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann")
    await half(Author.objects).delete()
    made.name = "Anna"
    with pytest.raises(
        StaleObject, match=rf"Author with key {made.pk} was deleted since it was read; save\(force_"
    ):
        await half(made).save()


async def test_a_version_field_refuses_lost_updates(db: Any, half: Any) -> None:
    made = await half(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
    other = await half(Order.objects).get(pk=made.pk)
    other.total = decimal.Decimal(2)
    await half(other).save()
    assert other.version == 2
    made.total = decimal.Decimal(3)
    with pytest.raises(
        StaleObject,
        match=rf"Order with key {made.pk} was changed since it was read",
    ):
        await half(made).save()
    assert made.version == 1
    await half(made).refresh()
    made.total = decimal.Decimal(3)
    await half(made).save()
    assert (await half(Order.objects).get()).version == 3


async def test_a_version_field_refuses_to_delete_a_changed_row(db: Any, half: Any) -> None:
    made = await half(Order.objects).create(number=1, shop="a", total=decimal.Decimal("1"))
    other = await half(Order.objects).get()
    partly = await half(Order.objects.only("paid")).get()
    other.total = decimal.Decimal("2")
    await half(other).save()
    for stale in (made, partly):
        stale.version = 2  # what the row was read with counts
        with pytest.raises(StaleObject, match=r"its version is no longer 1; .* and delete\(\) it"):
            await half(stale).delete()
    assert await half(Order.objects).count() == 1
    made.total = decimal.Decimal("3")  # still a stored row
    with pytest.raises(StaleObject, match="apply the change again"):
        await half(made).save()
    await half(made).refresh_from_db()
    assert await half(made).delete() == 1
    assert await half(other).delete() == 0  # it was gone
    unread = Order(id=made.pk, number=2, shop="a", total=decimal.Decimal("1"))
    await half(Order.objects).create(
        id=made.pk, number=2, shop="b", total=decimal.Decimal("1"), version=9
    )
    assert await half(unread).delete() == 1  # a key alone names the row


async def test_a_column_that_is_read_alone_does_not_renew_the_version(db: Any, half: Any) -> None:
    made = await half(Order.objects).create(number=1, shop="s", total=decimal.Decimal(5))
    mine = await half(Order.objects).get()
    partly = await half(Order.objects.only("total")).get()
    await half(Order.objects).update(total=decimal.Decimal(3), paid=True)
    await half(mine).refresh_from_db(fields=["paid"])
    await half(partly).load("paid")
    for each in (mine, partly):
        assert (each.paid, each.version) == (True, 1)
        each.total -= 1  # of the five that are no longer there
        with pytest.raises(StaleObject, match="its version is no longer 1"):
            await half(each).save()
        await half(each).refresh_from_db(fields=["total", "version"])
        assert (each.total, each.version) == (3, 2)
    assert (await half(Order.objects).get(pk=made.pk)).total == 3


async def test_an_update_of_rows_makes_what_was_read_before_stale(db: Any, half: Any) -> None:
    made = await half(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
    assert await half(Order.objects.filter(number=1)).update(total=F("total") + 1) == 1
    made.paid = True
    with pytest.raises(
        StaleObject,
        match=rf"Order with key {made.pk} was changed since it was read",
    ):
        await half(made).save()
    assert (await half(Order.objects).get()).version == 2
    assert await half(Order.objects).update(version=7) == 1
    assert (await half(Order.objects).get()).version == 7


async def test_bulk_update_refuses_lost_updates(db: Any, half: Any) -> None:
    await half(Order.objects).bulk_create([order(n) for n in range(5)])
    mine = [each async for each in Order.objects.order_by("number").aiterator()]
    theirs = await half(Order.objects).get(number=3)
    theirs.shop = "t"
    await half(theirs).save()
    for each in mine:
        each.paid = True
    with pytest.raises(
        StaleObject, match="One Order of these was changed or deleted since it was read"
    ):
        await half(Order.objects).bulk_update(mine, ["paid"], batch_size=2)
    assert await half(Order.objects.filter(paid=True)).count() == 0
    assert [each.version for each in mine] == [1] * 5

    await half(mine[3]).refresh()
    mine[3].paid = True
    assert await half(Order.objects).bulk_update([*mine, mine[0]], ["paid"], batch_size=2) == 5
    assert [each.version for each in mine] == [2, 2, 2, 3, 2]
    assert sorted([each.version async for each in Order.objects.all()]) == [
        2,
        2,
        2,
        2,
        3,
    ]
    mine[0].shop = "u"
    await half(mine[0]).save()
    with pytest.raises(FieldError, match=r"Order.version counts the writes"):
        await half(Order.objects).bulk_update(mine, ["version"])


async def test_an_upsert_makes_what_was_read_before_stale(db: Any, half: Any) -> None:
    made = await half(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
    (stored,) = await half(Order.objects).bulk_create(
        [order(1, total="5.00")], update_conflicts=["total"], unique_fields=["shop", "number"]
    )
    made.paid = True
    with pytest.raises(
        StaleObject,
        match=rf"Order with key {made.pk} was changed since it was read",
    ):
        await half(made).save()
    assert (await half(Order.objects).get()).version == 2
    stored.paid = True
    await half(stored).save()
    assert (await half(Order.objects).get()).version == 3


async def test_the_key_of_a_stored_row_cannot_change(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann")
    made.id = 99
    with pytest.raises(FieldError, match="The key of a stored Author cannot change, got 99"):
        await half(made).save()


async def test_delete_and_save_again(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann")
    assert await half(made).delete() == 1
    assert await half(made).delete() == 0
    made.name = "Anna"
    with pytest.raises(StaleObject, match=rf"Author with key {made.pk} was deleted; save\(force_"):
        await half(made).save()
    await half(made).save(force_insert=True)
    assert (await half(Author.objects).get(pk=made.pk)).name == "Anna"
    with pytest.raises(FieldError, match="This Author has no key: it was never saved"):
        await half(Author(name="x")).delete()


async def test_refresh_reads_named_columns_or_all(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann", age=1)
    await half(Author.objects).update(name="Anna", age=2)
    await half(made).refresh("age")
    assert (made.name, made.age) == ("Ann", 2)
    await half(made).refresh()
    assert made.name == "Anna"
    await half(Author.objects).delete()
    with pytest.raises(Author.DoesNotExist, match=rf"Author with key {made.pk} does not exist"):
        await half(made).refresh()


async def test_violations_name_model_and_fields_and_no_values(db: Any, half: Any) -> None:
    await half(Country.objects).create(name="hunter2")
    with pytest.raises(UniqueViolation, match=r"Country.name exists already") as caught:
        await half(Country.objects).create(name="hunter2")
    assert (caught.value.model, caught.value.fields) == ("Country", ("name",))
    await half(order()).save()
    with pytest.raises(UniqueViolation, match=r"Order\.shop, number exists already") as caught:
        await half(order()).save()
    assert (caught.value.model, caught.value.fields) == ("Order", ("shop", "number"))
    with pytest.raises(
        CheckViolation, match="The check constraint 'total_not_negative' is not met"
    ) as broken:
        await half(Order.objects).update(total=decimal.Decimal(-1))
    assert broken.value.constraint == "total_not_negative"


async def test_s_109_errors_hold_no_values_anywhere(db: Any, half: Any) -> None:
    await half(Country.objects).create(name="hunter2")
    with pytest.raises(UniqueViolation, match=r"Country\.name exists already") as caught:
        await half(Country.objects).create(name="hunter2")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    text = "".join(traceback.format_exception(caught.value))
    assert "Key (" not in text
    assert "hunter2" not in text.replace('name="hunter2"', "")


VIOLATIONS: dict[str, tuple[type[IntegrityError], LiteralString]] = {
    "foreign key": (ForeignKeyViolation, "UPDATE author SET country_id = :secret"),
    "check": (CheckViolation, 'UPDATE "order" SET total = 0 - :secret'),
    "not null": (NotNullViolation, "UPDATE author SET name = NULL"),
}


@pytest.mark.parametrize(("error", "sql"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
async def test_s_109_no_kind_of_violation_quotes_its_row(
    db: Any, half: Any, error: type[IntegrityError], sql: LiteralString
) -> None:
    """PostgreSQL tells the key, or the whole row that fails."""
    secret = 424_242
    await half(Author.objects).create(name="Ann", age=secret)
    await half(order()).save()
    options: dict[str, Any] = {"secret": secret} if ":secret" in sql else {}
    with pytest.raises(error) as caught:
        await half.call(lambda: raw(sql, **options), lambda: araw(sql, **options))
    text = "".join(traceback.format_exception(caught.value))
    assert "424242" not in text
    assert "Ann" not in text


async def test_a_missing_value_is_named(empty: Any, half: Any) -> None:
    await half.call(lambda: create_all(Country), lambda: acreate_all(Country))
    with pytest.raises(NotNullViolation, match=r"Country\.name may not be null") as caught:
        await half.call(
            lambda: raw("INSERT INTO country (name) VALUES (:name)", name=None),
            lambda: araw("INSERT INTO country (name) VALUES (:name)", name=None),
        )
    assert (caught.value.model, caught.value.fields) == ("Country", ("name",))


# -- many rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 7, 1201])
async def test_bulk_create_sets_keys_in_order(db: Any, half: Any, count: int) -> None:
    made = await half(Tag.objects).bulk_create([Tag(name=f"t{i}") for i in range(count)])
    found = {t.pk: t.name for t in await half.rows(Tag.objects.all())}
    assert [found[t.pk] for t in made] == [f"t{i}" for i in range(count)]
    for tag in made[:2]:
        tag.name = f"changed {tag.pk}"
        await half(tag).save()
    assert await half(Tag.objects.filter(name__startswith="changed")).count() == min(count, 2)


async def test_bulk_create_takes_every_type_and_mixed_keys(db: Any, half: Any) -> None:
    rows = [
        Everything(id=5, integer=1, data={"a": 1}, money=decimal.Decimal("1.5")),
        Everything(text="x", flag=True, blob=b"1"),
    ]
    await half(Everything.objects).bulk_create(rows)
    found = await half.rows(Everything.objects.order_by("integer"))
    assert [(e.integer, e.data, e.money, e.text, e.blob) for e in found] == [
        (1, {"a": 1}, decimal.Decimal("1.500"), None, None),
        (None, None, None, "x", b"1"),
    ]
    keyed = await half(Keyed.objects).bulk_create([Keyed(label="a"), Keyed(label="b")])
    assert await half(Keyed.objects.filter(pk__in=[k.code for k in keyed])).count() == 2


async def test_bulk_create_is_all_or_nothing(db: Any, half: Any) -> None:
    rows = [Tag(name=f"t{i}") for i in range(1100)]
    with pytest.raises(UniqueViolation, match=r"Tag\.name exists already"):
        await half(Tag.objects).bulk_create([*rows, Tag(name="t5")])
    assert await half(Tag.objects).count() == 0


async def test_upserts(db: Any, half: Any) -> None:
    await half(order(1, total="1.00")).save()
    fresh = [order(1, total="5.00"), order(2, total="6.00")]
    await half(Order.objects).bulk_create(
        fresh, ignore_conflicts=True, unique_fields=["shop", "number"]
    )
    assert [str(o.total) for o in await half.rows(Order.objects.order_by("number"))] == [
        "1.00",
        "6.00",
    ]
    again = [order(1, total="5.00"), order(2, total="7.00")]
    await half(Order.objects).bulk_create(
        again, update_conflicts=["total"], unique_fields=["shop", "number"]
    )
    assert [str(o.total) for o in await half.rows(Order.objects.order_by("number"))] == [
        "5.00",
        "7.00",
    ]


async def test_an_upsert_gives_the_keys_of_new_and_of_changed_rows(db: Any, half: Any) -> None:
    stored = order(1, total="1.00")
    stored.paid = True
    await half(stored).save()
    rows = [order(1, total="5.00"), order(2, total="6.00")]
    await half(Order.objects).bulk_create(
        rows, update_conflicts=["total"], unique_fields=["shop", "number"]
    )
    by_number = {o.number: o for o in await half.rows(Order.objects.all())}
    assert [row.pk for row in rows] == [by_number[1].pk, by_number[2].pk]
    assert by_number[1].pk == stored.pk
    assert by_number[1].paid  # only the named column was updated
    await half(rows[0]).save()  # and the instance, which says otherwise, writes the difference
    assert not (await half(Order.objects).get(pk=stored.pk)).paid


async def test_an_upsert_by_a_key_that_python_makes(db: Any, half: Any) -> None:
    first = await half(Keyed.objects).create(label="old")
    rows = [Keyed(code=first.code, label="new"), Keyed(label="other")]
    await half(Keyed.objects).bulk_create(rows, update_conflicts=["label"], unique_fields=["pk"])
    found = await half.rows(Keyed.objects.order_by("label"))
    assert [(k.code, k.label) for k in found] == [(r.code, r.label) for r in rows]
    with record_queries() as seen:
        await half(rows[0]).save()
    assert len(seen) == 0  # it is known to be stored as it is


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update_conflicts": ["total"]}, "update_conflicts needs unique_fields"),
        ({"unique_fields": ["shop"]}, "unique_fields needs update_conflicts or ignore_conflicts"),
        ({"ignore_conflicts": True, "update_conflicts": ["total"]}, "exclude each other"),
        ({"update_conflicts": ["x; --"], "unique_fields": ["shop"]}, "Order has no field"),
        ({"batch_size": 0}, "batch_size=0 must be a number"),
    ],
)
async def test_wrong_bulk_options_say_what_is_wrong(
    db: Any, half: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(FieldError, match=message):
        await half(Order.objects).bulk_create([order()], **options)


async def test_bulk_update_writes_many_rows_with_few_statements(db: Any, half: Any) -> None:
    rows = await half(Author.objects).bulk_create([Author(name=f"a{i}", age=i) for i in range(300)])
    for row in rows:
        row.age = None if row.age == 7 else (row.age or 0) + 1000
    with record_queries() as seen:
        assert await half(Author.objects).bulk_update(rows, ["age"]) == 300
    assert len(seen) < 10
    found = {a.name: a.age for a in await half.rows(Author.objects.all())}
    assert (found["a7"], found["a8"], found["a299"]) == (None, 1008, 1299)
    with pytest.raises(FieldError, match="the key not among them"):
        await half(Author.objects).bulk_update(rows, ["id"])
    with pytest.raises(FieldError, match="one Author has no key"):
        await half(Author.objects).bulk_update([Author(name="x")], ["age"])


async def test_what_bulk_update_wrote_is_not_written_again(db: Any, half: Any) -> None:
    mine = await half(Author.objects).create(name="Ann", age=30)
    lean = await half(Author.objects.only("name")).get(pk=mine.pk)
    mine.age, lean.age = 31, 31
    mine.name = "Anna"
    assert await half(Author.objects).bulk_update([mine], ["age"]) == 1
    assert await half(Author.objects).bulk_update([lean], ["age"]) == 1
    await half(Author.objects.filter(pk=mine.pk)).update(age=32)
    for author in (mine, lean):
        await half(author).save()
    stored = await half(Author.objects).get(pk=mine.pk)
    assert (stored.name, stored.age) == ("Anna", 32)


async def test_in_bulk(db: Any, half: Any) -> None:
    rows = await half(Tag.objects).bulk_create([Tag(name=f"t{i}") for i in range(5)])
    found = await half(Tag.objects).in_bulk([rows[1].pk, rows[3].pk, -1])
    assert {key: tag.name for key, tag in found.items()} == {rows[1].pk: "t1", rows[3].pk: "t3"}
    by_name = await half(Tag.objects).in_bulk(["t2"], field="name")
    assert by_name["t2"].pk == rows[2].pk
    assert await half(Tag.objects).in_bulk([]) == {}
    assert len(await half(Tag.objects).in_bulk()) == 5
    assert set(await half(Tag.objects.filter(name="t1")).in_bulk(field="name")) == {"t1"}
    with pytest.raises(FieldError, match="needs a unique field"):
        await half(Author.objects).in_bulk(["x"], field="name")


async def test_iterators_stream_in_chunks(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann")
    await half(Post.objects).bulk_create(
        [Post(title=f"p{i:04}", author=author) for i in range(1000)]
    )
    query = Post.objects.order_by("title")
    assert [p.title for p in await half.iterate(query, 7)] == [f"p{i:04}" for i in range(1000)]
    assert (await half.iterate(query.values_list("title", flat=True), 400))[-1] == "p0999"
    found = await half.iterate(query.filter(title__lt="p0003").prefetch_related("author"), 2)
    assert [p.author.name for p in found] == ["Ann"] * 3


async def test_a_stream_that_is_left_early_frees_its_connection(db: Any, place: Any) -> None:
    await Tag.objects.abulk_create([Tag(name=f"t{i}") for i in range(50)])
    place.configure(pool_size=1)
    stream = Tag.objects.aiterator(5)
    async for _ in stream:
        break
    await stream.aclose()
    assert await asyncio.wait_for(Tag.objects.acount(), 5) == 50


async def renamed_while_streaming(half: Any) -> list[str]:
    """Write each row of a stream while it goes on."""
    query = Tag.objects.order_by("name")

    def work() -> None:
        for tag in query.iterator(2):
            assert not transaction.active()
            Tag.objects.filter(pk=tag.pk).update(name=f"new {tag.name}")

    async def awork() -> None:
        async for tag in query.aiterator(2):
            assert not transaction.active()
            await Tag.objects.filter(pk=tag.pk).aupdate(name=f"new {tag.name}")

    await half.call(work, awork)
    return [tag.name for tag in await half.rows(query)]


async def test_the_rows_of_a_stream_can_be_changed_while_it_goes_on(
    db: Any, place: Any, half: Any
) -> None:
    await half(Tag.objects).bulk_create([Tag(name=f"t{i}") for i in range(5)])
    assert await renamed_while_streaming(half) == [f"new t{i}" for i in range(5)]
    with sandbox():
        assert await renamed_while_streaming(half) == [f"new new t{i}" for i in range(5)]
    if place.engine == "sqlite":
        configure("sqlite", ":memory:")  # where all share one connection
        await half.call(lambda: create_all(Tag), lambda: acreate_all(Tag))
        await half(Tag.objects).bulk_create([Tag(name=f"t{i}") for i in range(5)])
        assert await renamed_while_streaming(half) == [f"new t{i}" for i in range(5)]


async def test_a_stream_that_nobody_finishes_frees_its_connection(
    db: Any, place: Any, half: Any
) -> None:
    await half(Tag.objects).bulk_create([Tag(name=f"t{i}") for i in range(50)])
    place.configure(pool_size=1)

    def work() -> None:
        for _ in range(10):
            for _ in Tag.objects.iterator(5):
                break
            Tag.objects.create(name=f"new {Tag.objects.count()}")

    async def awork() -> None:
        for _ in range(10):
            async for _ in Tag.objects.aiterator(5):
                break
            await Tag.objects.acreate(name=f"new {await Tag.objects.acount()}")

    await asyncio.wait_for(half.call(work, awork), 60)
    assert await half(Tag.objects).count() == 60


async def test_a_stream_can_run_inside_a_transaction(db: Any) -> None:
    async with transaction():
        await Tag.objects.abulk_create([Tag(name=f"t{i}") for i in range(5)])
        assert [t.name async for t in Tag.objects.order_by("name").aiterator(2)] == [
            f"t{i}" for i in range(5)
        ]


async def test_instances_travel_and_copy(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann", age=3)
    found = (await half.rows(Author.objects.all()))[0]
    for twin in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):
        assert twin == made
        twin.age = 4
        await half(twin).save()
        assert (await half(Author.objects).get()).age == 4
        twin.age = 3
        await half(twin).save()


# -- SQL of one's own -----------------------------------------------------------------------------


async def test_raw_rows_become_instances_with_bound_values(db: Any, half: Any) -> None:
    await half(Author.objects).bulk_create(
        [Author(name="it's :fine", age=1), Author(name="b", age=2)]
    )
    found = await half(Author.objects).raw(
        "SELECT id, name FROM author WHERE age < :top AND name <> ':no' -- :x", top=2
    )
    assert [a.name for a in found] == ["it's :fine"]
    assert not found[0].is_loaded("age")
    rows = await half.call(
        lambda: raw("SELECT name, age FROM author WHERE name = :n", n="b"),
        lambda: araw("SELECT name, age FROM author WHERE name = :n", n="b"),
    )
    assert rows == [{"name": "b", "age": 2}]


@pytest.mark.parametrize(
    ("sql", "values", "message"),
    [
        ("SELECT :x", {}, "Raw SQL uses :x, which is not given"),
        ("SELECT 1", {"x": 1}, "Raw SQL does not use 'x'"),
        ("SELECT 1 AS other", {}, "gives a column 'other', which Author does not have"),
        ("SELECT name FROM author", {}, "must give 'id', and each column once"),
        (5, {}, "Raw SQL takes literal text, not int"),
        ("SELECT '\0'", {}, "NUL"),
    ],
)
async def test_wrong_raw_queries_say_what_is_wrong(
    db: Any, half: Any, sql: Any, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(FieldError, match=message):
        await half(Author.objects).raw(sql, **values)


async def test_a_second_statement_is_refused(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann")
    with pytest.raises(DatabaseError, match=r"one statement|multiple commands"):
        await half(Author.objects).raw("SELECT id FROM author; DELETE FROM author")
    assert await half(Author.objects).count() == 1
