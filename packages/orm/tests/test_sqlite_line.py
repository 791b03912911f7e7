"""Operations that wait for a SQLite connection are run by the worker that is free first: each gets
its own outcome, a cancelled one stops alone, and no place in the pool is lost.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from orm_models import Tag

from treefold_orm import (
    Model,
    PoolTimeout,
    StatementTimeout,
    UniqueViolation,
    aclose_all,
    acreate_all,
    close_all,
    configure,
    create_all,
)
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._drivers import sqlite
from treefold_orm._runtime.connections import database_for
from treefold_orm._sqlite.clock import Connection

TAGS = 100
FOREVER = 10**10


@pytest.fixture(params=[1, 2])
def pool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The pool of readers, of one or of two."""
    configure("sqlite", tmp_path / "line.sqlite3", pool_size=request.param, pool_timeout=5)
    create_all(Tag)
    Tag.objects.bulk_create([Tag(name=f"t{i}") for i in range(TAGS)])
    yield readers()
    close_all()


def readers() -> Any:
    return database_for("default")._readers  # pyright: ignore - the pool itself is looked at


def counted(most: int, begun: threading.Event | None = None) -> Operation[int]:
    """Count as far as `most` on the connection; with `begun`, a moment after that is set."""
    if begun is not None:
        begun.set()
        time.sleep(0.02)  # what is interrupted now has not begun
    rows = yield Statement(
        "rows",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) "
        "SELECT COUNT(*) FROM c",
        (most,),
    )
    return rows[0][0]


def read(most: int, begun: threading.Event | None = None) -> asyncio.Task[int]:
    work = database_for("default").arun(counted(most, begun), write=False, read_only=False)
    return asyncio.ensure_future(work)


async def given_back(pool: Any) -> None:
    deadline = time.monotonic() + 5
    while pool.idle_count < len(pool.all_items):
        assert time.monotonic() < deadline, "A connection was not given back"
        await asyncio.sleep(0.001)


async def test_each_of_many_reads_gets_its_own_row(pool: Any) -> None:
    for _ in range(5):
        found = await asyncio.gather(*(Tag.objects.aget(id=i) for i in range(1, TAGS + 1)))
        assert [tag.id for tag in found] == list(range(1, TAGS + 1))
    await given_back(pool)


async def test_reads_that_fail_fail_alone(pool: Any) -> None:
    found = await asyncio.gather(
        *(Tag.objects.aget(id=i) for i in range(TAGS - 20, TAGS + 20)), return_exceptions=True
    )
    assert [isinstance(tag, Tag) for tag in found] == [True] * 21 + [False] * 19
    assert all(isinstance(tag, (Tag, Tag.DoesNotExist)) for tag in found)
    await given_back(pool)


async def test_many_writes_at_once_are_each_written(pool: Any) -> None:
    made = await asyncio.gather(
        *(Tag.objects.acreate(name=f"t{i}") for i in range(TAGS - 5, TAGS + 30)),
        return_exceptions=True,
    )
    assert [type(one) for one in made] == [UniqueViolation] * 5 + [Tag] * 30
    assert await Tag.objects.acount() == TAGS + 30


async def test_a_cancelled_read_stops_alone(pool: Any) -> None:
    begun = [threading.Event() for _ in pool.all_items or range(pool._size)]
    endless = [read(FOREVER, event) for event in begun]
    behind = [read(10 + i) for i in range(10)]
    for event in begun:
        await asyncio.to_thread(event.wait, 5)
    behind[4].cancel()
    for task in endless:
        task.cancel()
    outcomes = await asyncio.gather(*endless, *behind, return_exceptions=True)
    expected: list[Any] = [10 + i for i in range(10)]
    stopped = outcomes[: len(endless)]
    assert all(isinstance(one, asyncio.CancelledError) for one in (*stopped, outcomes[-6]))
    assert [one for one in outcomes if isinstance(one, int)] == expected[:4] + expected[5:]
    await given_back(pool)


async def test_a_cancelled_read_in_the_line_is_interrupted_when_it_runs(pool: Any) -> None:
    size = pool._size
    first = [read(200_000) for _ in range(size)]
    begun = threading.Event()
    endless = read(FOREVER, begun)
    last = [read(20) for _ in range(5)]
    await asyncio.gather(*first)
    await asyncio.to_thread(begun.wait, 5)
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    assert await asyncio.gather(*last) == [20] * 5
    await given_back(pool)


class Watched(Connection):
    """Notes who asks for a transaction while a statement runs.

    Since SQLite 3.53 such a call waits for the end of the statement, and no thread runs then.
    """

    running: str | None = None
    asked: ClassVar[list[str]] = []

    def execute(self, *args: Any) -> Any:
        self.running = args[0]
        try:
            return super().execute(*args)
        finally:
            self.running = None

    @property
    def in_transaction(self) -> bool:
        if self.running:
            self.asked.append(self.running)
        return super().in_transaction


async def test_a_cancellation_asks_a_busy_connection_for_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sqlite, "Connection", Watched)
    configure("sqlite", tmp_path / "asked.sqlite3")
    await acreate_all(Tag)
    begun = threading.Event()
    endless = read(FOREVER, begun)
    await asyncio.to_thread(begun.wait, 5)
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    assert (Watched.asked, await Tag.objects.acount()) == ([], 0)
    await aclose_all()


async def test_hundreds_of_reads_cancelled_at_any_moment_harm_no_other(pool: Any) -> None:
    for round_ in range(20):
        tasks = [read(2_000) for _ in range(30)]
        for step, task in enumerate(tasks[::2]):
            if step % 5 == round_ % 5:
                await asyncio.sleep(0)
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert outcomes[1::2] == [2_000] * 15
        kinds = {type(one) for one in outcomes[::2]}
        assert kinds <= {asyncio.CancelledError, int}, StatementTimeout
    await given_back(pool)


async def test_waiting_ends_with_a_pool_timeout(pool: Any) -> None:
    database_for("default")._timeout = 0.05  # pyright: ignore - shorter than in any application
    begun = [threading.Event() for _ in range(pool._size)]
    endless = [read(FOREVER, event) for event in begun]
    with pytest.raises(PoolTimeout, match=r"No SQLite reader became free within"):
        await read(5)
    for task in endless:
        task.cancel()
    await asyncio.gather(*endless, return_exceptions=True)
    assert await read(5) == 5
    await given_back(pool)


async def test_threads_and_tasks_stand_in_one_line(pool: Any) -> None:
    def blocking() -> list[int]:
        return [Tag.objects.get(id=i).id for i in range(1, 40)]

    threads = [asyncio.to_thread(blocking) for _ in range(3)]
    tasks = [Tag.objects.aget(id=i) for i in range(1, 60)]
    tags: list[Any]
    *found, tags = await asyncio.gather(*threads, cast("Any", asyncio.gather(*tasks)))
    assert found == [list(range(1, 40))] * 3
    assert [tag.id for tag in tags] == list(range(1, 60))
    await given_back(pool)


async def test_a_connection_that_only_threads_used_serves_tasks(pool: Any) -> None:
    begun = [threading.Event() for _ in range(pool._size)]

    def blocking(event: threading.Event) -> int:
        work = counted(500_000, event)
        return database_for("default").run(work, write=False, read_only=False)

    threads = [asyncio.ensure_future(asyncio.to_thread(blocking, event)) for event in begun]
    for event in begun:
        await asyncio.to_thread(event.wait, 5)
    assert await asyncio.gather(*(read(i) for i in range(1, 9))) == list(range(1, 9))
    assert await asyncio.gather(*threads) == [500_000] * pool._size
    await given_back(pool)


@pytest.mark.parametrize("pool", [2], indirect=True)
def test_a_loop_that_ended_holds_up_no_other(pool: Any) -> None:
    async def left() -> None:
        for _ in range(10):
            read(50_000)
        await asyncio.sleep(0)

    async def later() -> list[int]:
        return await asyncio.gather(*(read(i) for i in range(1, 20)))

    asyncio.run(left())
    assert asyncio.run(later()) == list(range(1, 20))


@pytest.mark.parametrize("pool", [2], indirect=True)
def test_a_connection_that_opens_while_its_loop_ends_serves_the_next_loop(pool: Any) -> None:
    async def left() -> None:
        read(5)
        await asyncio.sleep(0)

    async def later() -> list[int]:
        return await asyncio.gather(*(read(i) for i in range(1, 5)))

    for _ in range(30):
        close_all()
        asyncio.run(left())
        assert asyncio.run(later()) == [1, 2, 3, 4]


async def test_reads_in_line_leave_nothing_for_the_collector(pool: Any) -> None:
    await asyncio.gather(*(Tag.objects.aget(id=i) for i in range(1, TAGS)))
    gc.collect()
    gc.disable()
    try:
        for _ in range(30):
            wanted = (Tag.objects.aget(id=i) for i in range(1, TAGS + 50))
            found = await asyncio.gather(*wanted, return_exceptions=True)
            del found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [item for item in gc.garbage if isinstance(item, (Model, Tag.DoesNotExist))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
