"""Blocking calls, cancellation, pools and locks.

Tests named after an ID prove that row of the security and reliability catalogue.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from orm_models import Author, Country, Tag

from treefold_orm import (
    DatabaseLocked,
    PoolTimeout,
    ReadOnlyViolation,
    SyncCallInAsync,
    UniqueViolation,
    aclose_all,
    allow_blocking,
    record_queries,
    transaction,
)


async def names() -> list[str]:
    return await Tag.objects.order_by("name").values_list("name", flat=True)


async def test_blocking_calls_on_a_loop_raise_and_name_the_twin(db: Any) -> None:
    with pytest.raises(SyncCallInAsync, match=r"would block the event loop: use await aget\(\)"):
        Tag.objects.get(name="a")
    with pytest.raises(SyncCallInAsync, match="use `async for`, or await the query"):
        list(Tag.objects.all())
    with pytest.raises(SyncCallInAsync, match=r"use `async with transaction\(\):`"), transaction():
        pass
    with pytest.raises(SyncCallInAsync, match=r"use aiterator\(\)"):
        Tag.objects.iterator()


async def test_blocking_calls_can_be_allowed_for_start_up(db: Any) -> None:
    with allow_blocking():
        Tag.objects.create(name="a")
        assert [t.name for t in Tag.objects.all()] == ["a"]
    assert await names() == ["a"]


def test_scripts_without_a_loop_work_and_so_do_several_loops(db: Any) -> None:
    Tag.objects.create(name="a")

    async def work() -> int:
        found = await Tag.objects.acount()
        await aclose_all()
        return found

    assert [asyncio.run(work()) for _ in range(3)] == [1, 1, 1]
    assert Tag.objects.count() == 1


# -- cancellation ---------------------------------------------------------------------------------


async def cancelled_after(steps: int, work: Any) -> None:
    """Start `work` and cancel it after some turns of the loop."""
    task = asyncio.ensure_future(work)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, UniqueViolation, Tag.DoesNotExist):
        await task


async def test_s_110_a_cancelled_query_never_gives_its_answer_to_another(db: Any) -> None:
    for number in range(60):
        await Tag.objects.acreate(name=f"n{number}")
    for number in range(60):
        await cancelled_after(number % 7, Tag.objects.aget(name=f"n{number}"))
    found = await asyncio.gather(*(Tag.objects.aget(name=f"n{i}") for i in range(60)))
    assert [t.name for t in found] == [f"n{i}" for i in range(60)]


async def test_r_31_cancelling_a_transaction_anywhere_leaks_nothing(db: Any) -> None:
    async def work(number: int) -> None:
        async with transaction():
            await Tag.objects.acreate(name=f"a{number}")
            async with transaction():
                await Tag.objects.acreate(name=f"b{number}")
            await Tag.objects.acreate(name=f"c{number}")

    for number in range(40):
        await cancelled_after(number, work(number))
    found = set(await names())
    for number in range(40):
        assert len({f"{letter}{number}" for letter in "abc"} & found) in {0, 3}
    async with transaction():
        await Tag.objects.acreate(name="after")
    assert "after" in await names()


async def test_r_31_waiting_for_a_connection_can_be_cancelled(place: Any, db: Any) -> None:
    place.configure(pool_size=1)
    async with transaction(), asyncio.TaskGroup() as group:
        with transaction.detach():
            waiting = [
                group.create_task(cancelled_after(3, Tag.objects.acreate(name=f"x{i}")))
                for i in range(5)
            ]
        await asyncio.gather(*waiting)
    assert await Tag.objects.acount() == 0
    await Tag.objects.acreate(name="after")


async def test_a_timeout_stops_the_statement_and_frees_the_connection(db: Any, engine: str) -> None:
    slow = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS id, '' AS name FROM n WHERE i < 0",
        "postgres": "SELECT 1 AS id, pg_sleep(30)::text AS name",
    }
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await Tag.objects.araw(slow[engine])
    await asyncio.wait_for(Tag.objects.acreate(name="after"), 5)


# -- pools ----------------------------------------------------------------------------------------


async def test_s_114_waiting_for_a_connection_ends_with_an_error(place: Any, db: Any) -> None:
    place.configure(pool_size=1, pool_timeout=0.05)
    async with transaction():
        with (
            transaction.detach(),
            pytest.raises(PoolTimeout, match=r"became free within 0.05 s: raise pool_size"),
        ):
            await Tag.objects.acreate(name="a")
    await Tag.objects.acreate(name="a")


async def test_s_114_more_tasks_than_connections_all_get_their_turn(place: Any, db: Any) -> None:
    place.configure(pool_size=3)
    await asyncio.gather(*(Tag.objects.acreate(name=f"t{i}") for i in range(50)))
    found = await asyncio.gather(*(Tag.objects.aget(name=f"t{i}") for i in range(50)))
    assert len(found) == 50


async def test_s_114_configuring_again_closes_the_first_connections_and_warns(
    place: Any, db: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await Tag.objects.acount()
    with caplog.at_level("WARNING", logger="treefold.orm"):
        place.configure()
    assert [r.getMessage() for r in caplog.records] == [
        "Database 'default' was configured again: the connections of the first configuration "
        "are closed"
    ]
    assert await Tag.objects.acount() == 0


async def test_r_08_fifty_writers_of_one_file_meet_no_lock(db: Any) -> None:
    async def write(number: int) -> None:
        for turn in range(4):
            async with transaction():
                count = await Tag.objects.acount()
                await Tag.objects.acreate(name=f"{number}-{turn}-{count}")

    await asyncio.gather(*(write(i) for i in range(50)))
    assert await Tag.objects.acount() == 200


async def test_no_read_then_write_is_lost_between_threads_and_tasks(db: Any, engine: str) -> None:
    author = await Author.objects.acreate(name="Ann", age=0)

    async def add() -> None:
        async with transaction():
            found = await Author.objects.select_for_update().aget(pk=author.pk)
            found.age = (found.age or 0) + 1
            await found.asave()

    def blocking() -> None:
        for _ in range(10):
            with transaction():
                found = Author.objects.select_for_update().get(pk=author.pk)
                found.age = (found.age or 0) + 1
                found.save()

    await asyncio.gather(
        *(add() for _ in range(20)), *(asyncio.to_thread(blocking) for _ in range(4))
    )
    assert (await Author.objects.aget(pk=author.pk)).age == 60


async def test_get_or_create_makes_one_row_however_many_ask(db: Any) -> None:
    found = await asyncio.gather(*(Country.objects.aget_or_create(name="Peru") for _ in range(20)))
    assert len({c.pk for c, _ in found}) == 1
    assert sum(created for _, created in found) == 1


async def test_locked_rows_can_be_skipped_or_refused(db: Any, engine: str) -> None:
    if engine == "sqlite":
        with pytest.raises(Exception, match="SQLite has no row locks"):
            await Tag.objects.select_for_update(skip_locked=True)
        return
    for name in ("a", "b"):
        await Tag.objects.acreate(name=name)
    async with transaction():
        await Tag.objects.select_for_update().aget(name="a")
        with transaction.detach():
            async with transaction():
                free = await Tag.objects.select_for_update(skip_locked=True)
                assert [t.name for t in free] == ["b"]
            with pytest.raises(DatabaseLocked, match="The row is locked by another transaction"):
                async with transaction():
                    await Tag.objects.select_for_update(nowait=True).aget(name="a")


async def test_r_03_a_connection_the_server_closed_is_replaced(
    db: Any, engine: str, request: pytest.FixtureRequest
) -> None:
    await Tag.objects.acreate(name="a")
    if engine == "postgres":
        admin = request.getfixturevalue("admin")
        sql = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'treefold'"
        )
        await asyncio.to_thread(admin.run, sql)
    failures = 0
    for _ in range(5):
        try:
            await Tag.objects.acount()
        except Exception:
            failures += 1
    assert failures <= 1
    assert await names() == ["a"]


async def test_raw_sql_cannot_leave_settings_behind(db: Any, engine: str, place: Any) -> None:
    if engine == "sqlite":
        with pytest.raises(ReadOnlyViolation):
            await Tag.objects.araw("PRAGMA query_only = OFF")
        return
    place.configure(pool_size=1)
    await Tag.objects.araw("SELECT 1 AS id, set_config('work_mem', '123kB', false) AS name")
    found = await Tag.objects.araw("SELECT 1 AS id, current_setting('work_mem') AS name")
    assert found[0].name != "123kB"


async def test_recorded_queries_tell_of_repeats_without_values(db: Any) -> None:
    repeated: list[str] = []
    with record_queries(
        repeats=3, on_repeat=lambda event, count: repeated.append(f"{event.source} x{count}")
    ) as seen:
        for number in range(4):
            await Tag.objects.filter(name=f"secret{number}")
    assert len(seen) == 4
    assert len(repeated) == 1
    assert "test_reliability.py" in repeated[0]
    assert not any("secret" in event.sql for event in seen.events)
    assert list(seen.repeated().values()) == [4]
    assert seen.duration > 0
