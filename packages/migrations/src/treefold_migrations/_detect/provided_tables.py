"""The tables of jobs, which are those of PgQueuer: a migration of a project that uses jobs.

They are SQL for PostgreSQL, frozen in the file. Its first line has a digest, by which a later
version of PgQueuer with other tables is noticed; that one is brought by a file of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from treefold_migrations._files.history import History
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.custom import RunSQL
from treefold_orm import ConfigurationError
from treefold_orm.schema import JobTables, database_for, uses_jobs

WORDS = "job tables"
JOB_TABLES = frozenset(
    {"pgqueuer", "pgqueuer_log", "pgqueuer_schedules", "pgqueuer_statistics"},
)
_MARK = re.compile(r"-- Tables of jobs, PgQueuer, ([0-9a-f]{12})\n")


def detect_job_table_operations(root: Path, history: History | None) -> list[Operation]:
    """Return the operations that bring the tables of jobs to the files of a project.

    Args:
        root: The project, whose modules show whether it uses jobs.
        history: Its files, if it has any.

    Raises `ConfigurationError` without PgQueuer, unless the database is SQLite, where jobs need no
    table.
    """
    if not uses_jobs(root):
        return []
    try:
        tables = JobTables.installed()
    except ConfigurationError:
        if _is_default_database_sqlite():
            return []
        raise
    known = _find_job_tables_digest(history)
    if known == tables.digest:
        return []
    mark = f"-- Tables of jobs, PgQueuer, {tables.digest}\n"
    if known:
        first, *others = tables.update
        sql = {"postgres": [mark + first, *others]}
        # the value of a type cannot be used in the transaction that adds it
        return [RunSQL(sql, "", tables=sorted(JOB_TABLES), transactional=False)]
    reverse = {"postgres": tables.remove}
    return [RunSQL({"postgres": mark + tables.make}, reverse, tables=sorted(JOB_TABLES))]


def _find_job_tables_digest(history: History | None) -> str:
    """Return the digest of the last tables that the files make; empty where they make none."""
    found = ""
    for item in history.order() if history is not None else ():
        for operation in item.operations:
            if isinstance(operation, RunSQL):
                marks = filter(None, map(_MARK.match, operation.statements("postgres")[:1]))
                found = next((mark[1] for mark in marks), found)
    return found


def _is_default_database_sqlite() -> bool:
    try:
        return database_for("default").name == "sqlite"
    except ConfigurationError:
        return False
