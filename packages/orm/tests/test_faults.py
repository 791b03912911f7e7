"""A random walk of faults over one set of instances and rows: no lost write, no instance that says
what is not so, no hook too many or too few, no place of the pool lost.

TREEFOLD_FAULT_BLOCKS says how many blocks each engine and half has, in walks of at most 500; the
long form is `hatch run orm:test-faults`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import Admin, Half, Place
from faults.oracle import Coin, Counted, Owner
from faults.walk import Walk
from faults.wire import Wire
from orm_halves import Handle, in_half

from treefold_orm import configure, create_all, transaction
from treefold_orm._drivers.postgres import PostgresDatabase
from treefold_orm._drivers.sqlite import SQLiteDatabase
from treefold_orm._runtime.connections import database_for

BLOCKS = int(os.environ.get("TREEFOLD_FAULT_BLOCKS", "40"))
WALK = min(BLOCKS, 500)
SEEDS = range(BLOCKS // WALK)
SIZE = 3


@pytest.fixture
def tables(empty: Place, engine: str, request: pytest.FixtureRequest) -> Iterator[Wire | None]:
    """The tables, on PostgreSQL behind a wire that can be cut."""
    if engine == "sqlite":
        create_all(Owner, Coin, Counted)
        yield None
        return
    admin: Admin = request.getfixturevalue("admin")
    create_all(Owner, Coin, Counted)
    name = admin.value(
        "SELECT conname FROM pg_constraint WHERE contype = 'f'"
        f" AND conrelid = '{empty.schema}.coin'::regclass"
    )
    admin.run(
        f"ALTER TABLE {empty.schema}.coin ALTER CONSTRAINT {name} DEFERRABLE INITIALLY DEFERRED"
    )
    with _behind(empty) as wire:
        yield wire


@contextlib.contextmanager
def _behind(place: Place) -> Generator[Wire]:
    address = urlsplit(place.address)
    with Wire(address.hostname or "127.0.0.1", address.port or 5432) as wire:
        user = address.netloc.rpartition("@")[0]
        there = address._replace(netloc=f"{user}@127.0.0.1:{wire.port}").geturl()
        from treefold_orm import close_all

        close_all()
        configure(
            "postgres",
            there,
            server_settings={"search_path": place.schema},
            pool_size=SIZE,
            pool_timeout=5,
        )
        yield wire
        close_all()


def free_places(database: Any) -> bool:
    """True where all connections that are open wait for a call."""
    if isinstance(database, PostgresDatabase):
        pools = [pool for pool in database._pools.values() if not pool.loop.is_closed()]
        return all(len(pool.idle) == len(pool._all) and not pool.waiting for pool in pools)
    assert isinstance(database, SQLiteDatabase)
    return all(
        pool.idle_count == len(pool.all_items) for pool in (database._writer, database._readers)
    )


async def fill(h: Handle) -> None:
    """Open as many transactions as the pool has places."""
    if h.name == "async":
        barrier = asyncio.Barrier(SIZE)

        async def hold() -> None:
            async with transaction():
                await Owner.objects.acount()
                await barrier.wait()

        await asyncio.gather(*(hold() for _ in range(SIZE)))
        return
    with contextlib.ExitStack() as stack:
        for _ in range(SIZE):
            stack.enter_context(transaction.detach())
            stack.enter_context(transaction())
            Owner.objects.count()


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_walk_of_faults_loses_nothing(
    tables: Wire | None, half: Half, engine: str, seed: int, request: pytest.FixtureRequest
) -> None:
    admin = request.getfixturevalue("admin") if engine == "postgres" else None

    async def body(h: Handle) -> None:
        walk = Walk(h, engine, f"{engine} {h.name} {seed}", admin, tables)
        await walk.run(WALK)
        assert free_places(database_for("default"))
        if engine == "postgres":
            await fill(h)
        print(h.name, engine, dict(sorted(walk.ends.items())), f"kills={walk.kills}")

    await in_half(half, body)
