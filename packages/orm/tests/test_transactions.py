"""Transactions: nesting, hooks, retries, sharing between tasks, cancellation; and reliability of
connections.

Tests named after an ID prove that row of the security and reliability catalogue.
"""

from __future__ import annotations

import asyncio
import contextlib
import decimal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Order, Tag

from treefold_orm import (
    DatabaseError,
    FieldError,
    ReadOnlyViolation,
    TransactionClosed,
    TransactionConflict,
    UniqueViolation,
    read_only,
    transaction,
)
from treefold_orm._runtime.open_transaction import State


class Boom(Exception):
    """Raised by tests inside transactions."""


async def in_half(
    half: Any, make: Callable[[], Any], body: Callable[[], Any], abody: Callable[[], Any]
) -> Any:
    """Run a body in a transaction of one half."""
    if half.name == "async":
        async with make():
            return await abody()

    def work() -> Any:
        with make():
            return body()

    return await asyncio.to_thread(work)


async def names() -> list[str]:
    return await Tag.objects.order_by("name").values_list("name", flat=True)


async def test_a_transaction_commits_at_the_end(db: Any, half: Any) -> None:
    await in_half(
        half,
        transaction,
        lambda: Tag.objects.create(name="a"),
        lambda: Tag.objects.acreate(name="a"),
    )
    assert await names() == ["a"]


async def test_an_exception_undoes_everything(db: Any, half: Any) -> None:
    def body() -> None:
        Tag.objects.create(name="a")
        raise Boom

    async def abody() -> None:
        await Tag.objects.acreate(name="a")
        raise Boom

    with pytest.raises(Boom):
        await in_half(half, transaction, body, abody)
    assert await names() == []


async def test_one_object_serves_several_tasks_at_once(db: Any, half: Any) -> None:
    shared = transaction(read_only=True)  # on SQLite, writers wait for each other
    both = asyncio.Barrier(2)
    threads = threading.Barrier(2, timeout=5)

    async def atask(leaves_first: bool) -> bool:
        async with shared as made:
            await both.wait()
            if not leaves_first:
                await both.wait()
            count = await Tag.objects.acount()
        if leaves_first:
            await both.wait()
        return count == 0 and made.state is State.CLOSED

    def task(leaves_first: bool) -> bool:
        with shared as made:
            threads.wait()
            if not leaves_first:
                threads.wait()
            count = Tag.objects.count()
        if leaves_first:
            threads.wait()
        return count == 0 and made.state is State.CLOSED

    for first in (True, False):
        work = (
            [atask(first), atask(not first)]
            if half.name == "async"
            else [asyncio.to_thread(task, first), asyncio.to_thread(task, not first)]
        )
        assert await asyncio.gather(*work) == [True, True]


async def test_a_transaction_may_be_left_in_another_context(db: Any) -> None:
    """As an async fixture is: its end runs in a task of its own."""
    block = transaction()
    made = await asyncio.create_task(block.__aenter__())
    await asyncio.create_task(block.__aexit__(None, None, None))
    assert made.state is State.CLOSED
    await Tag.objects.acreate(name="a")  # the connection was given back
    assert await names() == ["a"]


async def test_rollback_undoes_without_an_exception(db: Any, half: Any) -> None:
    make: Callable[[], Any] = lambda: transaction(rollback=True)  # noqa: E731 - a factory
    await in_half(
        half, make, lambda: Tag.objects.create(name="a"), lambda: Tag.objects.acreate(name="a")
    )
    assert await names() == []


async def test_a_nested_transaction_is_a_savepoint(db: Any, half: Any) -> None:
    def body() -> None:
        Tag.objects.create(name="kept")
        with contextlib.suppress(Boom), transaction():
            Tag.objects.create(name="lost")
            raise Boom
        with transaction():
            Tag.objects.create(name="also kept")

    async def abody() -> None:
        await Tag.objects.acreate(name="kept")
        with contextlib.suppress(Boom):
            async with transaction():
                await Tag.objects.acreate(name="lost")
                raise Boom
        async with transaction():
            await Tag.objects.acreate(name="also kept")

    await in_half(half, transaction, body, abody)
    assert await names() == ["also kept", "kept"]


async def test_statements_after_a_failed_one_say_how_to_go_on(
    db: Any, half: Any, engine: str
) -> None:
    await Tag.objects.acreate(name="a")

    def body() -> None:
        with contextlib.suppress(UniqueViolation):
            Tag.objects.create(name="a")
        Tag.objects.create(name="b")

    async def abody() -> None:
        with contextlib.suppress(UniqueViolation):
            await Tag.objects.acreate(name="a")
        await Tag.objects.acreate(name="b")

    if engine == "sqlite":
        await in_half(half, transaction, body, abody)
        assert await names() == ["a", "b"]
        return
    with pytest.raises(DatabaseError, match=r"put what may fail into a nested transaction\(\)"):
        await in_half(half, transaction, body, abody)
    assert await names() == ["a"]


async def test_a_row_given_twice_to_an_upsert_is_named_as_the_reason(
    db: Any, half: Any, engine: str
) -> None:
    rows = [Order(number=1, shop="s", total=decimal.Decimal(n)) for n in (1, 2)]
    work = half(Order.objects).bulk_create(
        rows, update_conflicts=["total"], unique_fields=["shop", "number"]
    )
    if engine == "sqlite":
        assert [order.total for order in await work] == [1, 2]
        return
    with pytest.raises(DatabaseError, match="give each row once"):
        await work


async def test_a_violation_in_a_savepoint_leaves_the_transaction_usable(db: Any, half: Any) -> None:
    await Tag.objects.acreate(name="a")

    def body() -> None:
        with contextlib.suppress(UniqueViolation), transaction():
            Tag.objects.create(name="a")
        Tag.objects.create(name="b")

    async def abody() -> None:
        with contextlib.suppress(UniqueViolation):
            async with transaction():
                await Tag.objects.acreate(name="a")
        await Tag.objects.acreate(name="b")

    await in_half(half, transaction, body, abody)
    assert await names() == ["a", "b"]


async def test_a_transaction_reads_its_own_writes_and_others_do_not(db: Any) -> None:
    async with transaction():
        await Tag.objects.acreate(name="a")
        assert await Tag.objects.acount() == 1
        with transaction.detach():
            assert await Tag.objects.acount() == 0


async def test_commit_hooks_run_after_the_outermost_commit_only(db: Any, half: Any) -> None:
    calls: list[str] = []

    def body() -> None:
        transaction.on_commit(lambda: calls.append("outer"))
        with transaction():
            transaction.on_commit(lambda: calls.append("inner"))
        with contextlib.suppress(Boom), transaction():
            transaction.on_commit(lambda: calls.append("dropped"))
            raise Boom
        assert calls == []

    async def abody() -> None:
        transaction.on_commit(lambda: calls.append("outer"))
        async with transaction():
            transaction.on_commit(lambda: calls.append("inner"))
        with contextlib.suppress(Boom):
            async with transaction():
                transaction.on_commit(lambda: calls.append("dropped"))
                raise Boom
        assert calls == []

    await in_half(half, transaction, body, abody)
    assert calls == ["outer", "inner"]


async def test_async_hooks_are_awaited_and_hooks_outside_run_at_once(db: Any) -> None:
    calls: list[str] = []

    async def later() -> None:
        calls.append("async")

    async with transaction():
        transaction.on_commit(later)
    transaction.on_commit(lambda: calls.append("now"))
    assert calls == ["async", "now"]
    with pytest.raises(TypeError, match="is async and there is no transaction: await it instead"):
        transaction.on_commit(later)


async def test_tasks_share_their_transaction_one_statement_at_a_time(db: Any) -> None:
    async with transaction():
        await asyncio.gather(*(Tag.objects.acreate(name=f"t{i:02}") for i in range(20)))
        assert await Tag.objects.acount() == 20


async def test_savepoints_of_sibling_tasks_do_not_mix(db: Any) -> None:
    async def work(number: int) -> None:
        with contextlib.suppress(Boom):
            async with transaction():
                await Tag.objects.acreate(name=f"t{number:02}")
                await asyncio.sleep(0)
                if number % 2:
                    raise Boom

    async with transaction():
        await asyncio.gather(*(work(i) for i in range(10)))
    assert await names() == [f"t{i:02}" for i in range(0, 10, 2)]


async def test_a_stray_task_cannot_use_an_ended_transaction(db: Any) -> None:
    go = asyncio.Event()

    async def stray() -> None:
        await go.wait()
        await Tag.objects.acreate(name="late")

    async with transaction():
        task = asyncio.create_task(stray())
    go.set()
    with pytest.raises(
        TransactionClosed, match=r"The transaction begun at .*test_transactions.py:\d+ has ended"
    ):
        await task
    assert await names() == []


async def test_a_thread_can_work_inside_an_async_transaction(db: Any) -> None:
    async with transaction():
        await Tag.objects.acreate(name="a")
        assert await asyncio.to_thread(Tag.objects.count) == 1
        await asyncio.to_thread(lambda: Tag.objects.create(name="b"))
    assert await names() == ["a", "b"]


async def test_read_only_transactions_and_blocks_refuse_writes(db: Any, half: Any) -> None:
    make: Callable[[], Any] = lambda: transaction(read_only=True)  # noqa: E731 - a factory
    with pytest.raises(ReadOnlyViolation, match="This transaction is read-only"):
        await in_half(
            half, make, lambda: Tag.objects.create(name="a"), lambda: Tag.objects.acreate(name="a")
        )
    with read_only(), pytest.raises(ReadOnlyViolation, match="This block is read-only"):
        await half(Tag.objects).create(name="a")
    with read_only():
        assert await half(Tag.objects).count() == 0


async def test_reading_connections_cannot_write_even_by_raw_sql(db: Any, half: Any) -> None:
    with read_only(), pytest.raises(ReadOnlyViolation, match="read-only"):
        await half(Tag.objects).raw("INSERT INTO tag (name) VALUES ('x') RETURNING id, name")
    assert await names() == []


async def test_decorated_functions_run_in_a_transaction(db: Any) -> None:
    @transaction()
    async def work() -> int:
        await Tag.objects.acreate(name="a")
        assert transaction.active()
        return await Tag.objects.acount()

    @transaction()
    def blocking() -> None:
        Tag.objects.create(name="b")
        raise Boom

    assert await work() == 1
    with pytest.raises(Boom):
        await asyncio.to_thread(blocking)
    assert await names() == ["a"]
    assert not transaction.active()


async def test_retries_run_the_function_again_after_a_conflict(db: Any) -> None:
    attempts: list[int] = []

    @transaction(retries=3)
    async def work() -> str:
        attempts.append(1)
        if len(attempts) < 3:
            raise TransactionConflict("as the database would say")
        return "done"

    assert await work() == "done"
    assert len(attempts) == 3


async def test_serialisation_failures_are_retried_until_they_pass(db: Any, engine: str) -> None:
    author = await Author.objects.acreate(name="Ann", age=0)

    @transaction(isolation="serializable", retries=50)
    async def add() -> None:
        found = await Author.objects.aget(pk=author.pk)
        found.age = (found.age or 0) + 1
        await asyncio.sleep(0)
        await found.asave()

    await asyncio.gather(*(add() for _ in range(8)))
    assert (await Author.objects.aget(pk=author.pk)).age == 8


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: transaction(isolation="chaos"), "isolation='chaos' is not one of"),  # pyright: ignore[reportArgumentType] - refused on purpose
        (lambda: transaction(retries=-1), "retries=-1 must be a number"),
        (lambda: transaction(retries=True), "retries=True must be a number"),
    ],
)
def test_wrong_options_say_what_is_wrong(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        build()


async def test_a_block_cannot_be_retried_and_nesting_keeps_the_isolation(db: Any) -> None:
    with pytest.raises(FieldError, match="a with block cannot be run again"):
        async with transaction(retries=1):
            pass
    async with transaction():
        with pytest.raises(FieldError, match="cannot choose its isolation level"):
            async with transaction(isolation="serializable"):
                pass
