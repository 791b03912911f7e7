"""`select_for_update()` needs a transaction that holds the lock."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Tag

from treefold_orm import Count, FieldError, Rank, TransactionRequired, Window, transaction
from treefold_orm.testing import sandbox

MESSAGE = r"select_for_update\(\) must run inside of a transaction.*`with transaction\(\):`"

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "get": lambda half, q: half(q).get(name="a"),
    "first": lambda half, q: half(q).first(),
    "last": lambda half, q: half(q).last(),
    "rows": lambda half, q: half.rows(q),
    "limited": lambda half, q: half.rows(q.limit_rows(3)),
    "prefetched": lambda half, q: half.rows(q.prefetch_related("posts")),
    "values": lambda half, q: half.rows(q.values("name")),
    "iterate": lambda half, q: half.iterate(q, 2),
    "keyset": lambda half, q: half(q).keyset(2),
    "in_bulk": lambda half, q: half(q).in_bulk(),
    "latest": lambda half, q: half(q).latest("name"),
    "get_or_create": lambda half, q: half(q[:1]).first(),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_lock_outside_of_a_transaction_is_refused(db: Any, half: Any, name: str) -> None:
    await half(Tag.objects).create(name="a")
    query = Tag.objects.select_for_update()
    with pytest.raises(TransactionRequired, match=MESSAGE):
        await CALLS[name](half, query)


async def test_inside_of_a_transaction_a_lock_is_taken(db: Any, half: Any) -> None:
    await half(Tag.objects).create(name="a")

    def sync() -> list[str]:
        with transaction():
            found = list(Tag.objects.select_for_update())
            with transaction():
                found.append(Tag.objects.select_for_update().get(name="a"))
            return [tag.name for tag in (*found, *Tag.objects.select_for_update().iterator())]

    async def twin() -> list[str]:
        async with transaction():
            found = await Tag.objects.select_for_update()
            async with transaction():
                found.append(await Tag.objects.select_for_update().aget(name="a"))
            streamed = [tag async for tag in Tag.objects.select_for_update().aiterator()]
            return [tag.name for tag in (*found, *streamed)]

    assert await half.call(sync, twin) == ["a"] * 3


async def test_a_transaction_that_has_ended_holds_no_lock(db: Any, half: Any) -> None:
    def sync() -> None:
        with transaction():
            pass
        list(Tag.objects.select_for_update())

    async def twin() -> None:
        async with transaction():
            pass
        await Tag.objects.select_for_update()

    with pytest.raises(TransactionRequired, match=MESSAGE):
        await half.call(sync, twin)


async def test_a_sandbox_is_no_transaction_of_the_application(db: Any, half: Any) -> None:
    with sandbox():
        await half(Tag.objects).create(name="a")
        with pytest.raises(TransactionRequired, match=MESSAGE):
            await half.rows(Tag.objects.select_for_update())
        async with transaction():
            assert len(await Tag.objects.select_for_update()) == 1


async def test_what_only_counts_or_shows_takes_no_lock(db: Any, half: Any) -> None:
    query = Tag.objects.select_for_update()
    assert await half(query).count() == 0
    assert await half(query).exists() is False
    assert "SELECT" in query.explain_sql()
    assert await half(query).explain()


async def test_calls_that_are_transactions_of_their_own_lock(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann")
    found, created = await half(Author.objects).update_or_create(name="Ann", defaults={"age": 3})
    assert (found.age, created) == (3, False)
    query = Author.objects.select_for_update()
    assert (await half(query).get_or_create(name="Ann"))[1] is False


def ranked(query: Any) -> Any:
    return query.annotate(place=Window(Rank(), order_by=["name"]))


UNLOCKABLE: dict[str, Callable[[Any], Any]] = {
    "a window": ranked,
    "a filter on a window": lambda q: ranked(q).filter(place=1),
    "groups": lambda q: q.values("name").annotate(n=Count("pk")),
    "distinct()": lambda q: q.values("name").distinct(),
    "distinct(fields)": lambda q: q.distinct("name"),
    "union(), intersection() or difference()": lambda q: q.union(Tag.objects.all()),
}


@pytest.mark.parametrize("what", UNLOCKABLE)
async def test_rows_that_are_no_rows_of_the_model_are_not_locked(
    db: Any, half: Any, what: str
) -> None:
    await half(Tag.objects).create(name="a")
    query = UNLOCKABLE[what](Tag.objects.select_for_update())
    message = rf"select_for_update\(\) cannot follow {re.escape(what)}: lock by key"

    def sync() -> int:
        with transaction():
            with pytest.raises(FieldError, match=message):
                list(query)
            return Tag.objects.count()  # nothing was sent, and the transaction goes on

    async def twin() -> int:
        async with transaction():
            with pytest.raises(FieldError, match=message):
                await query
            return await Tag.objects.acount()

    assert await half.call(sync, twin) == 1
    assert await half(query).count() == 1


async def test_a_part_of_a_union_is_not_locked(db: Any, half: Any) -> None:
    union = Tag.objects.all().union(Tag.objects.select_for_update())
    with pytest.raises(FieldError, match="UNION cannot take a locked query: lock by key"):
        await half.rows(union)
