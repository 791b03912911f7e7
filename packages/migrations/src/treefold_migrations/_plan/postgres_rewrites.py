"""Changes of columns under which PostgreSQL handles every row while it holds the table's lock.

`ALTER TABLE book ALTER COLUMN pages TYPE bigint` reads and writes every row under ACCESS EXCLUSIVE;
`varchar(20)` to `varchar(40)`, or to `text`, changes the catalog alone.
"""

from __future__ import annotations

import re

from treefold_migrations._plan.changes import is_constant

WRITES = "writes every row again"
NUMBERS = "numbers every row"
INDEXES = "builds an index over every row"

_SIZED = re.compile(r"(varchar|numeric)\((\d+)(, \d+)?\)")
# the same within one statement: the server computes them once, and keeps the value in the catalog
_STABLE = (
    "now()",
    "current_timestamp",
    "strftime(",
    "statement_timestamp",
    "transaction_timestamp",
)


def rewrites_rows(old: str, new: str) -> bool:
    """True for a change of type that writes each row again."""
    first, last = _SIZED.fullmatch(old), _SIZED.fullmatch(new)
    if first is None:
        return True
    # varchar and text are stored alike, so that only the catalog changes
    if last is None:
        return not (first[1] == "varchar" and new == "text")
    # numeric(8, 2) to numeric(10, 2) changes the catalog; another scale rounds each value
    return (first[1], first[3]) != (last[1], last[3]) or int(first[2]) > int(last[2])


def is_volatile(sql: str) -> bool:
    """True for a default that may differ from row to row."""
    if is_constant(sql) or sql.startswith(("ARRAY[", "'")):
        return False
    lowered = sql.lower()
    # parentheses around the whole are no call
    return "(" in lowered.strip("()") and not any(word in lowered for word in _STABLE)
