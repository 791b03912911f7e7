"""The files of a history that its records call applied."""

from __future__ import annotations

from treefold_migrations._base.errors import HistoryError
from treefold_migrations._files.history import History, LoadedMigration
from treefold_migrations._records.records import Applied


def collect_applied_names(history: History, applied: Applied) -> set[str]:
    """Return the files that are applied; a squashed one is, where all that it replaces are.

    Raises:
        HistoryError: Only a part of the files that a squashed file replaces is applied.
    """
    made = {item.name for item in history.order() if item.name in applied.records}
    for item in history.order():
        old = [name for name in item.replaces if name in applied.records]
        if not old or item.name in made:
            continue
        # neither the squashed file nor the rest of the old ones leads on from there
        if len(old) < len(item.replaces):
            rest = next(name for name in item.replaces if name not in applied.records)
            raise HistoryError(
                f"Migration {item.name!r} stands for {old[-1]!r}, which is applied, and for "
                f"{rest!r}, which is not: apply the files from before the squash first"
            )
        made.add(item.name)
    return made


def list_record_names(item: LoadedMigration, applied: Applied) -> list[str]:
    """Return the records of an applied file."""
    if item.name in applied.records or not item.replaces:
        return [item.name]
    return list(item.replaces)


def list_pending_names(history: History, applied: Applied) -> list[str]:
    """Return the files that are not applied, in their order."""
    done = collect_applied_names(history, applied)
    return [item.name for item in history.order() if item.name not in done]
