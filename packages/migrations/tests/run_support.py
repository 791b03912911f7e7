"""Databases and migration files for the tests of the runner: real servers, real files.

`place` is an empty SQLite file or PostgreSQL schema, configured as the default database.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from run_place import LONG as LONG, Place as Place, orm_postgres as orm_postgres

from treefold_orm import close_all

_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Place]:
    """Make an empty database of an engine."""

    def make(engine: str) -> Place:
        number = next(_numbers)
        if engine == "sqlite":
            return Place(engine, str(tmp_path / f"test{number}.sqlite3"))
        dsn: str = request.getfixturevalue("postgres_dsn")
        schema = f"run_{number}"
        made = Place(engine, dsn, schema)
        made.ask(f"CREATE SCHEMA {schema}")
        return made

    return make


@pytest.fixture
def place(engine: str, make_place: Callable[[str], Place]) -> Iterator[Place]:
    made = make_place(engine)
    made.configure()
    yield made
    close_all()


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one: for thousands of commits."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


class Files:
    """A folder of migration files that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._last: list[str] = []

    def write(
        self, name: str, *operations: str, after: list[str] | None = None, above: str = ""
    ) -> None:
        """Write one file; it comes after the one written before, unless `after` says otherwise."""
        parents = self._last if after is None else after
        body = "".join(f"        {operation},\n" for operation in operations)
        (self.folder / f"{name}.py").write_text(
            f'"""{name}."""\n'
            "from treefold_orm import Cast, Concat, Count, F, Index, Value, fields\n"
            f"from treefold_migrations import {OPERATIONS}\n"
            f"{textwrap.dedent(above)}\n"
            f"migration = Migration(\n    after={parents!r},\n    operations=[\n{body}    ],\n)\n"
        )
        self._last = [name]

    def history(self) -> Any:
        """Load the files."""
        from treefold_migrations._files.loading import load_folder

        return load_folder(self.folder)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "migrations")


OPERATIONS = (
    "AddField, AddIndex, AlterField, CreateTable, DropField, Migration, RenameField, "
    "RenameTable, RunPython, RunSQL, SeparateStateAndDatabase, SetOptions"
)
AUTHOR = (
    'CreateTable("author", {"id": fields.BigAutoField(primary_key=True), '
    '"name": fields.CharField(max_length=40)}, model="Author")'
)
BOOK = (
    'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
    '"author": fields.ForeignKey("author", "CASCADE", related_name="books"), '
    '"title": fields.CharField(max_length=40)}, model="Book")'
)
