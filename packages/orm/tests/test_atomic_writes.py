"""Whatever writes with several statements is atomic, in both halves: a failure in the middle leaves
neither rows nor keys behind, outside of a transaction and inside of one.
"""

from __future__ import annotations

import asyncio
import contextlib
import decimal
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import SHOP, Author, Club, Keyed, Order, Person, Post, Tag

from treefold_orm import (
    DatabaseError,
    ForeignKeyViolation,
    IntegrityError,
    Model,
    StaleObject,
    UniqueViolation,
    acreate_all,
    araw,
    create_all,
    fields,
    raw,
    transaction,
)

Case = Callable[[Handle], Awaitable[tuple[Callable[[], Awaitable[Any]], list[Any]]]]


class Boxed(Model):
    """Arrays and keys of its own: neither travels as one array of a column."""

    _space = "arrays"  # not among the models that `create_all()` makes without a name
    name = fields.CharField(max_length=20, unique=True)
    parts = fields.ArrayField(fields.TextField())


def order(number: int, total: int = 1) -> Order:
    return Order(number=number, shop="s", total=decimal.Decimal(total))


async def few_rows(h: Handle) -> Any:
    tags = [Tag(name=name) for name in ("new", "other", "taken")]
    return lambda: h(Tag.objects).bulk_create(tags), tags


async def small_batches(h: Handle) -> Any:
    tags = [Tag(name=name) for name in ("new", "taken")]
    return lambda: h(Tag.objects).bulk_create(tags, batch_size=1), tags


async def many_rows(h: Handle) -> Any:
    tags = [*(Tag(name=f"n{n}") for n in range(600)), Tag(name="taken")]
    return lambda: h(Tag.objects).bulk_create(tags, batch_size=300), tags


async def mixed_keys(h: Handle) -> Any:
    tags = [Tag(pk=77, name="new"), Tag(name="taken")]
    return lambda: h(Tag.objects).bulk_create(tags), tags[1:]


async def upserts(h: Handle) -> Any:
    orders = [order(1), order(2), order(3, total=-1)]
    return lambda: h(Order.objects).bulk_create(
        orders, batch_size=1, update_conflicts=["total"], unique_fields=["shop", "number"]
    ), orders


async def bulk_updates(h: Handle) -> Any:
    orders = [order(number) for number in (1, 2)]
    await h(Order.objects).bulk_create(orders)
    orders[0].total, orders[1].total = decimal.Decimal(5), decimal.Decimal(-5)
    return lambda: h(Order.objects).bulk_update(orders, ["total"], batch_size=1), []


async def stale_bulk_updates(h: Handle) -> Any:
    orders = [order(number) for number in (1, 2)]
    await h(Order.objects).bulk_create(orders)
    await h(Order.objects.filter(number=2)).update(paid=True)
    for each in orders:
        each.total = decimal.Decimal(5)
    return lambda: h(Order.objects).bulk_update(orders, ["total"]), []


async def update_or_create(h: Handle) -> Any:
    await h(Order.objects).bulk_create([order(1), order(2)])
    return lambda: h(Order.objects).update_or_create(number=1, defaults={"number": 2}), []


async def get_or_create(h: Handle) -> Any:
    return lambda: h(Tag.objects.filter(pk__lt=0)).get_or_create(name="taken"), []


async def setting(h: Handle) -> Any:
    post = await post_with_tag(h)
    return lambda: h(post.tags).set([9999]), []


async def adding(h: Handle) -> Any:
    post = await post_with_tag(h)
    tag = await h(Tag.objects).create(name="second")
    return lambda: h(post.tags).add(*[tag.pk] * 2, *range(9000, 9700)), []


async def adding_through_a_model(h: Handle) -> Any:
    club = await h(Club.objects).create(name="c")
    person = await h(Person.objects).create(name="p")
    return lambda: h(club.members).add(person, 9998, 9999), []


async def creating_related(h: Handle) -> Any:
    post = await post_with_tag(h)
    await h(post.tags).clear()
    await h(Post.objects).delete()
    return lambda: h(post.tags).create(name="orphan"), []


async def post_with_tag(h: Handle) -> Post:
    author = await h(Author.objects).create(name="Ann")
    post = await h(Post.objects).create(title="p", author=author)
    await h(post.tags).create(name="first")
    return post


CASES: list[tuple[Case, type[Exception]]] = [
    (few_rows, UniqueViolation),
    (small_batches, UniqueViolation),
    (many_rows, UniqueViolation),
    (mixed_keys, UniqueViolation),
    (upserts, IntegrityError),
    (bulk_updates, IntegrityError),
    (stale_bulk_updates, StaleObject),
    (update_or_create, UniqueViolation),
    (get_or_create, UniqueViolation),
    (setting, ForeignKeyViolation),
    (adding, ForeignKeyViolation),
    (adding_through_a_model, ForeignKeyViolation),
    (creating_related, ForeignKeyViolation),
]
ONE = (few_rows, adding)
"""What PostgreSQL takes as one statement, which aborts a transaction like any other that fails."""
COUNTED = (Tag, Order, Post, Person, Club, Keyed)


async def contents(h: Handle) -> dict[str, list[Any]]:
    """Every row of the tables that the cases write."""
    found = {m.__name__: sorted(await h.rows(m.objects.values_list())) for m in COUNTED}
    for table, columns in (("post_tags", "post_id, tag_id"), ("membership", "club_id, person_id")):
        sql: Any = f"SELECT {columns} FROM {table} ORDER BY 1, 2"
        found[table] = await araw(sql) if h.name == "async" else _blocking(sql)
    return found


def _blocking(sql: Any) -> list[Any]:
    return raw(sql)


async def nested(h: Handle, work: Callable[[], Awaitable[Any]]) -> None:
    async with h.transaction():
        await work()


@pytest.mark.parametrize(("case", "error"), CASES, ids=lambda c: getattr(c, "__name__", ""))
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
async def test_a_failure_in_the_middle_leaves_nothing(
    db: Any, half: Any, engine: str, case: Any, error: type[Exception], inside: bool
) -> None:
    async def body(h: Handle) -> None:
        await h(Tag.objects).create(name="taken")
        work, instances = await case(h)
        before = await contents(h)
        if not inside:
            with pytest.raises(error, match=r"."):
                await work()
        else:
            async with h.transaction():
                await h(Keyed.objects).create(code="00000000-0000-0000-0000-000000000001", label="")
                with pytest.raises(error, match=r"."):
                    await (nested(h, work) if engine == "postgres" and case in ONE else work())
            await h(Keyed.objects).delete()
        assert await contents(h) == before
        assert [each.pk for each in instances] == [None] * len(instances)

    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_arrays_are_inserted_together_or_not_at_all(empty: Any, half: Any) -> None:
    await acreate_all(Boxed)

    async def body(h: Handle) -> None:
        rows = [Boxed(name=name, parts=["x"]) for name in ("a", "b", "b")]
        with pytest.raises(UniqueViolation, match=r"Boxed.name exists already"):
            await h(Boxed.objects).bulk_create(rows)
        assert await h(Boxed.objects).count() == 0
        assert [row.pk for row in rows] == [None] * 3

    await in_half(half, body)


async def test_tables_are_created_together_or_not_at_all(empty: Any, half: Any) -> None:
    await araw("CREATE VIEW comment AS SELECT 1 AS one")
    with pytest.raises(DatabaseError, match=r"."):
        await half.call(lambda: create_all(*SHOP), lambda: acreate_all(*SHOP))
    with pytest.raises(DatabaseError, match="country"):
        await araw("SELECT * FROM country")


# -- what is sent ---------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def traced(db: Any, engine: str) -> AsyncGenerator[list[str]]:
    """Every statement that the database is sent, with what begins and ends transactions."""
    sent: list[str] = []
    if engine == "sqlite":
        session = db._writer.take_item()
        connection = session.ensure_connection()
        connection.set_trace_callback(sent.append)
        db._writer.return_item(session)
        yield sent
        connection.set_trace_callback(None)
        return

    def log(record: Any) -> None:
        sent.append(record.query)

    await Tag.objects.acount()
    (pool,) = db._pools.values()
    for connection in pool._all:
        connection.raw.add_query_logger(log)
    yield sent
    await asyncio.sleep(0)  # loggers are called in the next turn of the loop


async def one_row(h: Handle) -> None:
    await h(Tag.objects).create(name="a")


async def one_statement_in_bulk(h: Handle) -> None:
    await h(Tag.objects).bulk_create([Tag(name="a")])


async def several_in_bulk(h: Handle) -> None:
    await h(Tag.objects).bulk_create([Tag(name="a"), Tag(name="b")], batch_size=1)


async def find_or_create(h: Handle) -> None:
    await h(Tag.objects).get_or_create(name="a")


async def connect(h: Handle) -> None:
    await post_with_tag(h)


SENT = {one_row: 0, one_statement_in_bulk: 0, several_in_bulk: 1, find_or_create: 1, connect: 1}


@pytest.mark.parametrize("work", SENT, ids=lambda f: f.__name__)
async def test_only_several_statements_open_a_transaction(
    place: Any, db: Any, half: Any, engine: str, work: Any
) -> None:
    db = place.configure(pool_size=1)
    async with traced(db, engine) as sent:
        await in_half(half, work)
    begun = [sql for sql in sent if sql.startswith("BEGIN")]
    assert len(begun) == SENT[work]
    assert len([sql for sql in sent if sql == "COMMIT"]) == len(begun)
    if begun:
        first, last = sent.index(begun[0]), sent.index("COMMIT")
        outside = [*sent[:first], *sent[last + 1 :]]
        assert all(sql.startswith(("INSERT", "BEGIN", "COMMIT")) for sql in outside)


async def test_several_statements_inside_are_one_savepoint(
    place: Any, db: Any, half: Any, engine: str
) -> None:
    db = place.configure(pool_size=1)

    async def body(h: Handle) -> None:
        async with h.transaction():
            await h(Tag.objects).create(name="single")
            await several_in_bulk(h)

    async with traced(db, engine) as sent:
        await in_half(half, body)
    kinds = [" ".join(sql.split()[:2]) for sql in sent]
    begin = "BEGIN IMMEDIATE" if engine == "sqlite" else "BEGIN"
    inserts = ["INSERT INTO"] * 2
    savepoint = ["SAVEPOINT s1", *inserts, "RELEASE SAVEPOINT"]
    assert kinds == [begin, "INSERT INTO", *savepoint, "COMMIT"]


async def test_a_nested_transaction_still_counts_its_own_savepoints(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        async with h.transaction():
            async with h.transaction():
                await several_in_bulk(h)
            with contextlib.suppress(UniqueViolation):
                await several_in_bulk(h)
        assert transaction.active() is False
        assert await h(Tag.objects).count() == 2

    await in_half(half, body)
