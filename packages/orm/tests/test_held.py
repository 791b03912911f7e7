"""A connection held for a schema change: its own, without limits, with transactions that queries of
the alias find.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from conftest import Half, Place
from orm_models import Country

from treefold_orm import (
    ConfigurationError,
    DatabaseError,
    StatementTimeout,
    araw,
    raw,
    transaction,
)
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._drivers.base import Database
from treefold_orm._runtime.held import HeldConnection
from treefold_orm._runtime.sandbox import sandbox


def rows(sql: str) -> Operation[list[Any]]:
    return (yield Statement("rows", sql))


def script(*statements: str) -> Operation[None]:
    for sql in statements:
        yield Statement("script", sql)


async def in_half(half: Half, block: Any, ablock: Any) -> Any:
    """Run a block of either half."""
    return await half.call(block, ablock)


async def test_queries_find_the_open_transaction(db: Database, half: Half) -> None:
    def block() -> tuple[int, str]:
        with HeldConnection() as held:
            with suppress(ZeroDivisionError), held.transaction():
                Country.objects.create(name="Austria")
                assert len(held.run(rows("SELECT 1 FROM country"))) == 1
                raise ZeroDivisionError
            with held.transaction():
                Country.objects.create(name="Switzerland")
            return len(held.run(rows("SELECT 1 FROM country"))), "sync"

    async def ablock() -> tuple[int, str]:
        async with HeldConnection() as held:
            with suppress(ZeroDivisionError):
                async with held.transaction():
                    await Country.objects.acreate(name="Austria")
                    assert len(await held.arun(rows("SELECT 1 FROM country"))) == 1
                    raise ZeroDivisionError
            async with held.transaction():
                await Country.objects.acreate(name="Switzerland")
            return len(await held.arun(rows("SELECT 1 FROM country"))), "async"

    assert await in_half(half, block, ablock) == (1, half.name)
    names = await half.call(
        lambda: [c.name for c in Country.objects.all()],
        lambda: _names(),
    )
    assert names == ["Switzerland"]


async def _names() -> list[str]:
    return [country.name async for country in Country.objects.all()]


async def test_nested_transactions_are_savepoints_of_it(db: Database, half: Half) -> None:
    def block() -> int:
        with HeldConnection() as held, held.transaction():
            Country.objects.create(name="Austria")
            with suppress(ZeroDivisionError), transaction():
                Country.objects.create(name="Switzerland")
                raise ZeroDivisionError
            return len(held.run(rows("SELECT 1 FROM country")))

    async def ablock() -> int:
        async with HeldConnection() as held, held.transaction():
            await Country.objects.acreate(name="Austria")
            with suppress(ZeroDivisionError):
                async with transaction():
                    await Country.objects.acreate(name="Switzerland")
                    raise ZeroDivisionError
            return len(await held.arun(rows("SELECT 1 FROM country")))

    assert await in_half(half, block, ablock) == 1


def create(name: str) -> None:
    Country.objects.create(name=name)


async def acreate(name: str) -> None:
    await Country.objects.acreate(name=name)


async def test_functions_of_either_half_run_inside_its_transaction(
    db: Database, half: Half
) -> None:
    def block() -> int:
        with HeldConnection() as held, held.transaction():
            held.call(create, "Austria")
            held.call(acreate, "Switzerland")
            return len(held.run(rows("SELECT 1 FROM country")))

    async def ablock() -> int:
        async with HeldConnection() as held, held.transaction():
            await held.acall(create, "Austria")
            await held.acall(acreate, "Switzerland")
            return len(await held.arun(rows("SELECT 1 FROM country")))

    assert await in_half(half, block, ablock) == 2


async def test_it_is_one_connection_apart_from_the_pool(place: Place, half: Half) -> None:
    if place.engine == "sqlite":  # its writer is another one, and waits for this transaction
        place.configure()
        async with HeldConnection() as held, held.transaction():
            await held.arun(script("CREATE TABLE apart (a INTEGER)"))
            assert await asyncio.to_thread(_tables_seen) == 0
        assert await asyncio.to_thread(_tables_seen) == 1
        return
    place.configure(statement_timeout=0.2, pool_size=1)

    def block() -> str:
        with HeldConnection() as held:
            held.run(script("SELECT pg_sleep(0.4)", "SET lock_timeout = '7s'"))
            return held.run(rows("SHOW lock_timeout"))[0][0]

    async def ablock() -> str:
        async with HeldConnection() as held:
            await held.arun(script("SELECT pg_sleep(0.4)", "SET lock_timeout = '7s'"))
            found = await held.arun(rows("SHOW lock_timeout"))
            return found[0][0]

    assert await in_half(half, block, ablock) == "7s"
    with pytest.raises(StatementTimeout, match="ran too long"):
        await asyncio.to_thread(lambda: list(raw("SELECT 1 AS a FROM pg_sleep(0.4)")))


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
@pytest.mark.parametrize("pooler", ["session", "transaction"])
async def test_it_has_the_settings_of_the_others_without_their_limit(
    empty: Place, half: Half, pooler: str
) -> None:
    empty.configure(pooler=pooler, server_settings={"statement_timeout": "200ms"})

    def block() -> None:
        with HeldConnection() as held:
            held.run(script("CREATE TABLE apart (a INTEGER)", "SELECT pg_sleep(0.4)"))

    async def ablock() -> None:
        async with HeldConnection() as held:
            await held.arun(script("CREATE TABLE apart (a INTEGER)", "SELECT pg_sleep(0.4)"))

    await in_half(half, block, ablock)
    sql = "SELECT relnamespace::regnamespace::text AS schema FROM pg_class WHERE relname = 'apart'"
    assert await half.call(lambda: raw(sql), lambda: araw(sql)) == [{"schema": empty.schema}]
    with pytest.raises(StatementTimeout, match="ran too long"):
        await asyncio.to_thread(lambda: list(raw("SELECT 1 AS a FROM pg_sleep(0.4)")))


def _tables_seen() -> int:
    with transaction.detach():
        return len(list(raw("SELECT name FROM sqlite_master WHERE name = 'apart'")))


async def test_a_failed_statement_leaves_the_connection_usable(db: Database, half: Half) -> None:
    def block() -> int:
        with HeldConnection() as held:
            with pytest.raises(DatabaseError, match="nonsense"), held.transaction():
                held.run(script("CREATE TABLE apart (a INTEGER)", "nonsense"))
            with pytest.raises(DatabaseError, match="apart"):
                held.run(rows("SELECT * FROM apart"))
            return len(held.run(rows("SELECT 1")))

    async def ablock() -> int:
        async with HeldConnection() as held:
            with pytest.raises(DatabaseError, match="nonsense"):
                async with held.transaction():
                    await held.arun(script("CREATE TABLE apart (a INTEGER)", "nonsense"))
            with pytest.raises(DatabaseError, match="apart"):
                await held.arun(rows("SELECT * FROM apart"))
            return len(await held.arun(rows("SELECT 1")))

    assert await in_half(half, block, ablock) == 1


def test_a_transaction_or_sandbox_of_the_alias_is_refused(db: Database) -> None:
    with transaction(), pytest.raises(ConfigurationError, match="inside of a transaction"):
        HeldConnection()
    with sandbox(), pytest.raises(ConfigurationError, match="inside of a transaction or sandbox"):
        HeldConnection()


def test_a_database_in_memory_has_one_connection() -> None:
    from treefold_orm import close_all, configure

    configure("sqlite", ":memory:", alias="held")
    with HeldConnection("held") as held:
        assert held.single
        held.run(script("CREATE TABLE kept (a INTEGER)"))
    assert list(raw("SELECT a FROM kept", using="held")) == []
    close_all()
