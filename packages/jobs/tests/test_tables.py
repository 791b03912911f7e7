"""Jobs: the SQL of their tables, for the migrations of a project that uses jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from job_queue import Queue, new_queue

from treefold_jobs._tables import JobTables, render_scripts
from treefold_orm import ConfigurationError, close_all, configure

NAMES = "SELECT count(*) FROM pg_tables WHERE tablename = ANY(ARRAY{})"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "mail.py").write_text("from treefold.jobs import enqueue\n")
    return tmp_path


def count_tables(queue: Queue) -> int:
    return queue.value(NAMES.format(sorted(JobTables.tables)))


def test_only_a_project_with_jobs_needs_the_tables(project: Path) -> None:
    assert JobTables().find_scripts(project) == render_scripts()
    (project / "mail.py").unlink()
    assert JobTables().find_scripts(project) is None


def test_the_sql_makes_updates_and_removes_the_tables(postgres_dsn: str) -> None:
    scripts = render_scripts()
    with new_queue(postgres_dsn) as queue:
        assert count_tables(queue) == len(JobTables.tables)
        for statement in scripts.update:
            queue.run(statement)
        queue.run(scripts.remove)
        assert count_tables(queue) == 0


def test_without_pgqueuer_its_extra_is_named_unless_the_database_is_sqlite(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pgqueuer", None)  # as if it were not installed
    configure("postgres", "nowhere")
    with pytest.raises(ConfigurationError, match=r"pip install 'treefold-jobs\[postgres\]'"):
        JobTables().find_scripts(project)
    configure("sqlite", ":memory:")
    assert JobTables().find_scripts(project) is None
    close_all()
