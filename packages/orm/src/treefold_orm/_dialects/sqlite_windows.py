"""Aggregates over windows on SQLite that are no aggregates of its own.

Collected values are joined by the database's own window function, as JSON, since it loses count of
texts that are empty. Deviations are functions of the connection, which must not be asked for a
frame without a row (see `_sqlite/aggregates.py`).
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._dialects.sql import SQL

_CALLS: dict[str, tuple[LiteralString, LiteralString]] = {
    name: (name + "({}){}", name + "_of(GROUP_CONCAT(treefold_digits({})){})")
    for name in (
        "treefold_stddev_pop",
        "treefold_stddev_samp",
        "treefold_var_pop",
        "treefold_var_samp",
    )
}


def build_window_aggregate(
    name: str, args: list[SQL], *, where: SQL | None, over: SQL, may_be_empty: bool
) -> SQL | None:
    """An aggregate over a window, None for one that the database has."""
    kept = over if where is None else SQL(" FILTER (WHERE {}){}", where, over)
    match name:
        case "string_agg":
            text, delimiter = args
            item = SQL("CASE WHEN {} IS NOT NULL THEN treefold_item({}) END", text, text)
            return SQL("treefold_joined(GROUP_CONCAT({}){}, {})", item, kept, delimiter)
        case "array_agg":
            return SQL("('[' || GROUP_CONCAT(treefold_item({})){} || ']')", args[0], kept)
        case _:
            calls = _CALLS.get("treefold_" + name)
    if calls is None:
        return None
    # a row that the filter leaves out must be met, too
    value = args[0] if where is None else SQL("CASE WHEN {} THEN {} END", where, args[0])
    return SQL(calls[may_be_empty], value, over)
