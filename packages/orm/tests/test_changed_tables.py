"""A table that another process changes while statements for it are prepared: a migration beside a
server. Nothing is refused that can be run, and what cannot says that it may be run again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Country, Post, Tag

from treefold_orm import TransactionConflict, acreate_all, araw, raw

Change = Callable[[Handle], Awaitable[None]]
WIDER = {
    "postgres": "ALTER TABLE {0}tag ALTER COLUMN name TYPE varchar({1})",
    "sqlite": "ALTER TABLE tag RENAME TO former{1};"
    "CREATE TABLE tag AS SELECT id, name FROM former{1}; DROP TABLE former{1}",
}


@pytest.fixture
def change(empty: Any, request: pytest.FixtureRequest) -> Change:
    """Change the type of `tag.name` on a connection of another client."""
    lengths = iter(range(61, 200))

    def now() -> None:
        if empty.engine == "sqlite":
            other = sqlite3.connect(empty.address)
            other.executescript(WIDER["sqlite"].format("", next(lengths)))
            other.close()
        else:
            admin = request.getfixturevalue("admin")
            admin.run(WIDER["postgres"].format(f"{empty.schema}.", next(lengths)))

    async def changed(h: Handle) -> None:
        if h.name == "async":
            await asyncio.to_thread(now)
        else:
            now()

    return changed


async def tables() -> None:
    await acreate_all(Country, Author, Post, Tag)
    await Tag.objects.acreate(id=1, name="first")


async def test_the_first_statement_of_a_transaction_is_run(change: Change, half: Any) -> None:
    await tables()

    async def body(h: Handle) -> None:
        for round_ in range(3):
            tag = await h(Tag.objects).get(id=1)
            await change(h)
            async with h.transaction():
                tag = await h(Tag.objects).get(id=1)
                tag.name = f"name {round_}"
                await h(tag).save()
            assert (await h(Tag.objects).get(id=1)).name == f"name {round_}"

    await in_half(half, body)


async def test_the_first_statement_of_savepoints_is_run(change: Change, half: Any) -> None:
    await tables()

    async def body(h: Handle) -> None:
        await h(Tag.objects).get(id=1)
        await change(h)
        async with h.transaction():
            async with h.transaction(), h.transaction():
                tag = await h(Tag.objects).get(id=1)
                tag.name = "inner"
                await h(tag).save()
            assert await h(Tag.objects).count() == 1
        assert (await h(Tag.objects).get(id=1)).name == "inner"

    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_the_isolation_level_stays(change: Change, half: Any) -> None:
    await tables()

    async def body(h: Handle) -> None:
        await h(Tag.objects).get(id=1)
        await change(h)
        async with h.transaction(isolation="serializable"):
            assert (await h(Tag.objects).get(id=1)).name == "first"
            sql = "SHOW transaction_isolation"
            shown: Any = await araw(sql) if h.name == "async" else raw(sql)
            assert list(shown[0].values()) == ["serializable"]

    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_a_later_statement_says_that_the_transaction_may_be_tried_again(
    change: Change, half: Any
) -> None:
    await tables()

    async def body(h: Handle) -> None:
        country = await h(Country.objects).create(name="before")
        tag = await h(Tag.objects).get(id=1)
        await change(h)

        async def block() -> None:
            async with h.transaction():
                country.name = "within"
                await h(country).save()
                await h(Tag.objects).get(id=1)

        with pytest.raises(TransactionConflict, match=r"changed, as by a migration, since"):
            await block()
        assert (await h(Country.objects).get(pk=country.pk)).name == "before"
        await block()
        assert (await h(Country.objects).get(pk=country.pk)).name == "within"
        tag.name = "after"
        await h(tag).save()

    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_a_decorated_function_is_run_again(change: Change, half: Any) -> None:
    await tables()

    async def body(h: Handle) -> None:
        country = await h(Country.objects).create(name="before")
        await h(Tag.objects).get(id=1)
        await change(h)
        runs: list[str] = []

        async def work() -> str:
            runs.append(country.name)
            country.name = f"{country.name}+"
            await h(country).save()
            return (await h(Tag.objects).get(id=1)).name

        assert await h.decorated(work, retries=1) == "first"
        assert len(runs) == 2
        assert (await h(Country.objects).get(pk=country.pk)).name == country.name

    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_one_refusal_renews_the_statements_of_all_connections(
    empty: Any, change: Change
) -> None:
    empty.configure(pool_size=4)  # a fifth connection would have no statement to refuse
    await tables()

    async def block(*, write: bool, ready: asyncio.Barrier) -> str:
        h = Handle("async")
        async with h.transaction():
            await ready.wait()
            if write:
                await Country.objects.acount()
            return (await h(Tag.objects).get(id=1)).name

    async def four(*, write: bool) -> list[Any]:
        ready = asyncio.Barrier(4)
        blocks = (block(write=write, ready=ready) for _ in range(4))
        return await asyncio.gather(*blocks, return_exceptions=True)

    assert await four(write=False) == ["first"] * 4
    await change(Handle("async"))
    assert await four(write=False) == ["first"] * 4
    await change(Handle("async"))
    with pytest.raises(TransactionConflict, match="try again"):
        await block(write=True, ready=asyncio.Barrier(1))
    assert await four(write=True) == ["first"] * 4


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_rows_that_come_in_pieces(change: Change, half: Any) -> None:
    await tables()

    async def body(h: Handle) -> None:
        async def names() -> list[str]:
            async with h.transaction():
                query: Any = Tag.objects.order_by("id")
                if h.name == "async":
                    return [tag.name async for tag in query.aiterator(10)]
                return [tag.name for tag in query.iterator(10)]

        assert await names() == ["first"]
        await change(h)
        with pytest.raises(TransactionConflict, match="try again"):
            await names()
        assert await names() == ["first"]

    await in_half(half, body)
