"""Functions every SQLite connection gets, so that text behaves as on PostgreSQL, and the rule for
readers.
"""

from __future__ import annotations

import sqlite3

from treefold_orm._drivers import (
    sqlite_aggregates,
    sqlite_casts,
    sqlite_clock,
    sqlite_json,
    sqlite_math,
    sqlite_numbers,
    sqlite_storage,
    sqlite_text,
)
from treefold_orm._fields.zones import truncated

_DENIED = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})


def register(raw: sqlite_clock.Connection) -> None:
    """Register the functions the dialect uses."""
    raw.create_function("treefold_trunc", 3, truncated, deterministic=True)
    sqlite_json.register(raw)
    sqlite_numbers.register(raw)
    sqlite_math.register(raw)
    sqlite_text.register(raw)
    sqlite_casts.register(raw)
    sqlite_clock.register(raw)
    sqlite_aggregates.register(raw)
    sqlite_storage.register(raw)


def readers_only(
    action: int, first: str | None, second: str | None, _database: str | None, _source: str | None
) -> int:
    """Authorise statements on a reading connection: no ATTACH, no PRAGMA, no loading of
    extensions.
    """
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version":
        return sqlite3.SQLITE_OK  # FTS5 asks itself whether its table was written
    if action in _DENIED:
        return sqlite3.SQLITE_DENY
    if (
        action == sqlite3.SQLITE_FUNCTION
        and second is not None
        and second.lower() == "load_extension"
    ):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
