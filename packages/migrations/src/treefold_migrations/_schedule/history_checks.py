"""Comparison of a history with its records. Any mismatch stops a run before anything is changed."""

from __future__ import annotations

from dataclasses import replace

from treefold_migrations._base.errors import HistoryError
from treefold_migrations._records.record_hashes import (
    is_file_for_other_databases,
    matches_recorded_hash,
    matches_replaced_hash,
)
from treefold_migrations._records.recorded_history import RecordedHistory
from treefold_migrations._schedule.expanded import find_expanded_row
from treefold_migrations._schedule.half_done import describe_progress


def check_history(recorded: RecordedHistory) -> None:
    """Compare the files with the records.

    Raises:
        HistoryError: a file that was applied is missing, was changed, or has a parent that was not
            applied; or an expanded one is missing or was changed.
    """
    _check_records(recorded)
    history = recorded.history
    for name, row in recorded.applied.progress.items():
        entry = find_expanded_row(row)
        if entry is None:
            continue
        if name not in history:
            raise HistoryError(
                f"Migration {name!r} is expanded and its file is missing or squashed: get the file "
                "from the branch that has it, and apply or roll it back there first"
            )
        # contract is planned from the file, and must fit what expand has done
        if entry.hash != history.compute_digest(name) and not is_file_for_other_databases(
            history, name
        ):
            raise HistoryError(
                f"Migration {name!r} was changed after it was expanded, or a file before it was: "
                "restore the files, and `rollback` first what is to be changed"
            )


def check_history_for_release(recorded: RecordedHistory) -> None:
    """Compare the files of a release that is to serve with the records.

    It raises as `check_history`, but other files may be expanded, which the release bears.
    """
    rows, files = recorded.applied.progress, recorded.history.files
    known = {name: row for name, row in rows.items() if name in files or not row.is_expanded}
    check_history(replace(recorded, applied=replace(recorded.applied, progress=known)))


def _check_records(recorded: RecordedHistory) -> None:
    history, applied = recorded.history, recorded.applied
    replaced = {old: hash_ for item in history.order() for old, hash_ in item.replaces.items()}
    fake = f"--fake --database {history.database}" if history.database else "--fake"
    for name, record in applied.records.items():
        if name not in replaced and name not in history:
            raise HistoryError(
                f"Migration {name!r} is applied and its file is missing: get the file from the "
                f"branch that has it, or remove its record with `rollback TARGET {fake}`"
            )
        same = name in replaced and matches_replaced_hash(record.hash, replaced[name])
        if name not in replaced:
            same = matches_recorded_hash(recorded, name)
        # a rollback that failed may be corrected, and compares its complete steps
        if not same and name not in applied.progress:
            raise HistoryError(
                f"Migration {name!r} was changed after it was applied, or a file before it was: "
                "restore the files and put the change into a new one; if the database is as the "
                f"files say, accept them with `migrate {name} {fake}`"
            )
    for name, entry in applied.progress.items():
        if name not in history.files and not entry.is_expanded:
            raise HistoryError(
                f"Migration {name!r} is {describe_progress(entry)} and its file is missing: get "
                "the file "
                f"from the branch that has it, or remove its record with `rollback {fake}`, which "
                "leaves what it has done"
            )
    done = recorded.collect_applied_names()
    for item in history.order():
        missing = [parent for parent in history.parents(item.name) if parent not in done]
        if item.name in done and missing:
            raise HistoryError(
                f"Migration {item.name!r} is applied and {missing[0]!r}, which comes before it, is "
                f"not: the records were edited; repair them with `migrate {missing[0]} {fake}`"
            )
