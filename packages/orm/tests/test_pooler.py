"""`pooler="transaction"`: behind a pooler that hands out server connections per transaction.

The pooler is `orm_network.Pooler`, which changes the server connection after each transaction; with
TREEFOLD_TEST_PGBOUNCER=/path/to/pgbouncer the same tests run behind a real PgBouncer too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orm_postgres
import pytest
from conftest import Half
from orm_models import Author, Country, Post, Tag
from orm_network import Pooler, pgbouncer

from treefold_orm import (
    DatabaseError,
    ReadOnlyViolation,
    UniqueViolation,
    aclose_all,
    acreate_all,
    araw,
    close_all,
    configure,
    raw,
    read_only,
    transaction,
)
from treefold_orm._runtime.connections import _databases
from treefold_orm._runtime.held import HeldConnection

PGBOUNCER = os.environ.get("TREEFOLD_TEST_PGBOUNCER")
SERVERS = 3


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    _databases.clear()
    yield
    close_all()
    _databases.clear()


@pytest.fixture
def database(postgres_dsn: str) -> Iterator[str]:
    with orm_postgres.database(postgres_dsn) as dsn:
        yield dsn


@asynccontextmanager
async def behind(kind: str, dsn: str, **options: Any) -> AsyncGenerator[None]:
    """Configure the database behind a pooler, with tables, and close it before the pooler."""
    async with _pooler(kind, dsn) as pooled:
        configure(database=pooled, pooler="transaction", **options)
        try:
            await acreate_all(Country, Author, Tag, Post)
            yield
        finally:
            await aclose_all()


@asynccontextmanager
async def _pooler(kind: str, dsn: str) -> AsyncGenerator[str]:
    if kind == "pgbouncer" and PGBOUNCER is not None:
        real = pgbouncer(dsn, PGBOUNCER, SERVERS)
        address = await asyncio.to_thread(real.__enter__)
        try:
            yield address
        finally:
            await asyncio.to_thread(real.__exit__, None, None, None)
        return
    async with Pooler(dsn, SERVERS).open() as pooler:
        yield pooler.dsn
        assert len(pooler.used) == SERVERS  # it did change connections


@pytest.fixture(params=["own", *(["pgbouncer"] if PGBOUNCER else [])])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_statements_find_their_way_whatever_connection_they_get(
    kind: str, half: Any, database: str
) -> None:
    async with behind(kind, database):
        for n in range(20):
            await half(Tag.objects).create(name=f"t{n}")
        asked = [half(Tag.objects).get(name=f"t{n % 20}") for n in range(200)]
        found = await asyncio.gather(*asked)
        assert [t.name for t in found] == [f"t{n % 20}" for n in range(200)]
        assert await half(Tag.objects.filter(name__in=["t1", "t2"])).delete() == 2


async def test_every_kind_of_call_works(kind: str, half: Any, database: str) -> None:
    async with behind(kind, database):
        country = await half(Country.objects).create(name="Peru")
        authors = [Author(name=f"a{n}", country=country) for n in range(10)]
        await half(Author.objects).bulk_create(authors)
        await half(Post.objects).bulk_create([Post(title="p", author=a) for a in authors])
        assert await half(Post.objects.filter(author__country=country)).update(views=3) == 10
        rows = await half.rows(Author.objects.prefetch_related("posts").order_by("pk"))
        assert [len(a.posts.all()) for a in rows] == [1] * 10
        assert [a.name for a in await half.iterate(Author.objects.order_by("pk"), 3)] == [
            f"a{n}" for n in range(10)
        ]
        assert await half.iterate(Author.objects.filter(name="a3").values_list("age"), 2) == [
            (None,)
        ]
        _, created = await half(Country.objects).get_or_create(name="Peru")
        assert not created
        with pytest.raises(UniqueViolation, match=r"Country\.name exists already"):
            await half(Country.objects).create(name="Peru")
        sql = "SELECT name FROM author WHERE name = :name"
        got = await half.call(lambda: raw(sql, name="a1"), lambda: araw(sql, name="a1"))
        assert got == [{"name": "a1"}]
        assert await half(Post.objects).delete() == 10


async def test_transactions_keep_one_connection_and_undo_as_a_whole(
    kind: str, database: str
) -> None:
    async with behind(kind, database):

        async def work(number: int) -> None:
            async with transaction():
                await Tag.objects.acreate(name=f"{number}-a")
                async with transaction():
                    await Tag.objects.acreate(name=f"{number}-b")
                if number % 2:
                    raise LookupError

        await asyncio.gather(*(work(n) for n in range(20)), return_exceptions=True)
        names = await Tag.objects.order_by("name").values_list("name", flat=True)
        assert names == sorted(f"{n}-{x}" for n in range(0, 20, 2) for x in "ab")


async def test_nothing_stays_on_the_servers_connections(
    kind: str, half: Any, database: str
) -> None:
    async with behind(kind, database):
        await half(Tag.objects).create(name="a")
        for _ in range(2 * SERVERS):
            await half(Tag.objects).get(name="a")
            await half.iterate(Tag.objects.all(), 1)
            await half(Tag.objects.filter(name="b")).delete()
            await half(Tag.objects).count()
        sql = (
            "SELECT (SELECT count(*) FROM pg_prepared_statements WHERE name <> '') AS statements, "
            "(SELECT count(*) FROM pg_cursors WHERE name LIKE 'treefold%') AS cursors, "
            "current_setting('application_name') <> 'treefold' AS plain"
        )
        for _ in range(2 * SERVERS):
            found = await half.call(lambda: raw(sql), lambda: araw(sql))
            assert found == [{"statements": 0, "cursors": 0, "plain": True}]


async def test_read_only_blocks_hold_without_a_setting_of_the_session(
    kind: str, half: Any, database: str
) -> None:
    async with behind(kind, database):
        await half(Tag.objects).create(name="a")
        with read_only():
            assert await half(Tag.objects).count() == 1
            with pytest.raises(ReadOnlyViolation, match="read-only"):
                await half(Tag.objects).create(name="b")
            with pytest.raises(ReadOnlyViolation, match="read-only"):
                await half(Tag.objects).raw("DELETE FROM tag RETURNING id, name")
        assert await half(Tag.objects).count() == 1


async def test_a_connection_held_for_a_schema_change_asks_for_what_the_others_do(
    half: Half, database: str
) -> None:
    async with Pooler(database, SERVERS).open() as pooler:
        for given in ({}, {"search_path": "tenant"}, {"statement_timeout": "1s"}):
            pooler.settings.clear()
            options: Any = {"server_settings": given} if given else {}
            configure(database=pooler.dsn, pooler="transaction", **options)
            await half.call(lambda: raw("SELECT 1 AS one"), lambda: araw("SELECT 1 AS one"))
            await half.call(hold, ahold)
            ordinary, held = pooler.settings
            assert ordinary.items() >= given.items()
            ordinary.pop("statement_timeout", None)  # no limit applies to a schema change
            assert held == ordinary
            await aclose_all()
            _databases.clear()


def hold() -> None:
    with HeldConnection():
        pass


async def ahold() -> None:
    async with HeldConnection():
        pass


async def test_a_pooler_without_the_option_is_what_the_option_is_for(database: str) -> None:
    """The suite's pooler does break what keeps prepared statements: the tests above prove
    something.
    """
    async with Pooler(database, SERVERS).open() as pooler:
        configure(database=pooler.dsn)
        await acreate_all(Tag)
        await Tag.objects.acreate(name="a")
        asked = [await outcome(Tag.objects.aget(name="a")) for _ in range(2 * SERVERS)]
        assert any(isinstance(answer, DatabaseError) for answer in asked)
        await aclose_all()


async def outcome(work: Any) -> Any:
    """What it returns, or the error it raises."""
    try:
        return await work
    except DatabaseError as error:
        return error
