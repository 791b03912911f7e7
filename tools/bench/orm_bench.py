"""What the ORM costs beside the raw driver: CPU time in one process, interleaved, and calls.

    python tools/bench/orm_bench.py --backend sqlite
    python tools/bench/orm_bench.py --backend postgres --dsn postgresql://postgres@127.0.0.1:5432/postgres
    python tools/bench/orm_bench.py --only relations --rounds 15

Each scenario runs the raw driver and the ORM in short batches that are neighbours in time; the
figure is the median of the ratios of neighbours, and the times beside it are medians of CPU time. A
best batch of each would compare batches of different moments, whose clock and caches differ. All
threads of the process share one CPU meanwhile, where the system lets them: on several, what a hop
between threads costs depends on where the system happened to put them, for a whole run.

Counts of related rows on PostgreSQL are measured in the time of a clock, since there the server
works: beside the statement that Django writes.

A list through `FilterSet` and `Page` stands beside a handler that does the same by hand.

Every figure stands next to its bar (a ratio, a number of calls, of lost updates, of milliseconds),
and the exit status is 1 when one of them is above it. On PostgreSQL the tables live in a schema of
their own, dropped at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import orm_lists
import orm_relations
import orm_rows
from orm_data import SCHEMA, connect, seed
from orm_measuring import Table, imported, on_one_cpu

from treefold_orm import aclose_all, close_all, configure

PARTS = ("import", "rows", "relations", "lists")


async def _in_schema(dsn: str, command: str) -> None:
    admin = await connect(dsn)
    try:
        await admin.execute(command.format(SCHEMA))
    finally:
        await admin.close()


async def _async_postgres(dsn: str, table: Table, rounds: int, parts: list[str]) -> None:
    await seed()
    if "rows" in parts:
        await orm_rows.postgres(dsn, table, rounds)
        await orm_rows.crossing(table, rounds)
        await orm_rows.calls(table, "postgres")
    if "relations" in parts:
        await orm_relations.async_postgres(dsn, table, rounds)
    if "lists" in parts:
        await orm_lists.measure_lists(table, "postgres", rounds)
    await aclose_all()


def run_postgres(dsn: str, table: Table, rounds: int, parts: list[str]) -> None:
    """Everything on PostgreSQL, in a schema of its own."""
    asyncio.run(_in_schema(dsn, "CREATE SCHEMA {}"))
    try:
        configure("postgres", dsn, server_settings={"search_path": SCHEMA})
        asyncio.run(_async_postgres(dsn, table, rounds, parts))
        if "relations" in parts:
            orm_relations.sync_postgres(dsn, table, rounds)
        close_all()
    finally:
        asyncio.run(_in_schema(dsn, "DROP SCHEMA {} CASCADE"))


async def _async_sqlite(path: str, table: Table, rounds: int, parts: list[str]) -> None:
    if "rows" in parts:
        await orm_rows.async_sqlite(path, table, rounds)
        await orm_rows.calls(table, "sqlite")
    if "relations" in parts:
        await orm_relations.async_sqlite(path, table, rounds)
    if "lists" in parts:
        await orm_lists.measure_lists(table, "sqlite", rounds)
    await aclose_all()


def run_sqlite(path: str, table: Table, rounds: int, parts: list[str]) -> None:
    """Everything on SQLite."""
    configure("sqlite", path)
    asyncio.run(seed())
    with on_one_cpu():
        if "rows" in parts:
            orm_rows.sync_sqlite(path, table, rounds)
        if "relations" in parts:
            orm_relations.sync_sqlite(path, table, rounds)
        asyncio.run(_async_sqlite(path, table, rounds, parts))
    if "rows" in parts:
        orm_rows.lost_updates(path, table)
    close_all()


def main() -> int:
    """Run the scenarios; the exit status tells whether every bar held."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--dsn", default="postgresql://postgres@127.0.0.1:5432/postgres")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", choices=PARTS, action="append")
    options = parser.parse_args()
    parts: list[str] = options.only or list(PARTS)
    table = Table()
    if sys.platform != "win32" and "import" in parts:
        imported(table, options.rounds)
    if parts == ["import"]:
        return 1 if table.missed else 0
    if options.backend in {"sqlite", "both"}:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "bench.sqlite3")
            run_sqlite(path, table, options.rounds, parts)
    if options.backend in {"postgres", "both"}:
        with on_one_cpu():
            run_postgres(options.dsn, table, options.rounds, parts)
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
