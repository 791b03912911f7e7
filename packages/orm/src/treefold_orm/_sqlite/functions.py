"""Functions every SQLite connection gets, so that text behaves as on PostgreSQL, and the rule for
readers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from treefold_orm._fields.zones import truncate_in_zone
from treefold_orm._sqlite import aggregates, casts, clock, json, math, numbers, storage, text

_ANY_NUMBER = 4  # the flag of a function that takes *args, as in `inspect`, which is slow to import
_DENIED = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})


def _count_parameters(function: Any) -> int:
    code = function.__code__
    return -1 if code.co_flags & _ANY_NUMBER else code.co_argcount


def _give_null_for_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, which is not called with NULL: its result is NULL then."""
    names = function.__code__.co_varnames[: _count_parameters(function)]
    given, test = ", ".join(names), " or ".join(f"{name} is None" for name in names)
    # `*args` would make each call a third slower
    made = f"lambda {given}: None if {test} else function({given})"
    return eval(made, {"function": function})  # noqa: S307 - names of this package


_FUNCTIONS: dict[str, Callable[..., Any]] = {"treefold_trunc": truncate_in_zone} | {
    f"treefold_{name.removeprefix('sql_')}": function
    for module in (casts, json, math, numbers, storage, text)
    for name, function in vars(module).items()
    if name.startswith("sql_")
}
_CALLED = {
    name: _give_null_for_null(function)
    if function.__module__ in {casts.__name__, math.__name__, numbers.__name__}
    and _count_parameters(function) >= 0
    else function
    for name, function in _FUNCTIONS.items()
}
"""What SQLite calls. Functions of numbers and casts know no NULL; those of text and JSON, which
filters call for each row, look for it themselves.
"""


def register_functions(raw: clock.Connection) -> None:
    """Register the functions the dialect uses: `sql_lower` becomes `treefold_lower`."""
    for name, function in _FUNCTIONS.items():
        # SQLite takes only deterministic functions in indexes and generated columns, and calls one
        # with constant arguments once instead of for each row
        count = _count_parameters(function)
        raw.create_function(name, count, _CALLED[name], deterministic=True)
    clock.register_clock(raw)
    aggregates.register_aggregates(raw)


def authorize_read_only(
    action: int, first: str | None, second: str | None, _database: str | None, _source: str | None
) -> int:
    """Authorise statements on a reading connection: no ATTACH, no PRAGMA, no loading of
    extensions.
    """
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version":
        return sqlite3.SQLITE_OK  # FTS5 asks itself whether its table was written
    if action in _DENIED:
        return sqlite3.SQLITE_DENY
    # SQLite matches names of functions without regard to case
    if action == sqlite3.SQLITE_FUNCTION and second and second.lower() == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
