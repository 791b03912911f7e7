"""Tables of other packages: an installed distribution declares them, and a project that uses it
gets them by a migration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from treefold_migrations import Operation, RunSQL, load_folder
from treefold_migrations._base.table_sources import load_table_sources
from treefold_migrations._detect.provided_tables import detect_provided_tables
from treefold_migrations._extension.migrations import Migrations
from treefold_migrations._files.history import History
from treefold_migrations._files.writing import write_migration
from treefold_migrations._inspect.compare import list_own_tables
from treefold_orm import close_all, configure
from treefold_orm._runtime.connections import _databases

SOURCE = """
from types import SimpleNamespace

class Mails:
    title, words, maker = "tables of mails", "mail tables", "Postbox"
    tables = ["mails"]
    digest = "first"

    def find_scripts(self, root):
        if not (root / "uses_mails").exists():
            return None
        make = "CREATE TABLE mails (n int); CREATE INDEX by_n ON mails (n)"
        update = ["ALTER TABLE mails ADD a int", "ALTER TABLE mails ADD b int"]
        return SimpleNamespace(
            digest=self.digest, make=make, update=update, remove="DROP TABLE mails"
        )

class Others:
    title, words, maker, tables = "tables of others", "other tables", "Others", ["others"]

    def find_scripts(self, root):
        return None
"""
Declare = Callable[..., Any]


@dataclass
class Application:
    root: Path


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Install distributions of these names, each with an entry point `mails` to a class."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mail_tables", raising=False)

    def install(**classes: str) -> Any:
        for number, (name, made) in enumerate(classes.items()):
            info = tmp_path / name / f"{name}-1.0.dist-info"
            info.mkdir(parents=True)
            (info / "entry_points.txt").write_text(
                f"[console_scripts]\nmails = nothing:here\n\n"
                f"[treefold.tables]\nmails = mail_tables:{made}\n\n[other]\nmails = nothing:here\n"
            )
            sys.path.insert(number, str(tmp_path / name))
            (tmp_path / name / "mail_tables.py").write_text(SOURCE)

    return install


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "uses_mails").touch()
    return root


def missing(root: Path, history: History | None = None) -> list[Operation]:
    return [operation for _, operation in detect_provided_tables(root, history)]


def written(project: Path, name: str) -> History:
    history = load_folder(project / "migrations")
    head = history.head()
    after = [] if head is None else [head.name]
    write_migration(project / "migrations", name, after, missing(project, history))
    return load_folder(project / "migrations")


def test_without_such_a_distribution_there_are_no_tables(project: Path) -> None:
    assert [source for source in load_table_sources() if source.title == "tables of mails"] == []


def test_a_project_that_does_not_use_the_package_gets_no_tables(
    declare: Declare, tmp_path: Path
) -> None:
    declare(mail="Mails")
    assert missing(tmp_path) == []


def test_a_project_that_uses_it_gets_them_once(declare: Declare, project: Path) -> None:
    declare(mail="Mails")
    (operation,) = missing(project)
    assert isinstance(operation, RunSQL)
    assert operation.statements("sqlite") == []
    assert operation.statements("postgres") == [
        "-- Tables of mails, Postbox, first\n"
        "CREATE TABLE mails (n int); CREATE INDEX by_n ON mails (n)"
    ]
    assert operation.reverse_sql == {"postgres": "DROP TABLE mails"}
    assert operation.tables == ["mails"]
    assert missing(project, written(project, "0001_mail_tables")) == []


def test_tables_of_a_later_version_are_brought_by_a_file_of_their_own(
    declare: Declare, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(mail="Mails")
    history = written(project, "0001_mail_tables")
    (source,) = [one for one in load_table_sources() if one.title == "tables of mails"]
    monkeypatch.setattr(type(source), "digest", "second")
    (operation,) = missing(project, history)
    assert isinstance(operation, RunSQL)
    assert operation.statements("postgres") == [
        "-- Tables of mails, Postbox, second\nALTER TABLE mails ADD a int",
        "ALTER TABLE mails ADD b int",
    ]
    assert not operation.transactional
    assert missing(project, written(project, "0002_mail_tables")) == []


def test_a_name_belongs_to_the_first_distribution_on_the_path(
    declare: Declare, project: Path
) -> None:
    declare(first="Others", second="Mails")
    titles = {source.title for source in load_table_sources()}
    assert "tables of others" in titles
    assert "tables of mails" not in titles


def test_no_model_stands_for_the_tables(declare: Declare) -> None:
    assert "mails" not in list_own_tables()
    declare(mail="Mails")
    assert {"mails", "treefold_migrations"} <= list_own_tables()


def test_missing_tables_are_pending_work(declare: Declare, project: Path) -> None:
    declare(mail="Mails")
    configure("sqlite", ":memory:")
    extension = Migrations()
    extension.setup(Application(project))
    texts = [one.text for one in extension.pending()]
    close_all()
    _databases.pop("default")
    assert "no migration yet: tables of mails" in texts
