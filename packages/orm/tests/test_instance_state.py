"""Instance state follows the transaction: after a rollback `save()` writes again, and an insert is
new again; attributes that the application has set stay as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import decimal
import gc
import pickle
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Everything, Keyed, Order, Post, Stamped, Tag

from treefold_orm import (
    F,
    StaleObject,
    TransactionConflict,
    UniqueViolation,
    transaction,
)
from treefold_orm._base.journal import Journal, active
from treefold_orm.testing import sandbox

Work = Callable[[], Awaitable[Any]]


class Boom(Exception):
    """Raised by tests inside transactions."""


async def by_exception(h: Handle, work: Work) -> None:
    with contextlib.suppress(Boom):
        async with h.transaction():
            await work()
            raise Boom


async def by_rollback(h: Handle, work: Work) -> None:
    async with h.transaction(rollback=True):
        await work()


async def by_savepoint(h: Handle, work: Work) -> None:
    async with h.transaction():
        with contextlib.suppress(Boom):
            async with h.transaction():
                await work()
                raise Boom


async def by_outer_rollback(h: Handle, work: Work) -> None:
    with contextlib.suppress(Boom):
        async with h.transaction():
            async with h.transaction():
                await work()
            raise Boom


async def by_sandbox(h: Handle, work: Work) -> None:
    with sandbox():
        await work()


async def by_cancellation(h: Handle, work: Work) -> None:
    reached = asyncio.Event()

    async def block() -> None:
        async with h.transaction():
            await work()
            reached.set()
            await asyncio.Event().wait()

    if h.name == "sync":  # a thread cannot be cancelled: an interrupt is its nearest relative
        with contextlib.suppress(KeyboardInterrupt):
            async with h.transaction():
                await work()
                raise KeyboardInterrupt
        return
    task = asyncio.ensure_future(block())
    await reached.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


UNDOING = (
    by_exception,
    by_rollback,
    by_savepoint,
    by_outer_rollback,
    by_sandbox,
    by_cancellation,
)
undone_by = pytest.mark.parametrize("undo", UNDOING, ids=lambda f: f.__name__)


@undone_by
async def test_an_update_is_written_again(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        tag = await h(Tag.objects).create(name="a")
        tag.name = "b"
        await undo(h, lambda: h(tag).save())
        assert tag.name == "b"
        await h(tag).save()
        assert (await h(Tag.objects).get()).name == "b"

    await in_half(half, body)


@undone_by
async def test_an_insert_is_new_again(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        tag = Tag(name="a")
        await undo(h, lambda: h(tag).save())
        assert tag.pk is None
        assert await h(Tag.objects).count() == 0
        await h(tag).save()
        assert [t.pk for t in await h.rows(Tag.objects.all())] == [tag.pk]

    await in_half(half, body)


@undone_by
async def test_a_given_key_stays_and_the_row_is_new_again(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        keyed = Keyed(label="a")
        code = keyed.code
        await undo(h, lambda: h(keyed).save())
        assert keyed.code == code
        await h(keyed).save()
        assert (await h(Keyed.objects).get()).code == code

    await in_half(half, body)


@undone_by
@pytest.mark.parametrize("count", [1, 3, 700])
async def test_bulk_created_rows_are_new_again(db: Any, half: Any, undo: Any, count: int) -> None:
    async def body(h: Handle) -> None:
        tags = [Tag(name=f"t{n}") for n in range(count)]
        await undo(h, lambda: h(Tag.objects).bulk_create(tags))
        assert {tag.pk for tag in tags} == {None}
        await h(tags[-1]).save()
        assert [t.name for t in await h.rows(Tag.objects.all())] == [tags[-1].name]

    await in_half(half, body)


@undone_by
async def test_bulk_updated_rows_are_written_again(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        orders = [Order(number=n, shop="s", total=decimal.Decimal(n)) for n in range(3)]
        await h(Order.objects).bulk_create(orders)
        for order in orders:
            order.total += 1
        await undo(h, lambda: h(Order.objects).bulk_update(orders, ["total"]))
        assert [order.version for order in orders] == [1, 1, 1]
        await h(orders[0]).save()
        stored = await h(Order.objects).get(number=0)
        assert (stored.total, stored.version) == (1, 2)

    await in_half(half, body)


@undone_by
async def test_a_version_goes_back_and_the_next_save_fits(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        order = await h(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
        order.total = decimal.Decimal(2)
        await undo(h, lambda: h(order).save())
        assert order.version == 1
        await h(order).save()
        assert (await h(Order.objects).get()).version == order.version == 2

    await in_half(half, body)


@undone_by
async def test_times_that_save_sets_go_back(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        stamped = await h(Stamped.objects).create(name="a")
        before = stamped.changed
        stamped.name = "b"
        await undo(h, lambda: h(stamped).save())
        assert stamped.changed == before
        await h(stamped).save()
        stored = await h(Stamped.objects).get()
        assert (stored.name, stored.changed) == ("b", stamped.changed)
        assert stored.changed > before

    await in_half(half, body)


@undone_by
async def test_a_deleted_row_is_stored_again(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        tag = await h(Tag.objects).create(name="a")
        await undo(h, lambda: h(tag).delete())
        tag.name = "b"
        await h(tag).save()
        assert [t.name for t in await h.rows(Tag.objects.all())] == ["b"]

    await in_half(half, body)


@undone_by
async def test_connected_rows_are_asked_for_again(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        author = await h(Author.objects).create(name="Ann")
        await h(Post.objects).create(title="p", author=author)
        red = await h(Tag.objects).create(name="red")
        post = await h(Post.objects.prefetch_related("tags")).get()

        async def connect() -> None:
            await h(post.tags).add(red)
            await h(post).load("tags")
            assert await h.rows(post.tags.all()) == [red]

        await undo(h, connect)
        assert await h.rows(post.tags.all()) == []

    await in_half(half, body)


@undone_by
async def test_what_was_read_again_does_not_stand_in_the_way(db: Any, half: Any, undo: Any) -> None:
    async def body(h: Handle) -> None:
        post_like = await h(Everything.objects).create(integer=1, text="x")

        async def change() -> None:
            await h(Everything.objects).update(integer=5)
            await h(post_like).refresh()
            assert post_like.integer == 5

        await undo(h, change)
        assert post_like.integer == 1
        post_like.integer = 5
        await h(post_like).save()
        assert (await h(Everything.objects).get()).integer == 5

    await in_half(half, body)


@undone_by
async def test_a_row_read_after_a_write_is_saved_whole(db: Any, half: Any, undo: Any) -> None:
    author = await Author.objects.acreate(name="Ann", age=1)
    await Post.objects.acreate(title="old", author=author)

    async def body(h: Handle) -> None:
        found: list[Any] = []

        async def change() -> None:
            await h(Post.objects).update(title="new", views=7)
            await h(Author.objects).update(age=5)
            found.append(await h(Post.objects.select_related("author")).get())

        await undo(h, change)
        (post,) = found
        assert (post.title, post.author.age) == ("new", 5)  # as it was read
        await h(post).save()
        await h(post.author).save()
        stored = await h(Post.objects.select_related("author")).get()
        assert (stored.title, stored.views, stored.author.age) == ("new", 7, 5)

    await in_half(half, body)


async def test_attributes_set_by_the_application_stay(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        stamped = Stamped(name="a")
        moment = stamped.created

        async def work() -> None:
            await h(stamped).save()
            stamped.name = "b"
            stamped.changed = moment
            stamped.pk = 77

        await by_exception(h, work)
        assert (stamped.name, stamped.changed, stamped.pk) == ("b", moment, 77)

    await in_half(half, body)


async def test_a_savepoint_goes_back_to_the_state_of_its_transaction(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        order = Order(number=1, shop="s", total=decimal.Decimal(1))
        async with h.transaction():
            await h(order).save()
            order.total = decimal.Decimal(2)
            await h(order).save()
            key = order.pk

            async def inside() -> None:
                order.total = decimal.Decimal(3)
                await h(order).save()

            await by_savepoint(h, inside)
            assert (order.pk, order.version) == (key, 2)
            await h(order).save()
        stored = await h(Order.objects).get()
        assert (stored.total, stored.version) == (3, 3)

    await in_half(half, body)


async def test_every_level_is_undone_by_its_own_rollback(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        first, second, third = Tag(name="1"), Tag(name="2"), Tag(name="3")

        async def work() -> None:
            await h(first).save()
            async with h.transaction():
                await h(second).save()
                await by_exception(h, lambda: h(third).save())
                assert None not in (first.pk, second.pk)
                assert third.pk is None

        await by_exception(h, work)
        assert [first.pk, second.pk, third.pk] == [None, None, None]

    await in_half(half, body)


async def test_a_row_written_at_two_levels_goes_back_to_the_first(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        order = await h(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))

        async def write(total: int) -> None:
            order.total = decimal.Decimal(total)
            await h(order).save()

        async def work() -> None:
            await write(2)
            async with h.transaction():
                await write(3)
                await write(4)
            assert order.version == 4

        await by_exception(h, work)
        assert (order.total, order.version) == (4, 1)
        await h(order).save()
        assert (await h(Order.objects).get()).total == 4

    await in_half(half, body)


async def test_a_retried_transaction_loses_no_write(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        tag = await h(Tag.objects).create(name="a")
        new = Tag(name="new")
        tries: list[int] = []

        async def work() -> None:
            tag.name = "b"
            await h(tag).save()
            await h(new).save()
            tries.append(1)
            if len(tries) < 4:
                raise TransactionConflict("collided", code="40001")

        await h.decorated(work, retries=5)
        assert len(tries) == 4
        assert sorted([t.name for t in await h.rows(Tag.objects.all())]) == ["b", "new"]

    await in_half(half, body)


# -- edges ----------------------------------------------------------------------------------------


async def test_a_key_taken_from_a_related_row_goes_back_with_it(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        author = Author(name="Ann")
        post = Post(title="p", author=author)

        async def work() -> None:
            await h(author).save()
            await h(post).save()

        await by_exception(h, work)
        assert (author.pk, post.author_id, post.author) == (None, None, author)
        await h(Author.objects).create(name="takes the number")
        await h(author).save()
        await h(post).save()
        stored = await h(Post.objects.select_related("author")).get()
        assert stored.author.name == "Ann"

    await in_half(half, body)


async def test_a_row_that_points_to_an_undone_one_takes_its_next_key(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        author = Author(name="Ann")
        posts: list[Post] = []

        async def work() -> None:
            await h(author).save()
            posts.append(Post(title="p", author=author))
            async with h.transaction():
                posts.append(Post(title="q", author=author))
                await h(posts[1]).save()

        await by_exception(h, work)
        assert [post.author_id for post in posts] == [None, None]
        await h(Author.objects).create(name="takes the number")
        await h(author).save()
        for post in posts:
            await h(post).save()
        stored = await h.rows(Post.objects.select_related("author"))
        assert {post.author.name for post in stored} == {"Ann"}

    await in_half(half, body)


async def test_a_failed_save_leaves_the_instance_as_it_was(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        await h(Stamped.objects).create(name="a")
        stamped = await h(Stamped.objects).create(name="b")
        before = stamped.changed
        await h(Stamped.objects.filter(pk=stamped.pk)).delete()
        stamped.name = "c"
        with pytest.raises(StaleObject, match="was deleted since it was read"):
            await h(stamped).save()
        assert stamped.changed == before

    await in_half(half, body)


async def test_rows_that_were_skipped_are_saved_whole(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        stored = await h(Tag.objects).create(name="stored")
        mine = Tag(pk=stored.pk, name="mine")
        await h(Tag.objects).bulk_create([mine], ignore_conflicts=True)
        await h(mine).save()
        assert (await h(Tag.objects).get()).name == "mine"

    await in_half(half, body)


async def test_copies_and_pickles_made_inside_are_saved_whole(db: Any) -> None:
    await Author.objects.acreate(name="Ann", age=1)
    async with transaction(rollback=True):
        await Author.objects.aupdate(age=F("age") + 4)
        found = await Author.objects.aget()
        travelled = pickle.loads(pickle.dumps(found))  # noqa: S301, RUF100 - our own
        copied = copy.copy(found)
    for each in (travelled, copied):
        await each.asave()
        assert (await Author.objects.aget()).age == 5
        await Author.objects.aupdate(age=1)


async def test_rows_read_in_a_committed_transaction_are_compared(db: Any) -> None:
    await Author.objects.acreate(name="Ann", age=1)
    async with transaction():
        await Author.objects.aupdate(age=5)
        found = await Author.objects.aget()
    await Author.objects.aupdate(age=9)
    found.name = "Bea"
    await found.asave()
    assert (await Author.objects.aget()).age == 9  # only the name was written


# -- memory ---------------------------------------------------------------------------------------


async def test_a_long_transaction_keeps_no_instance_alive(db: Any) -> None:
    async with transaction() as made:
        tag = await Tag.objects.acreate(name="a")
        gone = weakref.ref(tag)
        del tag
        await Tag.objects.acount()  # the worker of SQLite holds its last result until then
        gc.collect()
        assert gone() is None
        assert len(made.journal) == 1


async def test_rows_that_are_marked_need_no_dictionary_of_their_own(db: Any) -> None:
    """What a transaction notes on every row that it reads must cost next to nothing."""
    await Tag.objects.abulk_create([Tag(name=f"t{n}") for n in range(100)])
    async with transaction(rollback=True):
        await Tag.objects.filter(name="t0").aupdate(name="first")
        found = await Tag.objects.all()
    assert len(found) == 100
    later = found[1:]  # the first is looked into for its related rows
    assert not [tag for tag in later if any(isinstance(r, dict) for r in gc.get_referents(tag))]
    assert all(tag._read_in is not None for tag in later)


def test_a_journal_forgets_dropped_instances_in_time() -> None:
    journal = Journal()
    kept = [Tag(name="kept") for _ in range(10)]
    for tag in kept:
        journal.record_attribute_change(tag, "id", 1)
    for _ in range(20_000):
        journal.record_attribute_change(Tag(name="dropped"), "id", 1)
    assert len(journal) <= 2_000
    journal.roll_back_instances()
    assert active.journal is None
    assert all("id" in tag.__dict__ for tag in kept)


# -- copies that fail -----------------------------------------------------------------------------


async def test_a_copy_that_fails_leaves_the_instance_as_it_was(db: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        order = await h(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
        await h(order).save(update_fields=["total"])
        order.pk = None
        with pytest.raises(UniqueViolation, match=r"Order\.shop, number exists already"):
            await h(order).save()
        assert (order.pk, order.version) == (None, 2)
        stamped = await h(Stamped.objects).create(name="a")
        before = (stamped.pk, stamped.created, stamped.changed)
        with pytest.raises(UniqueViolation, match=r"Stamped\.id exists already"):
            await h(stamped).save(force_insert=True)
        assert (stamped.pk, stamped.created, stamped.changed) == before

    await in_half(half, body)
