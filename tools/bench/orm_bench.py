"""What the ORM costs beside the raw driver: CPU time in one process, interleaved, and calls.

    python tools/bench/orm_bench.py --backend sqlite
    python tools/bench/orm_bench.py --backend postgres --dsn postgresql://postgres@127.0.0.1:5432/postgres

Each scenario runs the raw driver and the ORM in short batches that are neighbours in time; the
figure is the median of the ratios of neighbours, and the times beside it are medians of CPU time. A
best batch of each would compare batches of different moments, whose clock and caches differ. All
threads of the process share one CPU meanwhile, where the system lets them: on several, what a hop
between threads costs depends on where the system happened to put them, for a whole run.

Every figure stands next to its bar (a ratio, a number of calls, of lost updates, of milliseconds),
and the exit status is 1 when one of them is above it. On PostgreSQL the tables live in a schema of
their own, dropped at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import gc
import multiprocessing
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, TypeVar, cast

from treefold_orm import Model, aclose_all, acreate_all, close_all, configure, fields, transaction

ROWS = 1000
SCHEMA = f"treefold_bench_{os.getpid()}"
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
SELECT = 'SELECT "id", "title", "body", "views", "created" FROM "benchitem"'
INSERT = 'INSERT INTO "benchitem" ("title", "body", "views", "created") VALUES '

Pair = tuple[float, float]  # the raw driver and the ORM, in batches that are neighbours
Sync = Callable[[], Any]
Async = Callable[[], Awaitable[Any]]


class BenchItem(Model):
    """Five columns: key, two texts, a number, a point in time."""

    title = fields.CharField(max_length=100)
    body = fields.TextField(default="")
    views = fields.IntegerField(default=0)
    created = fields.DateTimeField()


class Table:
    """Prints each result next to its bar and counts those above it."""

    def __init__(self) -> None:
        self.missed = 0

    def add(self, name: str, pairs: list[Pair], bar: float) -> None:
        """Add one scenario of neighbouring batches in microseconds, whose ratio has a bar."""
        raw, ours = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        times = f"raw {raw:9.2f} us   ours {ours:9.2f} us"
        ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
        self._line(name, times, ratio, bar, digits=2)

    def count(self, name: str, found: float, bar: float) -> None:
        """Add a number that has a bar of its own."""
        self._line(name, " " * 37, found, bar, digits=0)

    def _line(self, name: str, middle: str, found: float, bar: float, *, digits: int) -> None:
        above = found > bar
        self.missed += above
        figures = f"{found:8.{digits}f}   bar {bar:6.{digits}f}"
        print(f"{name:36} {middle}   {figures}   {'ABOVE' if above else 'ok'}", flush=True)


def measure(pair: tuple[Sync, Sync], *, calls: int, rounds: int) -> list[Pair]:
    """CPU microseconds per call of both functions, in batches that take turns."""

    def batch(function: Sync) -> float:
        with timed(calls) as taken:
            for _ in range(calls):
                function()
        return taken[0]

    found = [batch(function) for function in (*pair, *turns(pair, rounds))][2:]
    return paired(found)


async def ameasure(pair: tuple[Async, Async], *, calls: int, rounds: int) -> list[Pair]:
    """`measure` for async functions, on the running loop."""

    async def batch(function: Async) -> float:
        with timed(calls) as taken:
            for _ in range(calls):
                await function()
        return taken[0]

    found = [await batch(function) for function in (*pair, *turns(pair, rounds))][2:]
    return paired(found)


T = TypeVar("T")


def turns(pair: tuple[T, T], rounds: int) -> list[T]:
    """Both in turns, and the other one first in every second round."""
    return [side for i in range(rounds) for side in (pair if i % 2 == 0 else pair[::-1])]


def paired(found: list[float]) -> list[Pair]:
    """The batches of `turns` as neighbours, the raw driver first."""
    rounds = [(found[i], found[i + 1]) for i in range(0, len(found), 2)]
    return [(b, a) if i % 2 else (a, b) for i, (a, b) in enumerate(rounds)]


@contextlib.contextmanager
def timed(calls: int) -> Generator[list[float]]:
    """Yield a list that gets the CPU microseconds for each of so many calls."""
    taken: list[float] = []
    gc.collect()
    gc.disable()
    start = time.process_time()
    try:
        yield taken
        taken.append((time.process_time() - start) / calls * 1e6)
    finally:
        gc.enable()


@contextlib.contextmanager
def on_one_cpu() -> Generator[None]:
    """Keep all threads of this process on one CPU."""
    if not hasattr(os, "sched_setaffinity"):  # Windows and macOS have no such call
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def sample(count: int) -> list[tuple[str, str, int, dt.datetime]]:
    """Rows to insert."""
    return [(f"title {i}", "text " * 20, i, NOW) for i in range(count)]


def instances(count: int) -> list[BenchItem]:
    """Unsaved instances of the same rows."""
    return [BenchItem(title=t, body=b, views=v, created=s) for t, b, v, s in sample(count)]


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
    rows = sample(ROWS)
    pairs: list[Pair] = []
    for _ in range(rounds):
        fresh = instances(ROWS)
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


@contextlib.contextmanager
def calls_of(package: str) -> Generator[Counter[str]]:
    """Count the Python functions of a package that are entered in this thread."""
    found: Counter[str] = Counter()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and str(frame.f_globals.get("__name__", "")).startswith(package):
            found[frame.f_code.co_name] += 1

    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(None)


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


_YARDSTICK = "import argparse, asyncio, email.message, http.client, json, logging, xml.dom.minidom"
_YARDSTICK_AT_REST = 70.0
"""Milliseconds that it takes where the bar was set, as for the budgets of the command line."""


def imported(table: Table, rounds: int) -> None:
    """CPU milliseconds of `import treefold_orm` over those of the interpreter alone.

    Carried over to a machine at rest by what a part of the standard library takes beside it.
    """
    import resource  # not on Windows

    def cpu(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # bytecode of its own, so that the first child compiles and none does afterwards
        cache = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **cache}, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return used * 1e3

    with tempfile.TemporaryDirectory() as folder:
        cpu(f"{_YARDSTICK}; import treefold_orm")
        parts: list[float] = []
        for _ in range(rounds):
            bare, ours, yardstick = map(cpu, ("pass", "import treefold_orm", _YARDSTICK))
            parts.append((ours - bare) / (yardstick - bare))
    found = statistics.median(parts) * _YARDSTICK_AT_REST
    table.count("import over the interpreter, ms", found, 60)


async def seed() -> None:
    """Create the table and fill it."""
    await acreate_all(BenchItem)
    await BenchItem.objects.abulk_create(instances(ROWS))


async def run_postgres(dsn: str, table: Table, rounds: int) -> None:
    """Everything on PostgreSQL, in a schema of its own."""
    admin = await connect(dsn)
    await admin.execute(f"CREATE SCHEMA {SCHEMA}")
    try:
        configure("postgres", dsn, server_settings={"search_path": SCHEMA})
        await seed()
        await postgres(dsn, table, rounds)
        await crossing(table, rounds)
        await calls(table, "postgres")
        await aclose_all()
    finally:
        await admin.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        await admin.close()


async def run_sqlite(path: str, table: Table, rounds: int) -> None:
    """The async half on SQLite."""
    await async_sqlite(path, table, rounds)
    await calls(table, "sqlite")
    await aclose_all()


async def connect(dsn: str, **options: Any) -> Any:
    """A plain connection of the driver, which has no type information."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs] - see above

    return await cast("Any", asyncpg).connect(dsn, **options)


def main() -> int:
    """Run the scenarios; the exit status tells whether every bar held."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--dsn", default="postgresql://postgres@127.0.0.1:5432/postgres")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    table = Table()
    if sys.platform != "win32":
        imported(table, options.rounds)
    if options.backend in {"sqlite", "both"}:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "bench.sqlite3")
            configure("sqlite", path)
            asyncio.run(seed())
            with on_one_cpu():
                sync_sqlite(path, table, options.rounds)
                asyncio.run(run_sqlite(path, table, options.rounds))
            lost_updates(path, table)
            close_all()
    if options.backend in {"postgres", "both"}:
        with on_one_cpu():
            asyncio.run(run_postgres(options.dsn, table, options.rounds))
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
