"""Answers of the server that are lost: a statement or a COMMIT was done, and its caller sees
`ConnectionFailed`. The error says that the outcome is unknown, and `save()` trusts nothing it knew.
"""

from __future__ import annotations

import asyncio
import decimal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from faults.wire import Wire
from orm_halves import Handle, in_half
from orm_models import Author, Order, Post, Tag

from treefold_orm import ConnectionFailed, F, StaleObject, close_all, configure, transaction

pytestmark = pytest.mark.parametrize("engine", ["postgres"], indirect=True)


@pytest.fixture
def wire(place: Any, db: Any) -> Iterator[Wire]:
    """The server behind a wire that can be cut."""
    address = urlsplit(str(place.address))
    with Wire(address.hostname or "127.0.0.1", address.port or 5432) as made:
        user = address.netloc.rpartition("@")[0]
        there = address._replace(netloc=f"{user}@127.0.0.1:{made.port}").geturl()
        configure("postgres", there, server_settings={"search_path": place.schema}, pool_size=2)
        yield made
        close_all()


async def lost(wire: Wire, work: Callable[[], Awaitable[Any]], *, message: int = 1) -> str:
    """Run a call whose answer to a message is lost; return the error's text."""
    wire.cut_at(message, deliver=True)
    with pytest.raises(ConnectionFailed, match=r"connection to PostgreSQL at .* failed") as caught:
        await work()
    assert wire.cuts == 1
    wire.cuts = 0
    return str(caught.value)


async def by_save(h: Handle, author: Author) -> None:
    author.age = 2
    await h(author).save()


async def by_named(h: Handle, author: Author) -> None:
    author.age = 2
    await h(author).save(update_fields=["age"])


async def by_expression(h: Handle, author: Any) -> None:
    author.age = F("age") + 1
    await h(author).save()


async def by_bulk(h: Handle, author: Author) -> None:
    author.age = 2
    await h(Author.objects).bulk_update([author], ["age"])


@pytest.mark.parametrize("write", [by_save, by_named, by_expression, by_bulk])
async def test_an_update_whose_answer_is_lost_is_no_longer_relied_on(
    wire: Wire, half: Any, write: Any
) -> None:
    async def body(h: Handle) -> None:
        author = await h(Author.objects).create(name="Ann", age=1)
        await write(h, author)  # the statement is prepared
        author.age = 1
        await h(author).save()
        await lost(wire, lambda: write(h, author))
        assert (await h(Author.objects).get()).age == 2
        author.age = 1  # as it was read
        await h(author).save()
        assert (await h(Author.objects).get()).age == 1

    await in_half(half, body)


@pytest.mark.parametrize("write", [by_save, by_named, by_expression, by_bulk])
async def test_a_commit_whose_answer_is_lost_is_no_longer_relied_on(
    wire: Wire, half: Any, write: Any
) -> None:
    async def body(h: Handle) -> None:
        author = await h(Author.objects).create(name="Ann", age=1)

        async def block() -> None:
            async with h.transaction():
                async with h.transaction():
                    await write(h, author)
                wire.cut_at(1, deliver=True)

        said = await lost(wire, block, message=0)
        assert "; its COMMIT was not answered: look whether it was done" in said
        assert (await h(Author.objects).get()).age == 2
        author.age = 1
        await h(author).save()
        assert (await h(Author.objects).get()).age == 1

    await in_half(half, body)


async def test_a_lost_commit_of_several_statements_is_no_longer_relied_on(
    wire: Wire, half: Any
) -> None:
    async def body(h: Handle) -> None:
        authors = [Author(name=name, age=1) for name in "abc"]
        await h(Author.objects).bulk_create(authors)

        async def write(age: int) -> None:
            for author in authors:
                author.age = age
            await h(Author.objects).bulk_update(authors, ["age"], batch_size=1)

        await write(3)
        await write(1)
        said = await lost(wire, lambda: write(2), message=5)  # BEGIN, three updates, COMMIT
        assert "; its COMMIT was not answered: look whether it was done" in said
        assert {a.age for a in await h.rows(Author.objects.all())} == {2}
        for author in authors:
            author.age = 1
            await h(author).save()
        assert {a.age for a in await h.rows(Author.objects.all())} == {1}

    await in_half(half, body)


@pytest.mark.parametrize("deliver", [False, True], ids=["not sent", "not answered"])
async def test_a_call_whose_savepoint_is_not_released_goes_back(
    wire: Wire, half: Any, deliver: bool
) -> None:
    async def body(h: Handle) -> None:
        orders = [Order(number=n, shop="s", total=decimal.Decimal(n)) for n in (1, 2)]
        await h(Order.objects).bulk_create(orders)
        await h(Order.objects).bulk_update(orders, ["total"])  # the statement is prepared
        new = [Tag(name=name) for name in "ab"]

        async def updating() -> None:
            async with h.transaction():
                wire.cut_at(3, deliver=deliver)  # SAVEPOINT, one update, RELEASE
                await h(Order.objects).bulk_update(orders, ["total"])

        async def creating() -> None:
            async with h.transaction():
                await h(Tag.objects.filter(pk=0)).delete()
                wire.cut_at(5, deliver=deliver)  # as before, but prepared first, and twice
                await h(Tag.objects).bulk_create(new, batch_size=1)

        for work in (updating, creating):
            with pytest.raises(ConnectionFailed, match=r"it was closed"):
                await work()
        assert [order.version for order in orders] == [2, 2]
        assert [tag.pk for tag in new] == [None, None]
        orders[0].paid = True
        await h(orders[0]).save()
        await h(new[0]).save()
        assert (await h(Order.objects).get(paid=True)).version == 3
        assert await h(Tag.objects).count() == 1

    await in_half(half, body)


async def test_versions_are_checked_after_a_lost_answer(wire: Wire, half: Any) -> None:
    async def body(h: Handle) -> None:
        order = await h(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
        order.total = decimal.Decimal(2)
        await h(order).save()
        order.total = decimal.Decimal(3)
        await lost(wire, lambda: h(order).save())
        assert order.version == 2
        with pytest.raises(StaleObject, match="its version is no longer 2"):
            await h(order).save()

    await in_half(half, body)


async def test_a_commit_that_is_never_sent_is_a_plain_failure(
    wire: Wire, half: Any, admin: Any
) -> None:
    async def body(h: Handle) -> None:
        tag = Tag(name="a")

        async def block() -> None:
            async with h.transaction():
                wire.cut_at(1, deliver=False)
                with pytest.raises(ConnectionFailed, match="failed"):
                    await h(tag).save()

        with pytest.raises(ConnectionFailed, match=r"it was closed$"):
            await block()
        assert (tag.pk, await h(Tag.objects).count()) == (None, 0)
        await h(tag).save()
        assert await h(Tag.objects).count() == 1

    await in_half(half, body)


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
async def test_a_cancelled_update_is_no_longer_relied_on(wire: Wire, inside: bool) -> None:
    """The server has done what was cancelled, unless that was part of a transaction."""
    ann = await Author.objects.acreate(name="Ann", age=1)
    bea = await Author.objects.acreate(name="Bea")
    post = await Post.objects.acreate(title="p", author=ann)
    post.author = bea
    await post.asave()
    post.author = ann
    await post.asave()
    post.author = bea
    wire.hold_at(2 if inside else 1)
    task = asyncio.ensure_future(_within(post) if inside else post.asave())
    await asyncio.to_thread(wire.held.wait)
    task.cancel()
    await asyncio.sleep(0)
    wire.release()
    await asyncio.wait([task])
    assert task.cancelled()
    stored = await Post.objects.aget()
    assert stored.author_id == (ann.pk if inside else bea.pk)
    post.author = ann
    await post.asave()
    assert (await Post.objects.aget()).author_id == ann.pk


async def _within(post: Post) -> None:
    async with transaction():
        await post.asave()
