"""Functions every SQLite connection gets, so that text behaves as on PostgreSQL, and the rule for
readers.
"""

from __future__ import annotations

import functools
import math
import re
import sqlite3
from typing import Any

from treefold_orm._zones import truncated
from treefold_orm.drivers import _sqlite_json

_DENIED = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})


def register(raw: sqlite3.Connection) -> None:
    """Register the functions the dialect uses."""
    raw.create_function("treefold_fold", 1, _lower, deterministic=True)
    raw.create_function("treefold_lower", 1, _lower, deterministic=True)
    raw.create_function("treefold_upper", 1, _upper, deterministic=True)
    raw.create_function("treefold_ends", 2, _ends, deterministic=True)
    raw.create_function("treefold_floor", 1, _floor, deterministic=True)
    raw.create_function("treefold_regex", 3, _matches, deterministic=True)
    raw.create_function("treefold_trunc", 3, truncated, deterministic=True)
    _sqlite_json.register(raw)


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


def _lower(value: Any) -> str | None:
    return None if value is None else str(value).lower()


def _upper(value: Any) -> str | None:
    return None if value is None else str(value).upper()


def _ends(text: Any, ending: Any) -> int | None:
    return None if text is None or ending is None else int(str(text).endswith(str(ending)))


def _floor(value: Any) -> int | None:
    return None if value is None else math.floor(value)


@functools.lru_cache(maxsize=256)
def _pattern(pattern: str, blind: int) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if blind else 0)


def _matches(text: Any, pattern: Any, blind: int) -> int | None:
    if text is None or pattern is None:
        return None
    return int(_pattern(str(pattern), blind).search(str(text)) is not None)
