"""A point read beside migrations of a large table that lint has no finding for.

`hatch run migrations:locks` measures 3,000,000 rows; TREEFOLD_LOCKS_ROWS sets another number.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from run_support import Files, Place, files as files, make_place as make_place, orm_postgres

from treefold_migrations import lint
from treefold_migrations._run.runner import Runner
from treefold_orm import close_all

pytestmark = pytest.mark.long

ROWS = int(os.environ.get("TREEFOLD_LOCKS_ROWS", "3000000"))
LIMIT = 2.0  # seconds
ABOVE = """
from treefold_migrations import AddConstraint
from treefold_orm import CheckConstraint, Q, UniqueConstraint
"""
TABLES = (
    'CreateTable("writer", {"id": fields.BigAutoField(primary_key=True)}, model="Writer")',
    'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
    '"title": fields.CharField(max_length=40), "code": fields.IntegerField(null=True), '
    '"writer": fields.BigIntegerField()}, model="Book")',
)
NULLABLE = 'AddField("book", "{0}", fields.IntegerField(null=True))'
SAFE = {
    "a nullable field": [NULLABLE.format("a")],
    "a field with a default": ['AddField("book", "b", fields.IntegerField(db_default=1))'],
    "a field with a default and a nullable unique one behind it": [
        'AddField("book", "c", fields.IntegerField(db_default=1))',
        'AddField("book", "d", fields.IntegerField(null=True, unique=True))',
    ],
    "a reference": [
        NULLABLE.format("e"),
        'AddField("book", "by", fields.ForeignKey("writer", null=True, db_default=1))',
    ],
    "a table that refers": [
        'CreateTable("page", {"id": fields.BigAutoField(primary_key=True), '
        '"book": fields.ForeignKey("book")}, model="Page")'
    ],
    "an index behind a field": [
        NULLABLE.format("f"),
        'AddIndex("book", Index(["title"], name="by_title"))',
    ],
    "a wider type": ['AlterField("book", "title", fields.CharField(max_length=60))'],
    "NULL is allowed": ['AlterField("book", "writer", fields.BigIntegerField(null=True))'],
}
# lint says what these do to the running release, but for the lock that they need they are safe
STRICTER = {
    "a unique field behind a field": [
        NULLABLE.format("g"),
        'AlterField("book", "title", fields.CharField(max_length=60, unique=True))',
    ],
    "a check behind a field": [
        NULLABLE.format("h"),
        'AddConstraint("book", CheckConstraint(~Q(title=""), name="titled"))',
    ],
    "a required field with a value behind a field": [
        NULLABLE.format("i"),
        'AlterField("book", "code", fields.IntegerField(), fill=7)',
    ],
    "a required field that has values": [
        NULLABLE.format("j"),
        'AlterField("book", "writer", fields.BigIntegerField())',
    ],
}


@pytest.fixture
def postgres(make_place: Callable[[str], Place]) -> Iterator[Place]:
    made = make_place("postgres")
    made.configure()
    yield made
    close_all()


class Reader:
    """A connection that reads one row by its key, again and again, and keeps the longest wait."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()))
        self.longest = 0.0
        self.reads = 0

    async def _read(self) -> None:
        settings = {"search_path": self._place.schema}
        connection: Any = await orm_postgres.driver.connect(
            self._place.address, server_settings=settings
        )
        while not self._stop.is_set():
            begin = time.perf_counter()
            await connection.fetch("SELECT title FROM book WHERE id = 12")
            self.longest = max(self.longest, time.perf_counter() - begin)
            self.reads += 1
            await asyncio.sleep(0.002)
        await connection.close()

    @contextmanager
    def running(self) -> Generator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()


def test_a_point_read_waits_two_seconds_at_most(postgres: Place, files: Files) -> None:
    files.write("0001_initial", *TABLES)
    Runner("default", files.history()).migrate()
    postgres.ask("INSERT INTO writer DEFAULT VALUES RETURNING id")
    postgres.ask(
        "INSERT INTO book (title, code, writer) SELECT 'title ' || n, "
        f"CASE WHEN n % 2 = 0 THEN n END, 1 FROM generate_series(1, {ROWS}) AS n"
    )
    for number, (name, operations) in enumerate({**SAFE, **STRICTER}.items(), 2):
        last = f"{number - 1:04}_{'initial' if number == 2 else 'change'}"
        files.write(f"{number:04}_change", *operations, above=ABOVE)
        said = [finding.rule for _, finding in lint(files.folder, since=last, metas=())]
        assert not said if name in SAFE else all(rule.startswith("new-") for rule in said)
        reader, begin = Reader(postgres), time.perf_counter()
        with reader.running():
            Runner("default", files.history()).migrate()
        took = time.perf_counter() - begin
        print(f"{reader.longest * 1000:8.0f} ms of {took:6.1f} s, {reader.reads} reads: {name}")
        assert reader.reads
        assert reader.longest <= LIMIT, name
