"""Columns of other tools on SQLite: functions that bring their values into the form that values
have inside of queries, and back.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._fields import storage
from treefold_orm._sqlite.refusals import fail_statement


def sql_load_decimal(value: Any, places: int, column_label: str) -> int | None:
    if value is None:
        return None
    try:
        return storage.scale_to_integer(value, places)
    except ValueError:
        return fail_statement(
            f"{column_label} cannot be read as DecimalField: the row holds no such number"
        )


def sql_store_decimal(value: int | None, places: int) -> str | None:
    return None if value is None else storage.format_scaled_integer(value, places)


def sql_load_moment(value: Any, column_label: str) -> str | None:
    if value is None:
        return None
    try:
        return storage.add_utc_offset(value)
    except ValueError:
        return fail_statement(
            f"{column_label} cannot be read as DateTimeField(zone=None): the row holds no date and "
            "time without a zone"
        )


def sql_store_moment(value: str | None) -> str | None:
    return None if value is None else storage.strip_utc_offset(value)
