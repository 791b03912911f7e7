"""The files that a target of `migrate` or `rollback` reaches."""

from __future__ import annotations

from treefold_migrations._base.errors import HistoryError
from treefold_migrations._files.history import History
from treefold_migrations._records.recorded_history import RecordedHistory


def collect_names_until(history: History, upto: str) -> set[str]:
    """Return the target of `migrate` and all files that it builds on.

    Raises:
        HistoryError: there is no such file, or it is not exactly one.
    """
    if upto == "zero":
        raise HistoryError(
            "migrate goes forwards only, got the target 'zero'; take all files back with `treefold "
            "rollback zero`"
        )
    return history.ancestors(history.find(upto).name)


def list_applied_after(recorded: RecordedHistory, upto: str) -> list[str]:
    """Return the applied files that a target of `migrate` is not and does not build on, in their
    order: those after it, and those of branches beside it.
    """
    kept = recorded.history.ancestors(recorded.history.find(upto).name)
    return [name for name in recorded.list_applied_names() if name not in kept]


def collect_names_kept_by_rollback(history: History, to: str) -> set[str]:
    """Return the files that a `rollback` to a target leaves applied: none for "zero".

    Raises:
        HistoryError: there is no such file, or it is not exactly one.
    """
    return set() if to == "zero" else history.ancestors(history.find(to).name)
