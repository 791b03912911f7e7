"""Comparison of records with their files, whichever version their hash has, and its renewal.

| Record | File today | Outcome |
|---|---|---|
| hash of version 2 | same code | fits |
| hash of version 1 | same code, or `elidable=True` added since | fits, rewritten by the next run |
| any | other code, without an operation on this database | fits, rewritten by the next run |
| any | other code | refused |

A file is compared after the hashes that its parents are recorded with: these stay what they were
where a squashed file has taken the place of a parent. A file without an operation on a database
may be corrected after it failed on another one, although this one has its record already.
"""

from __future__ import annotations

from treefold_migrations._files.hashing import is_legacy_hash
from treefold_migrations._files.history import History
from treefold_migrations._records.recorded_history import RecordedHistory


def matches_recorded_hash(recorded: RecordedHistory, name: str) -> bool:
    """Return True if the recorded hash of a file, which is there, is that of its code."""
    history, hash_ = recorded.history, recorded.applied.records[name].hash
    if hash_ == history.compute_digest(name) or is_file_for_other_databases(history, name):
        return True
    parents = [_find_recorded_hash(recorded, parent) for parent in history.parents(name)]
    return hash_ in history.compute_accepted_digests(name, parents)


def matches_replaced_hash(record_hash: str, replaced_hash: str) -> bool:
    """Return True if a record fits the hash that a squashed file replaces; hashes of two versions
    cannot be compared, and their names have to do.
    """
    return record_hash == replaced_hash or is_legacy_hash(record_hash) != is_legacy_hash(
        replaced_hash
    )


def is_file_for_other_databases(history: History, name: str) -> bool:
    """Return True for a file whose operations are all those of other databases."""
    item = history[name]
    return bool(item.migration.operations) and not item.operations


def find_hashes_to_rewrite(recorded: RecordedHistory) -> dict[str, str]:
    """Return the records that fit with another hash than that of today, each with the latter."""
    history, records = recorded.history, recorded.applied.records
    found = {name: record.hash for name, record in records.items() if is_legacy_hash(record.hash)}
    if history.database:  # where a file without a part was corrected, those behind it follow
        known = {name: record.hash for name, record in records.items() if name in history}
        found |= {n: hash_ for n, hash_ in known.items() if hash_ != history.compute_digest(n)}
    made: dict[str, str] = {}
    replaced = {old: new for item in history.order() for old, new in item.replaces.items()}
    for name in found:
        if name in history and matches_recorded_hash(recorded, name):
            made[name] = history.compute_digest(name)
        elif name in replaced and not is_legacy_hash(replaced[name]):
            made[name] = replaced[name]
    return made


def _find_recorded_hash(recorded: RecordedHistory, name: str) -> str:
    item = recorded.history[name]
    # where the files before a squash were applied, the last of them is what children were hashed
    # after
    last = list(item.replaces)[-1] if item.replaces else name
    record = recorded.applied.records.get(last)
    return recorded.history.compute_digest_for_children(name) if record is None else record.hash
