"""Blocking calls, cancellation, pools and locks.

Tests named after an ID prove that row of the security and reliability catalogue.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from asyncpg import exceptions as asyncpg_errors  # pyright: ignore[reportMissingTypeStubs] - it has no type information
from orm_halves import Handle, in_half
from orm_models import Author, Country, Everything, Tag

from treefold_orm import (
    ConnectionFailed,
    DatabaseLocked,
    OperationalError,
    PoolTimeout,
    ReadOnlyViolation,
    SyncCallInAsync,
    UniqueViolation,
    aclose_all,
    acreate_all,
    allow_blocking,
    araw,
    configure,
    raw,
    record_queries,
    transaction,
)
from treefold_orm._drivers import sqlite
from treefold_orm._drivers.postgres_errors import translate_error


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


async def test_s_110_cancelled_queries_never_give_their_answers_to_others(
    place: Any, db: Any, engine: str
) -> None:
    size = 5
    database = place.configure(pool_size=size)
    source = random.Random(110)  # noqa: S311, RUF100 - the same cases in every run
    await Tag.objects.abulk_create([Tag(name=f"n{number}") for number in range(1000)])
    for start in range(0, 1000, 20):  # some of them wait for a connection while they are cancelled
        await asyncio.gather(
            *(
                cancelled_after(source.randrange(12), Tag.objects.aget(name=f"n{number}"))
                for number in range(start, start + 20)
            )
        )
    found = await asyncio.gather(*(Tag.objects.aget(name=f"n{number}") for number in range(1000)))
    assert [t.name for t in found] == [f"n{number}" for number in range(1000)]
    if engine == "sqlite":
        assert len(database._readers.all_items) <= size
        deadline = time.monotonic() + 5  # a worker gives its connection back behind its last answer
        while database._readers.idle_count < len(database._readers.all_items):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.001)
    else:
        (pool,) = database._pools.values()
        assert pool.connection_count <= size
        assert len(pool.idle) == pool.connection_count


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


async def _streamed() -> None:
    async for _ in Tag.objects.order_by("name").aiterator(1):
        pass


async def _nested() -> None:
    async with transaction():
        await Author.objects.acreate(name="outer")
        async with transaction():
            await Author.objects.acreate(name="inner")


async def _hooked() -> None:
    async with transaction():
        await Author.objects.acreate(name="outer")
        await Author.objects.acreate(name="inner")
        transaction.on_commit(lambda: Tag.objects.acount())


FEATURES: dict[str, Any] = {
    "get": lambda: Tag.objects.aget(name="b"),
    "list": lambda: Tag.objects.all()._afetch_rows(),
    "prefetch": lambda: Author.objects.prefetch_related("posts")._afetch_rows(),
    "page": lambda: Tag.objects.akeyset(2),
    "stream": _streamed,
    "raw": lambda: araw("SELECT 1 AS one"),
    "create": lambda: Country.objects.acreate(name="x"),
    "get_or_create": lambda: Country.objects.aget_or_create(name="x"),
    "bulk": lambda: Country.objects.abulk_create([Country(name=f"c{n}") for n in range(600)]),
    "nested": _nested,
    "hooked": _hooked,
}


@pytest.mark.parametrize("feature", FEATURES)
async def test_r_31_a_cancellation_at_any_await_leaks_nothing(
    place: Any, db: Any, feature: str
) -> None:
    place.configure(pool_size=2, pool_timeout=5)
    await Tag.objects.abulk_create([Tag(name=name) for name in "abc"])
    whole = False
    turn = 0
    while not whole:  # the N-th turn of the loop for N = 0, 1, 2 ... until it comes too late
        await Author.objects.adelete()
        await Country.objects.adelete()
        task = asyncio.ensure_future(FEATURES[feature]())
        for _ in range(turn):
            await asyncio.sleep(0)
        whole = task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert await Author.objects.acount() in {0, 2}
        assert await Country.objects.acount() in {0, 1, 600}
        turn = turn + 1 if turn < 40 else turn * 2
    async with transaction(), transaction():  # nothing is held, locked or half done
        await Author.objects.acreate(name="after")
        with transaction.detach():
            assert await asyncio.gather(*(Tag.objects.acount() for _ in range(4))) == [3] * 4


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
    with pytest.raises(TimeoutError):  # asyncio's own, without a text
        async with asyncio.timeout(0.1):
            await Tag.objects.araw(slow[engine])
    if engine == "postgres":  # what comes next never meets the statement that was given up
        active = "FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(30)%'"
        others = "AND pid <> pg_backend_pid() AND datname = current_database()"
        assert await araw(f"SELECT count(*) AS n {active} {others}") == [{"n": 0}]
    await asyncio.wait_for(Tag.objects.acreate(name="after"), 5)


# -- pools ----------------------------------------------------------------------------------------


async def held_forever(place: Any, alias: str) -> float:
    """Seconds until a call gives up while the only connection is held."""
    place.configure(pool_size=1, alias=alias, pool_timeout=1)
    async with transaction(alias):
        with transaction.detach():
            begun = time.monotonic()
            with pytest.raises(PoolTimeout, match=r"became free within 1 s: raise pool_size"):
                await Tag.objects.using(alias).acreate(name="a")
    await Tag.objects.using(alias).acreate(name="a")
    return time.monotonic() - begun


async def served(place: Any) -> float:
    """Seconds until 50 calls of half a second each have their answers from 5 connections."""
    place.configure(pool_size=5, alias="busy")
    await asyncio.gather(*(araw("SELECT 1 AS one", using="busy") for _ in range(5)))
    begun = time.monotonic()
    answers = await asyncio.gather(
        *(araw("SELECT pg_sleep(0.5)::text AS nap", using="busy") for _ in range(50))
    )
    assert answers == [[{"nap": ""}]] * 50
    return time.monotonic() - begun


async def test_s_114_fifty_wait_for_five_connections_and_one_gives_up_when_its_time_is_over(
    place: Any, db: Any, engine: str
) -> None:
    async with asyncio.TaskGroup() as group:
        held = group.create_task(held_forever(place, "held"))
        busy = group.create_task(served(place)) if engine == "postgres" else None
    assert held.result() >= 1
    assert busy is None or busy.result() < 25  # as long as one connection would take


def test_s_114_none_waits_longer_than_ten_seconds_unless_it_is_set() -> None:
    assert inspect.signature(configure).parameters["pool_timeout"].default == 10


async def test_s_114_the_waiting_time_can_be_set(place: Any, db: Any, half: Any) -> None:
    place.configure(pool_size=1, pool_timeout=0.05)
    async with transaction():
        with transaction.detach(), pytest.raises(PoolTimeout, match=r"became free within 0.05 s"):
            await half(Tag.objects).create(name="a")
    await half(Tag.objects).create(name="a")


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


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are read in /proc")
async def test_s_114_connections_of_the_former_pool_are_closed(
    place: Any, db: Any, half: Any, engine: str, request: pytest.FixtureRequest
) -> None:
    """Seen at the server, and for a file of SQLite among the descriptors of this process."""
    own = f"treefold-former-{os.getpid()}"
    options = {"server_settings": {"application_name": own}} if engine == "postgres" else {}

    async def kept_open() -> int:
        if engine == "sqlite":
            links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
            return sum(str(place.address) in os.readlink(link) for link in links if link.exists())
        admin: Any = request.getfixturevalue("admin")
        sql = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{own}'"
        return await asyncio.to_thread(admin.value, sql)

    place.configure(pool_size=3, **options)
    await asyncio.gather(*(half(Tag.objects).count() for _ in range(9)))
    assert await kept_open() > 0
    place.configure()
    async with asyncio.timeout(5):
        while await kept_open():  # noqa: ASYNC110 - neither the server nor the kernel tells
            await asyncio.sleep(0.01)
    assert await half(Tag.objects).count() == 0


async def test_r_07_a_full_disk_loses_nothing_and_ends_when_there_is_room(
    db: Any, half: Any, engine: str
) -> None:
    if engine == "postgres":  # its disk is its own affair; ours is to report it
        translated = translate_error(asyncpg_errors.DiskFullError("could not extend file"))
        assert isinstance(translated, OperationalError)
        return
    writer = db._writer.take_item()
    raw = writer.ensure_connection()
    limit = raw.execute("PRAGMA page_count").fetchone()[0] + 8
    raw.execute(f"PRAGMA max_page_count = {limit}")
    db._writer.return_item(writer)
    stored, refused = 0, 0
    for number in range(1000):
        try:
            await half(Everything.objects).create(integer=number, text="x" * 2000)
            stored += 1
        except ConnectionFailed:
            refused += 1
    assert stored > 0
    assert refused > 900
    assert await half(Everything.objects).count() == stored
    with pytest.raises(ConnectionFailed, match=r"The database file cannot be used \(SQLITE_FULL\)"):
        await half(Everything.objects).create(text="x" * 20000)
    raw.execute("PRAGMA max_page_count = 1000000")
    await half(Everything.objects).create(integer=1, text="x" * 2000)
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


FULL = """
SET search_path TO {schema};
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.name LIKE 'full%' THEN RAISE EXCEPTION '%', NEW.name USING ERRCODE = '{code}'; END IF;
    RETURN NEW;
END $$;
CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT OR UPDATE ON author {deferred}
    FOR EACH ROW EXECUTE FUNCTION refuse();
RESET search_path
"""
LACKS = {
    "53000": "its resources do not suffice",
    "53100": "its disk is full",
    "53200": "its memory does not suffice",
    "53400": "a limit of its configuration is exceeded",
}


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
@pytest.mark.parametrize("code", LACKS)
async def test_r_07_a_statement_that_finds_no_room_is_refused_alone(
    empty: Any, half: Any, admin: Any, code: str
) -> None:
    async def body(h: Handle) -> None:
        await h(Author.objects).create(name="first")
        await refuse_write(h(Author(name="full")).save)
        author = await h(Author.objects).get()
        author.name = "full"
        await refuse_write(h(author).save)
        await refuse_write(lambda: h(Author.objects).bulk_update([author], ["name"]))
        author.name, author.age = "first", 1
        with record_queries() as sent:
            await h(author).save()
        assert [event.sql for event in sent.events] == [
            'UPDATE "author" SET "age" = $1 WHERE "id" = $2'
        ]
        async with h.transaction():
            author.age = 2
            await h(author).save()
            with contextlib.suppress(OperationalError):
                async with h.transaction():
                    await h(Author(name="full")).save()
        rows = await h.rows(Author.objects.values_list("name", "age"))
        assert rows == [("first", 2)]

    async def refuse_write(write: Any) -> None:
        with pytest.raises(OperationalError) as caught:
            await write()
        assert type(caught.value) is OperationalError
        assert caught.value.code == code
        assert str(caught.value) == f"PostgreSQL refused the statement: {LACKS[code]} ({code})"

    empty.configure(pool_size=1)
    await acreate_all(Country, Author)
    full = FULL.format(schema=empty.schema, code=code, deferred="")
    await asyncio.to_thread(admin.run, full)
    before = await araw("SELECT pg_backend_pid() AS pid")
    await in_half(half, body)
    assert await araw("SELECT pg_backend_pid() AS pid") == before


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_r_07_a_commit_that_finds_no_room_is_an_answer(
    empty: Any, half: Any, admin: Any
) -> None:
    async def body(h: Handle) -> None:
        author = await h(Author.objects).create(name="first")

        async def block() -> None:
            async with h.transaction():
                author.name = "full"
                await h(author).save()

        with pytest.raises(OperationalError, match=r"its disk is full \(53100\)$") as caught:
            await block()
        assert type(caught.value) is OperationalError
        author.name, author.age = "first", 1
        with record_queries() as sent:
            await h(author).save()
        assert [event.sql for event in sent.events] == [
            'UPDATE "author" SET "age" = $1 WHERE "id" = $2'
        ]

    await acreate_all(Country, Author)
    deferred = "DEFERRABLE INITIALLY DEFERRED"
    full = FULL.format(schema=empty.schema, code="53100", deferred=deferred)
    await asyncio.to_thread(admin.run, full)
    await in_half(half, body)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_r_07_a_lack_of_room_is_told_in_the_words_of_the_server(
    place: Any, db: Any, half: Any
) -> None:
    place.configure(server_settings={"temp_file_limit": "64kB", "work_mem": "64kB"})
    sql = "SELECT max(n) AS n FROM (SELECT n FROM generate_series(1, 100000) n ORDER BY -n) s"
    # in quotes since PostgreSQL 18
    reason = r'^PostgreSQL refused the statement: temporary file size exceeds "?temp_file_limit'
    with pytest.raises(OperationalError, match=reason) as caught:
        await half.call(lambda: raw(sql), lambda: araw(sql))
    assert (type(caught.value), caught.value.code) == (OperationalError, "53400")


def test_r_07_a_server_without_room_for_a_connection_is_no_answer_to_a_statement() -> None:
    parts = {"S": "FATAL", "V": "FATAL", "C": "53200", "M": "out of memory"}
    made: Any = asyncpg_errors.PostgresError
    translated = translate_error(made.new(parts), "there")
    assert isinstance(translated, ConnectionFailed)


async def test_r_08_fifty_writers_of_one_file_meet_no_lock(db: Any, half: Any) -> None:
    waits: list[float] = []

    async def write(number: int) -> None:
        for turn in range(20):
            begun = time.monotonic()
            await half(Tag.objects).create(name=f"{number}-{turn}")
            waits.append(time.monotonic() - begun)

    await asyncio.gather(*(write(i) for i in range(50)))
    assert await Tag.objects.acount() == 1000
    assert sorted(waits)[989] < sqlite.BUSY_TIMEOUT  # after which a lock is an error


async def test_r_08_reading_and_then_writing_in_one_transaction_meets_no_lock(db: Any) -> None:
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
    place: Any, db: Any, half: Any, engine: str, request: pytest.FixtureRequest
) -> None:
    own = f"treefold-{os.getpid()}"
    options = {"server_settings": {"application_name": own}} if engine == "postgres" else {}
    place.configure(**options)
    await half(Tag.objects).create(name="a")
    if engine == "postgres":
        admin = request.getfixturevalue("admin")
        sql = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE application_name = '{own}'"
        )
        await asyncio.to_thread(admin.run, sql)
    failures = 0
    for _ in range(5):
        try:
            await half(Tag.objects).count()
        except ConnectionFailed:
            failures += 1
    assert failures <= 1
    assert await names() == ["a"]


async def test_raw_sql_cannot_leave_settings_behind(db: Any, engine: str, place: Any) -> None:
    if engine == "sqlite":
        with pytest.raises(ReadOnlyViolation, match="read-only"):
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
