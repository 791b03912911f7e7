"""Transactions that cannot be committed: failed statements caught inside, writes that were
cancelled, a COMMIT that fails. None is taken for a commit, and instances go back.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Country, Post, Tag

from treefold_orm import (
    IntegrityError,
    TransactionAborted,
    UniqueViolation,
    acreate_all,
    araw,
    raw,
    transaction,
)


async def test_a_failed_commit_undoes_the_state(empty: Any, half: Any, engine: str) -> None:
    await acreate_all(Country, Author, Post, Tag)
    if engine == "postgres":
        await araw(
            "ALTER TABLE post ADD CONSTRAINT late FOREIGN KEY (views) REFERENCES author (id)"
            " DEFERRABLE INITIALLY DEFERRED"
        )
    ann = await Author.objects.acreate(name="Ann")

    async def body(h: Handle) -> None:
        post = Post(title="p", author=ann, views=99)
        calls: list[str] = []

        async def block() -> None:
            async with h.transaction():
                transaction.on_commit(lambda: calls.append("committed"))
                if engine == "sqlite":
                    post.author_id = 99
                    await half_raw(h, "PRAGMA defer_foreign_keys = ON")
                await h(post).save()

        with pytest.raises(IntegrityError, match="A referenced row is missing"):
            await block()
        assert (post.pk, calls) == (None, [])
        post.author_id, post.views = ann.pk, ann.pk
        await h(post).save()
        assert await h(Post.objects).count() == 1

    await in_half(half, body)


async def half_raw(h: Handle, sql: Any) -> Any:
    return await araw(sql) if h.name == "async" else raw(sql)


# -- a violation that was caught inside -----------------------------------------------------------


async def test_a_commit_that_postgres_refuses_is_an_error(db: Any, half: Any, engine: str) -> None:
    await Tag.objects.acreate(name="a")

    async def body(h: Handle) -> None:
        first, calls = Tag(name="first"), list[str]()

        async def block() -> None:
            async with h.transaction():
                transaction.on_commit(lambda: calls.append("committed"))
                await h(first).save()
                with contextlib.suppress(UniqueViolation):
                    await h(Tag.objects).create(name="a")

        if engine == "sqlite":  # a statement that fails undoes itself alone
            await block()
            assert (calls, await h(Tag.objects).count()) == (["committed"], 2)
            return
        with pytest.raises(TransactionAborted, match="has rolled the transaction back instead"):
            await block()
        assert (first.pk, calls, await h(Tag.objects).count()) == (None, [], 1)
        await h(first).save()
        assert await h(Tag.objects).count() == 2

    await in_half(half, body)


async def test_an_aborted_savepoint_leaves_its_transaction_whole(
    db: Any, half: Any, engine: str
) -> None:
    await Tag.objects.acreate(name="a")

    async def body(h: Handle) -> None:
        outer, inner = Tag(name="outer"), Tag(name="inner")

        async def nested() -> None:
            async with h.transaction():
                await h(inner).save()
                with contextlib.suppress(UniqueViolation):
                    await h(Tag.objects).create(name="a")

        async with h.transaction():
            await h(outer).save()
            if engine == "sqlite":
                await nested()
            else:
                with pytest.raises(TransactionAborted, match="A statement failed before"):
                    await nested()
                assert inner.pk is None
        found = {t.name for t in await h.rows(Tag.objects.all())}
        assert found == {"a", "outer"} | ({"inner"} if engine == "sqlite" else set())

    await in_half(half, body)


async def test_a_violation_caught_in_a_child_task_aborts_the_transaction(
    db: Any, engine: str
) -> None:
    await Tag.objects.acreate(name="a")

    async def child() -> None:
        with contextlib.suppress(UniqueViolation):
            await Tag.objects.acreate(name="a")

    async def block() -> None:
        async with transaction():
            await asyncio.gather(*(child() for _ in range(1)))

    if engine == "sqlite":
        await block()
        return
    with pytest.raises(TransactionAborted, match="put what may fail into a nested transaction"):
        await block()


async def test_rows_of_child_tasks_are_undone_with_the_transaction(db: Any) -> None:
    tags = [Tag(name=f"t{n}") for n in range(5)]

    async def work() -> None:
        await asyncio.gather(*(tag.asave() for tag in tags))
        assert all(tag.pk for tag in tags)

    async def block() -> None:
        async with transaction():
            await work()
            raise RuntimeError("undo")

    with pytest.raises(RuntimeError, match="undo"):
        await block()
    assert {tag.pk for tag in tags} == {None}


# -- a write that was cancelled inside ------------------------------------------------------------


async def cancelled_write(engine: str) -> None:
    slow = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "INSERT INTO tag (name) SELECT 'slow' FROM n WHERE i < 0",
        "postgres": "INSERT INTO tag (name) SELECT 'slow' FROM pg_sleep(30)",
    }
    with pytest.raises(TimeoutError):  # asyncio's own, without a text
        async with asyncio.timeout(0.1):
            await araw(slow[engine])  # pyright: ignore[reportArgumentType] - one of two literals


async def test_a_transaction_with_a_cancelled_write_is_not_committed(db: Any, engine: str) -> None:
    first = Tag(name="first")

    async def block() -> None:
        async with transaction():
            await first.asave()
            await cancelled_write(engine)

    with pytest.raises(TransactionAborted, match="cancelled"):
        await block()
    assert first.pk is None
    assert await Tag.objects.acount() == 0


async def test_statements_after_a_cancelled_write_are_refused(db: Any, engine: str) -> None:
    async def block() -> None:
        async with transaction():
            await cancelled_write(engine)
            await Tag.objects.acreate(name="after")

    with pytest.raises(TransactionAborted, match="cancelled"):
        await block()
    assert await Tag.objects.acount() == 0


async def test_a_savepoint_around_a_cancelled_write_saves_the_rest(db: Any, engine: str) -> None:
    async def block() -> None:
        async with transaction():
            await Tag.objects.acreate(name="first")
            with contextlib.suppress(TransactionAborted):
                async with transaction():
                    await cancelled_write(engine)

    if engine == "sqlite":  # an interrupted write ends the whole transaction there
        with pytest.raises(TransactionAborted, match="run the whole block again"):
            await block()
        assert await Tag.objects.acount() == 0
        return
    await block()
    assert await Tag.objects.acount() == 1


async def test_hooks_of_a_committed_transaction_run_in_a_cancelled_task(db: Any) -> None:
    calls: list[str] = []

    async def block() -> None:
        async with transaction():
            await Tag.objects.acreate(name="a")
            transaction.on_commit(lambda: calls.append("committed"))
            task.cancel()

    task = asyncio.ensure_future(block())
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (calls == ["committed"]) == (await Tag.objects.acount() == 1)
