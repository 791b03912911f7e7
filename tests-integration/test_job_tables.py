"""The tables of jobs: a project that imports `treefold.jobs` gets a migration that makes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orm_postgres
import pytest

from treefold_jobs._tables import JobTables
from treefold_migrations import (
    Operation,
    TableSource,
    drift,
    load_folder,
    makemigrations,
    migrate,
    rollback,
)
from treefold_migrations._base.table_sources import load_table_sources
from treefold_migrations._detect.provided_tables import detect_provided_tables
from treefold_migrations._extension.migrations import Migrations
from treefold_migrations._files.history import History
from treefold_migrations._files.writing import write_migration
from treefold_orm import close_all, configure, raw
from treefold_orm._runtime.connections import _databases


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Services").mkdir()
    (tmp_path / "Services" / "mail.py").write_text("from treefold.jobs import enqueue\n")
    return tmp_path


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    with orm_postgres.database(postgres_server) as address:
        configure(database=address)
        yield address
        close_all()
        _databases.pop("default", None)


@dataclass
class Application:
    root: Path


def missing(project: Path, history: History | None) -> list[Operation]:
    return [operation for _, operation in detect_provided_tables(project, history)]


def written(project: Path) -> Path:
    """Write the migration that the project lacks."""
    folder = project / "migrations"
    history = load_folder(folder)
    head = history.head()
    after = [] if head is None else [head.name]
    name = f"{len(history.files) + 1:04d}_job_tables"
    return write_migration(folder, name, after, missing(project, history))


def tables() -> list[str]:
    rows = raw("SELECT tablename FROM pg_tables WHERE tablename LIKE 'pgq%' ORDER BY 1")
    return [row["tablename"] for row in rows]


def test_jobs_keep_the_contract_of_migrations() -> None:
    kept: TableSource = JobTables()  # by the type checker, since neither package imports the other
    assert [type(source) for source in load_table_sources()].count(type(kept)) == 1


def test_a_project_without_jobs_gets_no_tables(tmp_path: Path) -> None:
    assert missing(tmp_path, None) == []


def test_the_tables_are_made_and_dropped_by_a_migration(project: Path, database: str) -> None:
    written(project)
    folder = project / "migrations"
    migrate(folder=folder)
    assert tables() == ["pgqueuer", "pgqueuer_log", "pgqueuer_schedules", "pgqueuer_statistics"]
    assert missing(project, load_folder(folder)) == []
    assert drift(folder) == []
    rollback(folder=folder)
    assert tables() == []


def test_the_file_holds_the_statements_as_lines(project: Path) -> None:
    source = written(project).read_text()
    assert "\nCREATE TABLE pgqueuer (\n    id bigserial NOT NULL PRIMARY KEY,\n" in source


def test_on_sqlite_the_migration_makes_nothing(project: Path) -> None:
    written(project)
    configure("sqlite", str(project / "db.sqlite3"))
    migrate(folder=project / "migrations")
    assert raw("SELECT name FROM sqlite_master WHERE name LIKE 'pgq%'") == []
    close_all()
    _databases.pop("default")


def test_tables_of_another_version_get_a_migration_that_brings_them_up_to_date(
    project: Path, database: str
) -> None:
    first = written(project)
    first.write_text(
        first.read_text()
        .replace("Tables of jobs, PgQueuer, ", "Tables of jobs, PgQueuer, 000000000000\n-- ")
        .replace("    attempts integer NOT NULL DEFAULT 0,\n", "")
    )
    migrate(folder=project / "migrations")
    (operation,) = missing(project, load_folder(project / "migrations"))
    assert "ADD COLUMN IF NOT EXISTS attempts" in str(vars(operation)["sql"])
    written(project)
    migrate(folder=project / "migrations")
    assert raw("SELECT attempts FROM pgqueuer") == []
    assert missing(project, load_folder(project / "migrations")) == []


def test_missing_tables_are_pending_work(project: Path, database: str) -> None:
    extension = Migrations()
    extension.setup(Application(project))
    (found,) = [one for one in extension.pending() if "jobs" in one.text]
    assert (found.text, found.advice) == (
        "no migration yet: tables of jobs",
        "treefold makemigrations",
    )


def test_makemigrations_writes_the_tables_with_those_of_the_models(project: Path) -> None:
    code = "import treefold_migrations as m; m.makemigrations(say=print)"
    typed = [sys.executable, "-c", code]
    done = subprocess.run(typed, cwd=project, capture_output=True, text=True, check=True)
    assert "0001_initial.py" in done.stdout
    (again,) = [subprocess.run(typed, cwd=project, capture_output=True, text=True, check=True)]
    assert again.stdout == "Models and migrations agree\n"
    assert makemigrations(project / "migrations", check=True, metas=()).operations == []
