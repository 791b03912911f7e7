"""Turns: the order in which the files of a history run on its databases.

| File | on `default` | on `analytics` |
|---|---|---|
| `0001`, `0002`: tables of both | 1st turn | 2nd turn |
| `0003`: Python on `analytics` that copies rows of `default` | 3rd, only a record | 4th |
| `0004`: drops the table of `default` | 5th | 6th, only a record |

Files without Python run together. A file with Python waits until each database has the files before
it, and those behind it wait until each database has it: otherwise `default` would have dropped the
rows of `0004` before `0003` has copied them. The way back is the same, the last database first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from treefold_migrations._files.databases import runs_python
from treefold_migrations._files.history import History
from treefold_migrations._records.recorded_history import RecordedHistory


def plan_migrate_calls(
    history: History, pending: Mapping[str, Collection[str]], upto: str | None
) -> list[tuple[str, str | None]]:
    """Return the aliases in turn, each with the last file of its turn, None for all files.

    Args:
        history: the files.
        pending: the files that are not applied, by alias.
        upto: the target of `migrate`.

    Raises:
        HistoryError: the files fork, or there is no such target.
    """
    names = [item.name for item in history.order()]
    if upto is None:
        history.head()
    elif upto != "zero":
        wanted = history.ancestors(history.find(upto).name)
        names = [name for name in names if name in wanted]
    # a file that each database has needs no turn, even where it runs Python
    names = [name for name in names if any(name in waiting for waiting in pending.values())]
    stops: dict[str, None] = {}
    for place, name in enumerate(names):
        if _has_python_operation(history, name):
            # one stop in front of the file and one behind it
            stops.update(dict.fromkeys(names[max(place - 1, 0) : place + 1]))
    return [(alias, stop) for stop in (*stops, upto) for alias in pending]


def plan_rollback_calls(
    history: History,
    recorded_by_alias: Mapping[str, Collection[str]],
    *,
    steps: int,
    to: str | None,
) -> list[tuple[str, list[str]]]:
    """Return the aliases in turn, each with the files to be taken back in it.

    Args:
        history: the files.
        recorded_by_alias: the files that are applied, expanded or half done, by alias.
        steps: how many files, the last one first, without `to`.
        to: the target of `rollback`.

    Raises:
        HistoryError: there is no such target.
    """
    order = [item.name for item in history.order()]
    names = [name for name in order if any(name in known for known in recorded_by_alias.values())]
    if to is None:
        # names[-0:] would be all of them
        chosen = names[-steps:] if steps > 0 else []
    else:
        kept = set[str]() if to == "zero" else history.ancestors(history.find(to).name)
        chosen = [name for name in names if name not in kept]
    groups: list[list[str]] = []
    alone = True
    for name in reversed(chosen):
        python = _has_python_operation(history, name)
        if alone or python:
            groups.append([])
        groups[-1].append(name)
        alone = python
    turns = [
        (alias, [name for name in group if name in recorded_by_alias[alias]])
        for group in groups
        # the way forward began with the first database
        for alias in reversed(list(recorded_by_alias))
    ]
    return [(alias, found) for alias, found in turns if found]


def collect_recorded_files(recorded: RecordedHistory) -> set[str]:
    """Return the files that a database has something of."""
    return recorded.collect_applied_names() | recorded.applied.progress.keys()


def select_fill_flags(
    history: History, names: Collection[str], fills: Collection[str]
) -> list[str]:
    """Return the flags of `--fill` whose fields some files touch."""
    touched: set[str] = set()
    for name in names:
        for operation in history[name].operations:
            touched |= operation.touches() or set()
    return [flag for flag in fills if flag.partition(":")[0] in touched]


def _has_python_operation(history: History, name: str) -> bool:
    return any(map(runs_python, history[name].operations))
