"""Comparison of records with their files, whichever version their hash has, and its renewal.

| Record | File today | Outcome |
|---|---|---|
| hash of version 2 | same code | fits |
| hash of version 1 | same code, or `elidable=True` added since | fits, rewritten by the next run |
| any | other code | refused |

A file is compared after the hashes that its parents are recorded with: these stay what they were
where a squashed file has taken the place of a parent.
"""

from __future__ import annotations

from treefold_migrations._files.hashing import is_old
from treefold_migrations._files.history import History
from treefold_migrations._run.records import Applied


def fits(history: History, applied: Applied, name: str) -> bool:
    """Return True if the recorded hash of a file, which is there, is that of its code."""
    recorded = applied.records[name].hash
    if recorded == history.digest(name):
        return True
    parents = [_recorded_hash(history, applied, parent) for parent in history.parents(name)]
    return recorded in history.digests_after(name, parents)


def fits_replaced(record_hash: str, replaced_hash: str) -> bool:
    """Return True if a record fits the hash that a squashed file replaces; hashes of two versions
    cannot be compared, and their names have to do.
    """
    return record_hash == replaced_hash or is_old(record_hash) != is_old(replaced_hash)


def outdated(history: History, applied: Applied) -> dict[str, str]:
    """Return the records with a hash of version 1 that fit, each with its hash of today."""
    found = {n: r.hash for n, r in applied.records.items() if is_old(r.hash)}
    made: dict[str, str] = {}
    replaced = {old: new for item in history.order() for old, new in item.replaces.items()}
    for name in found:
        if name in history and fits(history, applied, name):
            made[name] = history.digest(name)
        elif name in replaced and not is_old(replaced[name]):
            made[name] = replaced[name]
    return made


def _recorded_hash(history: History, applied: Applied, name: str) -> str:
    item = history[name]
    last = list(item.replaces)[-1] if item.replaces else name
    record = applied.records.get(last)
    return history.chain(name) if record is None else record.hash
