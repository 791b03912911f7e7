"""The command that takes over a database: models, the first migration, and its record.

Everything is read, written in memory and proved before the first file is there; where a file or the
record cannot be written, no file stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from treefold_migrations._base.errors import FileError, HistoryError
from treefold_migrations._baseline.drafting import draft_tables
from treefold_migrations._baseline.drafts import TableDraft
from treefold_migrations._baseline.models_source import (
    describe_omitted_parts,
    list_unmodeled_objects,
    render_models_source,
)
from treefold_migrations._baseline.proving import check_models_source
from treefold_migrations._baseline.reading import Database, read_database_schema
from treefold_migrations._baseline.settling import build_schema_state, choose_proposals
from treefold_migrations._commands.files import Folder, Say, ignore_line
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._detect.models import build_models_state
from treefold_migrations._files.loading import load_folder
from treefold_migrations._files.writing import render_migration_source, write_new_file
from treefold_migrations._inspect.found import InspectError
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.custom import RunSQL
from treefold_migrations._records.records import Applied
from treefold_migrations._run.runner import Runner
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import (
    Dialect,
    HeldConnection,
    Meta,
    Operation as Work,
    database_for,
    quote,
)

NAME = "0001_initial"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The outcome of `baseline`: its two files, the number of tables, and those without a model."""

    models: Path
    migration: Path
    tables: int
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """The place of a baseline."""

    folder: Path
    models: Path
    database: str
    say: Say

    @property
    def migration_path(self) -> Path:
        return self.folder / f"{NAME}.py"


def baseline(
    folder: Folder = "migrations",
    models: str | os.PathLike[str] = "models.py",
    *,
    database: str = "default",
    metas: Iterable[Meta] | None = None,
    say: Say = ignore_line,
) -> Baseline:
    """Write models and the first migration for a database that is there, and record it as applied.

    The database is only read, but for that record. What no model can say is listed with its table,
    and stays as it is.

    Args:
        folder: The folder of the migrations, which must have none.
        models: The file of the models, which must not exist.
        database: The alias of the database; the models name it, unless it is `default`.
        metas: The models that there are, of which there must be none; without it, those of this
            application.
        say: Called with each line for people.

    Raises `FileError` for files and models that are there, `HistoryError` for a database that has
    recorded migrations, `InspectError` for one that cannot be taken over; nothing is written then.
    """
    job = _validate_and_prepare_baseline(folder, models, database, metas, say)
    runner = Runner(database, load_folder(folder))
    _require_no_applied_migrations(runner.applied(), database)
    with HeldConnection(database) as held:
        found, drafts = held.run(_read_and_draft_tables(database, held.dialect))
    texts = _render_files(job, drafts, found)
    try:
        _write_files(job, texts)
        Runner(database, load_folder(folder)).migrate(fake=True)
    except BaseException:
        _remove_written_files(job)
        raise
    return _report_baseline(job, drafts, found)


async def abaseline(
    folder: Folder = "migrations",
    models: str | os.PathLike[str] = "models.py",
    *,
    database: str = "default",
    metas: Iterable[Meta] | None = None,
    say: Say = ignore_line,
) -> Baseline:
    """`baseline` for async code."""
    job = _validate_and_prepare_baseline(folder, models, database, metas, say)
    runner = Runner(database, load_folder(folder))
    _require_no_applied_migrations(await runner.aapplied(), database)
    async with HeldConnection(database) as held:
        found, drafts = await held.arun(_read_and_draft_tables(database, held.dialect))
    texts = _render_files(job, drafts, found)
    try:
        _write_files(job, texts)
        await Runner(database, load_folder(folder)).amigrate(fake=True)
    except BaseException:
        _remove_written_files(job)
        raise
    return _report_baseline(job, drafts, found)


def _validate_and_prepare_baseline(
    folder: Folder,
    models: str | os.PathLike[str],
    database: str,
    metas: Iterable[Meta] | None,
    say: Say,
) -> _Job:
    job = _Job(Path(folder), Path(models), database, say)
    known = load_folder(folder).files
    if known:
        raise FileError(
            f"{job.folder} must have no migrations yet, got {', '.join(sorted(known)[:3])}; a "
            "baseline is the first one"
        )
    if job.models.exists():
        raise FileError(
            f"{job.models} must not exist yet; move it away, or give the models another file"
        )
    declared = [table.model for table in build_models_state(metas).tables.values()]
    if declared:
        raise FileError(
            f"The application must have no models yet, got {', '.join(declared[:3])}; a baseline "
            "writes them, so move their files away"
        )
    # SQLite would create an empty file for a mistyped address, and find no tables in it
    place = str(getattr(database_for(database), "database", ""))
    if database_for(database).name == "sqlite" and place != ":memory:" and not Path(place).exists():
        raise InspectError(f"The database {place} must exist; check its address")
    return job


def _require_no_applied_migrations(applied: Applied, database: str) -> None:
    if applied.records or applied.progress:
        names = ", ".join([*applied.records, *applied.progress][:3])
        raise HistoryError(
            f"Database {database!r} must have no recorded migrations, got {names}; get their files "
            "from version control, or remove the records with `rollback zero --fake`"
        )


def _read_and_draft_tables(alias: str, dialect: Dialect) -> Work[tuple[Database, list[TableDraft]]]:
    found = yield from read_database_schema(alias, dialect.name)
    drafts = draft_tables(found)
    if not drafts:
        raise InspectError(
            "The database has no tables to take over; write models, and run makemigrations"
        )
    yield from choose_proposals(drafts, found, dialect)
    return found, drafts


def _render_files(job: _Job, drafts: list[TableDraft], found: Database) -> dict[Path, str]:
    wanted = build_schema_state(drafts)
    source = render_models_source(drafts, found)
    check_models_source(source, wanted)
    operations: list[Operation] = [
        RunSQL(
            {"postgres": sql},
            {"postgres": f"DROP SEQUENCE {quote(name)}"},
            tables=(),
            database=found.alias,
        )
        for name, sql in found.sequences.items()
    ]
    operations += detect_operations(SchemaState(), wanted)
    migration = render_migration_source((), operations, title="the tables that were there before")
    return {job.models: source, job.migration_path: migration}


def _write_files(job: _Job, texts: dict[Path, str]) -> None:
    for path, text in texts.items():
        write_new_file(path, text)


def _remove_written_files(job: _Job) -> None:
    for path in (job.models, job.migration_path):
        with suppress(OSError):
            path.unlink()


def _report_baseline(job: _Job, drafts: list[TableDraft], found: Database) -> Baseline:
    unmodeled = list_unmodeled_objects(found)
    for draft in drafts:
        parts = (*draft.notes, *describe_omitted_parts(draft))
        unmodeled += [f"{draft.name}: {item}" for item in parts]
    job.say(f"{job.models}")
    job.say(f"{job.migration_path}")
    managed = sum(draft.managed for draft in drafts)
    job.say(f"  {managed} {'table' if managed == 1 else 'tables'}, recorded as applied")
    for draft in drafts:
        if not draft.managed:
            job.say(f"  {draft.kind} {draft.name}: managed = False")
    for line in unmodeled:
        job.say(f"  left to the database: {line}")
    return Baseline(job.models, job.migration_path, len(drafts), tuple(unmodeled))
