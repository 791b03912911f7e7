"""Columns of other tools on SQLite: functions that bring their values into the form that values
have inside of queries, and back.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from treefold_orm._drivers.sqlite_errors import refuse
from treefold_orm._fields import storage


def register(raw: sqlite3.Connection) -> None:
    """Register the functions the dialect uses."""
    raw.create_function("treefold_load_decimal", 3, _load_decimal, deterministic=True)
    raw.create_function("treefold_store_decimal", 2, _store_decimal, deterministic=True)
    raw.create_function("treefold_load_moment", 2, _load_moment, deterministic=True)
    raw.create_function("treefold_store_moment", 1, _store_moment, deterministic=True)


def _load_decimal(value: Any, places: int, name: str) -> int | None:
    if value is None:
        return None
    try:
        return storage.scaled(value, places)
    except ValueError:
        return refuse(f"{name} cannot be read as DecimalField: the row holds no such number")


def _store_decimal(value: int | None, places: int) -> str | None:
    return None if value is None else storage.unscaled_text(value, places)


def _load_moment(value: Any, name: str) -> str | None:
    if value is None:
        return None
    try:
        return storage.zoned_text(value)
    except ValueError:
        return refuse(
            f"{name} cannot be read as DateTimeField(zone=None): the row holds no date and time "
            "without a zone"
        )


def _store_moment(value: str | None) -> str | None:
    return None if value is None else storage.unzoned_text(value)
