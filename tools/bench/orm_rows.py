"""Calls that move one row, a plain list, or many rows in bulk: the oldest rows of `orm_bench`."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from typing import Any

from orm_data import NOW, ROWS, SCHEMA, BenchItem, connect, items, unsaved
from orm_measuring import Pair, Table, ameasure, calls_of, measure, timed

from treefold_orm import close_all, configure, transaction

SELECT = 'SELECT "id", "title", "body", "views", "created" FROM "benchitem"'
INSERT = 'INSERT INTO "benchitem" ("title", "body", "views", "created") VALUES '


def sync_sqlite(path: str, table: Table, rounds: int) -> None:
    """Sync SQLite against the standard module."""
    raw = sqlite3.connect(path, isolation_level=None, cached_statements=1000)
    objects = BenchItem.objects
    table.add(
        "sqlite sync get",
        measure(
            (
                lambda: raw.execute(f"{SELECT} WHERE id = ?", (7,)).fetchone(),
                lambda: objects.get(id=7),
            ),
            calls=500,
            rounds=rounds,
        ),
        2.2,
    )
    table.add(
        "sqlite sync list 1000",
        measure(
            (lambda: raw.execute(SELECT).fetchall(), lambda: list(objects.all())),
            calls=6,
            rounds=rounds,
        ),
        1.6,
    )
    raw.close()


async def async_sqlite(path: str, table: Table, rounds: int) -> None:
    """Async SQLite against aiosqlite's one-hop call."""
    import aiosqlite

    raw = await aiosqlite.connect(path, isolation_level=None, cached_statements=1000)
    objects = BenchItem.objects
    table.add(
        "sqlite async get",
        await ameasure(
            (
                lambda: raw.execute_fetchall(f"{SELECT} WHERE id = ?", (7,)),
                lambda: objects.aget(id=7),
            ),
            calls=200,
            rounds=rounds,
        ),
        1.4,
    )

    async def ours() -> list[BenchItem]:
        return await objects.all()

    table.add(
        "sqlite async list 1000",
        await ameasure((lambda: raw.execute_fetchall(SELECT), ours), calls=6, rounds=rounds),
        1.6,
    )
    await raw.close()


async def postgres(dsn: str, table: Table, rounds: int) -> None:
    """PostgreSQL against a held asyncpg connection."""
    raw = await connect(dsn, server_settings={"search_path": SCHEMA})
    objects = BenchItem.objects
    table.add(
        "postgres aget",
        await ameasure(
            (lambda: raw.fetchrow(f"{SELECT} WHERE id = $1", 7), lambda: objects.aget(id=7)),
            calls=500,
            rounds=rounds,
        ),
        1.6,
    )

    async def ours() -> list[BenchItem]:
        return await objects.all()

    table.add(
        "postgres list 1000",
        await ameasure((lambda: raw.fetch(SELECT), ours), calls=6, rounds=rounds),
        1.4,
    )

    async def raw_values() -> list[dict[str, Any]]:
        return [dict(row) for row in await raw.fetch(SELECT)]

    async def our_values() -> list[dict[str, Any]]:
        return await objects.values()

    table.add(
        "postgres values 1000",
        await ameasure((raw_values, our_values), calls=6, rounds=rounds),
        1.15,
    )
    one = f"{INSERT}($1, $2, $3, $4) RETURNING id"
    table.add(
        "postgres acreate",
        await ameasure(
            (
                lambda: raw.fetchval(one, "title", "body", 3, NOW),
                lambda: objects.acreate(title="title", body="body", views=3, created=NOW),
            ),
            calls=150,
            rounds=rounds,
        ),
        1.5,
    )
    await raw.execute("DELETE FROM benchitem WHERE id > $1", ROWS)
    change = "UPDATE benchitem SET title = $1 WHERE id = $2"
    table.add(
        "postgres aupdate",
        await ameasure(
            (
                lambda: raw.execute(change, "new", 7),
                lambda: objects.filter(id=7).aupdate(title="new"),
            ),
            calls=150,
            rounds=rounds,
        ),
        1.5,
    )
    await bulk(raw, table, rounds)
    await raw.close()


async def bulk(raw: Any, table: Table, rounds: int) -> None:
    """Bulk insert with generated keys against `unnest`, per row."""
    statement = (
        "INSERT INTO benchitem (title, body, views, created) SELECT * "
        "FROM unnest($1::text[], $2::text[], $3::int[], $4::timestamptz[]) RETURNING id"
    )
    rows = items(ROWS)
    pairs: list[Pair] = []
    for _ in range(rounds):
        fresh = unsaved(ROWS)
        with timed(ROWS) as raw_taken:
            columns = [list(column) for column in zip(*rows, strict=True)]
            keys = await raw.fetch(statement, *columns)
            _ = [(row[0], *values) for row, values in zip(keys, rows, strict=True)]
        with timed(ROWS) as our_taken:
            await BenchItem.objects.abulk_create(fresh)
        pairs.append((raw_taken[0], our_taken[0]))
        await raw.execute("DELETE FROM benchitem WHERE id > $1", ROWS)
    table.add("postgres bulk create, per row", pairs, 1.5)


async def crossing(table: Table, rounds: int) -> None:
    """A sync get in a worker thread of a running application, against the async one."""
    objects = BenchItem.objects
    calls = 300

    def blocking() -> None:
        for _ in range(calls):
            objects.get(id=7)

    pairs: list[Pair] = []
    for _ in range(rounds):
        with timed(calls) as in_async:
            for _ in range(calls):
                await objects.aget(id=7)
        with timed(calls) as in_sync:
            await asyncio.to_thread(blocking)
        pairs.append((in_async[0], in_sync[0]))
    table.add("postgres sync get / async get", pairs, 4.0)


def count_up(path: str, times: int) -> None:
    """Read and then write, many times, in a process of its own."""
    configure("sqlite", path)
    for _ in range(times):
        with transaction():
            item = BenchItem.objects.get(id=1)
            item.views += 1
            item.save()
    close_all()


def lost_updates(path: str, table: Table, *, times: int = 2500, writers: int = 4) -> None:
    """Four processes count up one row; what is missing at the end was lost."""
    before = BenchItem.objects.get(id=1).views
    pool = multiprocessing.get_context("spawn").Pool(writers)
    with pool:
        pool.starmap(count_up, [(path, times)] * writers)
    lost = times * writers - (BenchItem.objects.get(id=1).views - before)
    table.count(f"sqlite lost of {times * writers:,} read-then-write", lost, 0)


async def calls(table: Table, name: str) -> None:
    """Calls for one `aget`, and calls that 999 more rows add."""
    await BenchItem.objects.aget(id=7)
    with calls_of("treefold_orm") as found:
        await BenchItem.objects.aget(id=7)
    table.count(f"{name} calls for one aget", found.total(), 60)
    totals: list[int] = []
    for query in (BenchItem.objects.all()[:1], BenchItem.objects.all()[:ROWS]):
        await query.all()
        with calls_of("treefold_orm") as found:
            await query.all()
        totals.append(found.total())
    table.count(f"{name} calls per row", (totals[1] - totals[0]) / (ROWS - 1), 0)
