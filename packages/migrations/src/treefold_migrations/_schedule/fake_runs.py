"""The runs with `--fake`, which change the records and nothing else."""

from __future__ import annotations

import datetime as dt

from treefold_migrations._base.errors import RunError
from treefold_migrations._records.recorded_history import RecordedHistory
from treefold_migrations._records.records import Record
from treefold_migrations._schedule.half_done import describe_progress, describe_resolving_commands
from treefold_migrations._schedule.targeted_files import (
    collect_names_kept_by_rollback,
    collect_names_until,
)
from treefold_migrations._schedule.units import FileRun, build_file_run


def plan_fake_migrate(recorded: RecordedHistory, *, upto: str | None = None) -> list[FileRun]:
    """Return the records that `migrate` with `fake` writes: all up to a file that are missing, or
    whose file has changed. That of a squashed file replaces those that it stands for.

    Raises:
        RunError: a file is half done.
    """
    history, applied = recorded.history, recorded.applied
    kept = None if upto is None else collect_names_until(history, upto)
    # a record beside a row of the journal would hide steps that have run
    for entry in applied.progress.values():
        raise RunError(
            f"Migration {entry.name!r} is {describe_progress(entry)};"
            f" {describe_resolving_commands(entry)}"
        )
    made: list[FileRun] = []
    for item in history.order():
        hash_ = history.compute_digest(item.name)
        old = [name for name in item.replaces if name in applied.records]
        record = applied.records.get(item.name)
        same = record is not None and record.hash == hash_ and not old
        if not same and (kept is None or item.name in kept):
            names = [item.name, *old]
            made.append(build_file_run(item.name, hash_, "forwards", (), recorded=names))
    return made


def plan_fake_rollback(
    recorded: RecordedHistory, *, steps: int = 1, to: str | None = None
) -> list[FileRun]:
    """Return the records that `rollback` with `fake` removes: the last ones, or all but those up to
    a file. Files that are half done come first.
    """
    history, applied = recorded.history, recorded.applied
    half = [Record(e.name, e.hash, _NEVER) for e in applied.progress.values()]
    # a file that is half rolled back has both, and one of them would count as another file
    others = (r for r in applied.records.values() if r.name not in applied.progress)
    records = [*half, *reversed(list(others))]
    if to is None:
        chosen = records[:steps]
    else:
        left = collect_names_kept_by_rollback(history, to)
        kept = {name for each in left for name in (each, *history[each].replaces)}
        chosen = [record for record in records if record.name not in kept]
    return [build_file_run(record.name, record.hash, "backwards", ()) for record in chosen]


_NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)  # a half done file has not been applied at any time
