"""`migrations lint` and `migrations drift` in a project."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orm_postgres
import pytest
from forked_commands import ForkServer
from serving import NewDatabase, write_tree
from test_migrations_project import MODELS, PAGES, TREE, Project


@pytest.fixture
def project(
    new_database: NewDatabase, tmp_path: Path, fork_server: ForkServer
) -> Iterator[Project]:
    with new_database() as address:
        made = Project(write_tree(tmp_path / "shop", TREE), address, fork_server)
        made.treefold("makemigrations")
        made.treefold("migrate")
        yield made


def execute(address: str, sql: str) -> None:
    """Change a database behind the back of its migrations."""
    if address.startswith("postgres"):
        orm_postgres.ask(address, sql)
        return
    with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as raw:
        raw.execute(sql)
        raw.commit()


def test_a_dangerous_migration_is_named_with_the_safe_way(project: Project) -> None:
    assert project.treefold("migrations", "lint") == "No finding\n"
    project.write({"Models/shop.py": PAGES})
    project.treefold("makemigrations")
    assert project.treefold("migrations", "lint") == "No finding\n"
    project.treefold("migrate")
    project.write({"Models/shop.py": MODELS})
    project.treefold("makemigrations", "--drop", "book.pages", "--allow-destructive")
    said = project.treefold("migrations", "lint", code=1)
    assert said.startswith("0003_")
    assert ", drop-column: " in said
    (line, *_) = project.treefold("migrations", "lint", "--format", "github", code=1).splitlines()
    assert line.startswith("::warning file=migrations/0003_")
    assert project.treefold("migrations", "lint", "--every", code=1).count("0003_") == 1
    assert "Error: Invalid value 'xml' for --format" in project.treefold(
        "migrations", "lint", "--format", "xml", code=2
    )


def test_a_database_that_somebody_changed_is_told(project: Project) -> None:
    assert project.treefold("migrations", "drift") == ""
    execute(project.address, "ALTER TABLE book ADD COLUMN note text")
    said = project.treefold("migrations", "drift", code=1)
    assert said.count("\n") == 1
    assert "note" in said


SHOP = (
    "CREATE TABLE artist (artist_id integer PRIMARY KEY, name varchar(120) NOT NULL)",
    "CREATE TABLE album (album_id integer PRIMARY KEY, title varchar(160) NOT NULL,"
    " artist_id integer NOT NULL REFERENCES artist (artist_id), price numeric(10, 2))",
    "CREATE INDEX by_title ON album (lower(title))",
    "CREATE VIEW titles AS SELECT title FROM album",
)


def test_a_database_that_was_there_is_taken_over(
    new_database: NewDatabase, tmp_path: Path, fork_server: ForkServer
) -> None:
    with new_database() as address:
        for statement in SHOP:
            execute(address, statement)
        code = "import treefold.orm as o\n\no.configure('sqlite', ':memory:', alias='other')\n"
        root = write_tree(tmp_path / "shop", {"Models/__init__.py": code})
        project = Project(root, address, fork_server)
        said = project.treefold("migrations", "baseline")
        assert said.splitlines() == [
            "created: Models/tables.py",
            "created: migrations/0001_initial.py",
            "  2 tables, recorded as applied",
            "  view titles: managed = False",
        ]
        assert project.treefold("makemigrations", "--check") == "Models and migrations agree\n"
        assert project.treefold("migrations", "drift") == ""
        assert project.treefold("migrate") == "Nothing to apply\n"
        done = project.treefold("migrations", "baseline", code=1)
        assert done.startswith("Error: The project must have no models yet, got Models/tables.py")
        (project.root / "Models" / "tables.py").unlink()
        done = project.treefold("migrations", "baseline", code=1)
        assert "must have no migrations yet, got 0001_initial" in done
        done = project.treefold("migrations", "baseline", "--models", "a-b", code=1)
        assert done.startswith("Error: --models must name a module, such as tables, got 'a-b'")
