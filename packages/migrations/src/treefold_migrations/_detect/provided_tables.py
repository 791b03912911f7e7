"""Migrations for the tables of other packages, such as those of jobs.

They are SQL for PostgreSQL, frozen in the file. Its first line has a digest, by which a later
version of the package with other tables is noticed; that one is brought by a file of its own.
Example, what the source of jobs becomes in the first file and after an upgrade of PgQueuer:

    RunSQL({"postgres": "-- Tables of jobs, PgQueuer, 0c5c3d1a9f42\\nCREATE TABLE ..."}, ...)
    RunSQL({"postgres": ["-- Tables of jobs, PgQueuer, 7be1a0c5d2e8\\nALTER TABLE ...", ...]}, ...)
"""

from __future__ import annotations

import re
from pathlib import Path

from treefold_migrations._base.table_sources import TableScripts, TableSource, load_table_sources
from treefold_migrations._files.history import History
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.custom import RunSQL


def detect_provided_tables(
    root: Path, history: History | None
) -> list[tuple[TableSource, Operation]]:
    """Return the operations that bring the tables of other packages to the files of a project.

    Args:
        root: the project, whose modules show which packages it uses.
        history: its files, if it has any.

    Raises the `ConfigurationError` of a source, such as that of jobs without PgQueuer.
    """
    found: list[tuple[TableSource, Operation]] = []
    for source in load_table_sources():
        scripts = source.find_scripts(root)
        known = "" if scripts is None else _find_last_digest(source, history)
        if scripts is not None and known != scripts.digest:
            found.append((source, _build_operation(source, scripts, known)))
    return found


def _build_operation(source: TableSource, scripts: TableScripts, known: str) -> Operation:
    tables = sorted(source.tables)
    mark = f"{_render_mark_opening(source)}{scripts.digest}\n"
    if known:
        first, *others = scripts.update
        sql = {"postgres": [mark + first, *others]}
        # the value of a type cannot be used in the transaction that adds it
        return RunSQL(sql, "", tables=tables, transactional=False)
    return RunSQL({"postgres": mark + scripts.make}, {"postgres": scripts.remove}, tables=tables)


def _render_mark_opening(source: TableSource) -> str:
    return f"-- {source.title[:1].upper()}{source.title[1:]}, {source.maker}, "


def _find_last_digest(source: TableSource, history: History | None) -> str:
    """Return the digest of the last tables that the files make; empty where they make none."""
    pattern = re.compile(rf"{re.escape(_render_mark_opening(source))}(\w+)\n")
    found = ""
    for item in history.order() if history is not None else ():
        for operation in item.operations:
            if isinstance(operation, RunSQL):
                marks = filter(None, map(pattern.match, operation.statements("postgres")[:1]))
                found = next((mark[1] for mark in marks), found)
    return found
