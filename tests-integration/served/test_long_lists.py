"""A long list, walked from its first page to its last over a socket.

Every run of the suite walks some thousands of rows. `hatch run lists-million` walks a million, in
each order of an index, and holds the time of a page anywhere to that of the first one.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import orm_postgres
import pytest
from serving import NewDatabase, Process, write_tree
from wire import Wire

ROWS = int(os.environ.get("TREEFOLD_LIST_ROWS", "2000"))
SIZE = 100
PARTS = 10
"""Parts of the list whose pages have a median each."""
MEASURED = 100_000
"""Rows from which on times are compared: a few pages are too few."""
BAR = 1.2

TREE = {
    "Models/shop.py": """
from treefold.orm import FilterSet, Index, Model, fields

class Book(Model):
    title = fields.CharField(max_length=20)
    rank = fields.IntegerField()
    seen = fields.IntegerField(null=True)

    class Meta:
        table = "books"
        indexes = [Index("rank", "id"), Index("seen", "id")]

class Shelf(FilterSet):
    model = Book
    ordering = ("rank", "seen")
""",
    "hooks.py": """
from Models.shop import Book
from treefold.orm import acreate_all

async def make_tables():
    await acreate_all(Book)

on_startup = [make_tables]
""",
    # the lines of all requests would be kept by this process
    "Api/v1/Quiet/Get.py": """
from treefold import get_logger

async def handler():
    get_logger().setLevel("WARNING")
""",
    "Api/v1/Book/Get.py": """
from typing import TypedDict
from Models.shop import Shelf
from treefold.orm import Page

class BookOut(TypedDict):
    id: int

async def handler(shelf: Shelf) -> Page[BookOut]:
    return await shelf.apage(BookOut)
""",
}
# each hundred rows are in an order of their own, and a third of all has no value
RANK = "n - n % 100 + n * 37 % 100"
COLUMNS = f"""
    INSERT INTO books (title, rank, seen)
    SELECT 't', {RANK}, CASE WHEN n % 3 > 0 THEN {RANK} END
"""


@pytest.fixture(scope="module")
def shop(
    engine: str, new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    """A server of the rows."""
    root = write_tree(tmp_path_factory.mktemp("project"), TREE)
    secret = {"TREEFOLD_SECRET_KEY": "s" * 32}
    with new_database() as address:
        server = Process(
            *(root, "httptools"),
            dev=False,
            default_version=None,
            database=address,
            variables=secret,
        )
        try:
            fill_table(engine, address)
            server.get("/v1/quiet")
            yield server
        finally:
            server.stop()


def fill_table(engine: str, address: str) -> None:
    """Insert the rows by one statement, and tell the database how many there are."""
    if engine == "postgres":
        orm_postgres.ask(address, f"{COLUMNS} FROM generate_series(1, {ROWS}) AS n")
        orm_postgres.ask(address, "VACUUM ANALYZE books")
        return
    numbers = f"SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS}"
    with sqlite3.connect(Path(address.removeprefix("sqlite:///"))) as database:
        database.execute(f"WITH RECURSIVE numbers AS ({numbers}) {COLUMNS} FROM numbers")
    database.close()


@pytest.mark.parametrize("order", ["rank", "-rank", "seen", "-seen"])
def test_each_row_comes_once_and_no_page_takes_longer(shop: Process, order: str) -> None:
    """The first page is asked for beside every other one, so that both meet the same machine."""
    start = f"/v1/book?order={order}&limit={SIZE}"
    found: set[int] = set()
    pages: list[float] = []
    firsts: list[float] = []
    with Wire(shop) as wire:

        def fetch_page(target: str) -> tuple[float, list[int], str | None]:
            began = time.perf_counter()
            assert wire.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            answer = wire.answer()
            taken = time.perf_counter() - began
            page = answer.json()
            return taken, [row["id"] for row in page["items"]], page["next"]

        _, rows, cursor = fetch_page(start)
        found.update(rows)
        while cursor is not None:
            firsts.append(fetch_page(start)[0])
            taken, rows, cursor = fetch_page(f"{start}&after={cursor}")
            pages.append(taken)
            assert found.isdisjoint(rows)
            found.update(rows)
    assert len(found) == ROWS
    if ROWS < MEASURED:
        return
    step = len(pages) // PARTS
    parts = [slice(at, at + step) for at in range(0, step * PARTS, step)]
    neighbours = [page / first for page, first in zip(pages, firsts, strict=True)]
    ratios = [median(neighbours[part]) for part in parts]
    print(
        f"{order}: {len(pages) + 1} pages, the first {median(firsts) * 1e3:.2f} ms, any other one"
        f" {median(pages) * 1e3:.2f} ms, by tenths {' '.join(f'{each:.2f}' for each in ratios)}"
    )
    assert median(neighbours) <= BAR
    assert max(ratios) <= BAR * min(ratios)  # a page costs the same wherever it is
