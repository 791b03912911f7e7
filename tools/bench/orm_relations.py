"""Joins, prefetched relations, counts of related rows and decimals, in both halves of both engines.

What hand-written code does is a generator: it yields statements with their arguments, receives
rows, and builds what the ORM builds of them. The same generator runs over every raw driver.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

from orm_data import (
    ROWS,
    SCHEMA,
    BenchAuthor,
    BenchPost,
    BenchSale,
    Sale,
    connect,
    sales,
    unsaved_sales,
)
from orm_measuring import Pair, Table, ameasure, measure, timed

from treefold_orm import Count

Work = Generator[tuple[str, tuple[Any, ...]], Any, Any]
CALLS = 3

_AUTHOR = 'a."id", a."name", a."team"'
_POST = 'p."id", p."title", p."body", p."views", p."author_id"'
_SALE = 'SELECT "id", "name", "price", "rate", "sold" FROM "benchsale"'


@dataclass(frozen=True, slots=True)
class Case:
    """A query of the ORM, and the hand-written work for an engine that does the same.

    With `wall` the time is counted in which PostgreSQL works: there the statement is measured.
    """

    name: str
    bar: float
    query: Callable[[], Any]
    work: Callable[[str], Work]
    wall: bool = False
    postgres_bar: float | None = None

    def bar_on(self, engine: str) -> float:
        """The bar for one engine."""
        other = self.postgres_bar if engine == "postgres" else None
        return self.bar if other is None else other


def _by_keys(engine: str, sql: str, keys: list[Any]) -> tuple[str, tuple[Any, ...]]:
    if engine == "postgres":
        return sql.format("= ANY($1::bigint[])"), (keys,)
    return sql.format(f"IN ({', '.join('?' * len(keys))})"), tuple(keys)


def _joined(engine: str) -> Work:
    return (
        yield (
            f'SELECT {_POST}, {_AUTHOR} FROM "benchpost" AS p '
            f'JOIN "benchauthor" AS a ON a."id" = p."author_id" LIMIT {ROWS}',
            (),
        )
    )


def _children(engine: str) -> Work:
    authors = yield f'SELECT {_AUTHOR} FROM "benchauthor" AS a LIMIT 100', ()
    found: dict[Any, list[Any]] = {author[0]: [] for author in authors}
    posts = yield _by_keys(
        engine, f'SELECT {_POST} FROM "benchpost" AS p WHERE p."author_id" {{}}', list(found)
    )
    for post in posts:
        found[post[4]].append(post)
    return [(author, found[author[0]]) for author in authors]


def _tags(engine: str) -> Work:
    posts = yield f'SELECT {_POST} FROM "benchpost" AS p WHERE p."id" <= 100', ()
    found: dict[Any, list[Any]] = {post[0]: [] for post in posts}
    tags = yield _by_keys(
        engine,
        'SELECT t."id", t."name", l."benchpost_id" FROM "benchtag" AS t JOIN '
        '"benchpost_tags" AS l ON l."benchtag_id" = t."id" AND l."benchpost_id" {}',
        list(found),
    )
    for tag in tags:
        found[tag[2]].append(tag)
    return [(post, found[post[0]]) for post in posts]


_COUNT = (
    f'SELECT {_AUTHOR}, COUNT(p."id") FROM "benchauthor" AS a '
    'LEFT JOIN "benchpost" AS p ON p."author_id" = a."id"{} GROUP BY a."id"'
)


def _counted(engine: str) -> Work:
    return (yield (_COUNT.format(""), ()))


def _counted_few(engine: str) -> Work:
    return (yield (_COUNT.format(' WHERE a."team" = 7'), ()))


def _decimals(engine: str) -> Work:
    found = yield _SALE, ()
    if engine == "postgres":
        return found
    make, cents, small = decimal.Decimal, decimal.Decimal("0.01"), decimal.Decimal("0.0001")
    return [
        (key, name, make(price) * cents, make(rate) * small, dt.datetime.fromisoformat(sold))
        for key, name, price, rate, sold in found
    ]


CASES = [
    Case(
        "join 1000",
        2.0,
        lambda: BenchPost.objects.select_related("author")[:ROWS],
        _joined,
        postgres_bar=2.2,  # its driver needs less for a row than the other's
    ),
    Case(
        "prefetch children of 100",
        2.0,
        lambda: BenchAuthor.objects.prefetch_related("posts")[:100],
        _children,
    ),
    Case(
        "prefetch many-to-many of 100",
        2.0,
        lambda: BenchPost.objects.filter(id__lte=100).prefetch_related("tags"),
        _tags,
    ),
    Case(
        "count related of all",
        1.6,
        lambda: BenchAuthor.objects.annotate(n=Count("posts")),
        _counted,
        wall=True,
    ),
    Case(
        "count related of few",
        2.2,
        lambda: BenchAuthor.objects.filter(team=7).annotate(n=Count("posts")),
        _counted_few,
        wall=True,
    ),
    Case("decimals 1000", 1.6, lambda: BenchSale.objects.all(), _decimals),
]


# -- one work over each driver --------------------------------------------------------------------


def _blocking(raw: sqlite3.Connection, work: Work) -> Any:
    try:
        sql, args = next(work)
        while True:
            sql, args = work.send(raw.execute(sql, args).fetchall())
    except StopIteration as stop:
        return stop.value


async def _awaiting(fetch: Callable[[str, tuple[Any, ...]], Awaitable[Any]], work: Work) -> Any:
    try:
        sql, args = next(work)
        while True:
            sql, args = work.send(await fetch(sql, args))
    except StopIteration as stop:
        return stop.value


async def _rows(query: Any) -> Any:
    return await query


def _clock(case: Case, engine: str) -> Callable[[], float]:
    return time.perf_counter if case.wall and engine == "postgres" else time.process_time


async def _measured(table: Table, engine: str, rounds: int, fetch: Any) -> None:
    for case in CASES:
        pair = (
            lambda case=case: _awaiting(fetch, case.work(engine)),
            lambda case=case: _rows(case.query()),
        )
        pairs = await ameasure(pair, calls=CALLS, rounds=rounds, clock=_clock(case, engine))
        table.add(f"{engine} async {case.name}", pairs, case.bar_on(engine))


def sync_sqlite(path: str, table: Table, rounds: int) -> None:
    """The blocking half against the standard module."""
    raw = sqlite3.connect(path, isolation_level=None, cached_statements=1000)
    for case in CASES:
        pair = (
            lambda case=case: _blocking(raw, case.work("sqlite")),
            lambda case=case: list(case.query()),
        )
        pairs = measure(pair, calls=CALLS, rounds=rounds, clock=_clock(case, "sqlite"))
        table.add(f"sqlite sync {case.name}", pairs, case.bar_on("sqlite"))
    pairs = list[Pair]()
    for _ in range(rounds):
        rows, fresh = _some_sales()
        with timed(ROWS) as raw_taken:
            raw.execute("BEGIN IMMEDIATE")
            raw.executemany(_INSERT, map(_encoded, rows))
            raw.execute("COMMIT")
        with timed(ROWS) as our_taken:
            BenchSale.objects.bulk_create(fresh)
        pairs.append((raw_taken[0], our_taken[0]))
        raw.execute(_CLEAR)
    raw.close()
    table.add("sqlite sync bulk decimals, per row", pairs, 2.0)


async def async_sqlite(path: str, table: Table, rounds: int) -> None:
    """The async half against aiosqlite's one-hop call."""
    import aiosqlite

    raw = await aiosqlite.connect(path, isolation_level=None, cached_statements=1000)
    await _measured(table, "sqlite", rounds, raw.execute_fetchall)
    pairs = list[Pair]()
    for _ in range(rounds):
        rows, fresh = _some_sales()
        with timed(ROWS) as raw_taken:
            await raw.execute("BEGIN IMMEDIATE")
            await raw.executemany(_INSERT, map(_encoded, rows))
            await raw.execute("COMMIT")
        with timed(ROWS) as our_taken:
            await BenchSale.objects.abulk_create(fresh)
        pairs.append((raw_taken[0], our_taken[0]))
        await raw.execute(_CLEAR)
    table.add("sqlite async bulk decimals, per row", pairs, 2.0)
    pairs = await ameasure(
        (
            lambda: asyncio.gather(
                *(raw.execute_fetchall(f"{_SALE} WHERE id = ?", (i,)) for i in _FIFTY)
            ),
            lambda: asyncio.gather(*(BenchSale.objects.aget(id=i) for i in _FIFTY)),
        ),
        calls=10,
        rounds=rounds,
    )
    table.add("sqlite async 50 gets at once", pairs, 1.3)
    await raw.close()


async def async_postgres(dsn: str, table: Table, rounds: int) -> None:
    """The async half against a held asyncpg connection."""
    raw = await connect(dsn, server_settings={"search_path": SCHEMA})

    async def fetch(sql: str, args: tuple[Any, ...]) -> Any:
        return await raw.fetch(sql, *args)

    await _measured(table, "postgres", rounds, fetch)
    pairs = list[Pair]()
    for _ in range(rounds):
        rows, fresh = _some_sales()
        with timed(ROWS) as raw_taken:
            await _unnested(raw, rows)
        with timed(ROWS) as our_taken:
            await BenchSale.objects.abulk_create(fresh)
        pairs.append((raw_taken[0], our_taken[0]))
        await raw.execute(_CLEAR)
    table.add("postgres async bulk decimals, per row", pairs, 2.0)
    await raw.close()


def sync_postgres(dsn: str, table: Table, rounds: int) -> None:
    """The blocking half against asyncpg on a loop that blocks for each call."""
    loop = asyncio.new_event_loop()
    raw = loop.run_until_complete(connect(dsn, server_settings={"search_path": SCHEMA}))

    async def fetch(sql: str, args: tuple[Any, ...]) -> Any:
        return await raw.fetch(sql, *args)

    for case in CASES:
        pair = (
            lambda case=case: loop.run_until_complete(_awaiting(fetch, case.work("postgres"))),
            lambda case=case: list(case.query()),
        )
        pairs = measure(pair, calls=CALLS, rounds=rounds, clock=_clock(case, "postgres"))
        table.add(f"postgres sync {case.name}", pairs, case.bar_on("postgres"))
    pairs = list[Pair]()
    for _ in range(rounds):
        rows, fresh = _some_sales()
        with timed(ROWS) as raw_taken:
            loop.run_until_complete(_unnested(raw, rows))
        with timed(ROWS) as our_taken:
            BenchSale.objects.bulk_create(fresh)
        pairs.append((raw_taken[0], our_taken[0]))
        loop.run_until_complete(raw.execute(_CLEAR))
    loop.run_until_complete(raw.close())
    loop.close()
    table.add("postgres sync bulk decimals, per row", pairs, 2.0)


# -- bulk -----------------------------------------------------------------------------------------

_FIFTY = range(1, 51)
_INSERT = "INSERT INTO benchsale (name, price, rate, sold) VALUES (?, ?, ?, ?)"
_CLEAR = f"DELETE FROM benchsale WHERE id > {ROWS}"
_UNNEST = (
    "INSERT INTO benchsale (name, price, rate, sold) SELECT * "
    "FROM unnest($1::text[], $2::numeric[], $3::numeric[], $4::timestamptz[]) RETURNING id"
)


def _some_sales() -> tuple[list[Sale], list[BenchSale]]:
    rows = sales(ROWS)
    return rows, unsaved_sales(rows)


def _encoded(row: Sale) -> tuple[str, int, int, str]:
    name, price, rate, sold = row
    return name, int(price.scaleb(2)), int(rate.scaleb(4)), sold.isoformat(" ", "microseconds")


async def _unnested(raw: Any, rows: list[Sale]) -> Any:
    keys = await raw.fetch(_UNNEST, *(list(column) for column in zip(*rows, strict=True)))
    return [(row[0], *values) for row, values in zip(keys, rows, strict=True)]
