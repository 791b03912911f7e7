"""Changes of columns under which PostgreSQL handles every row while it holds the table's lock.

`ALTER TABLE book ALTER COLUMN pages TYPE bigint` reads and writes every row under ACCESS EXCLUSIVE;
`varchar(20)` to `varchar(40)`, or to `text`, changes the catalog alone.
"""

from __future__ import annotations

import re

from treefold_migrations._base.sql_words import split_and_mask_statements

WRITES = "writes every row again"
NUMBERS = "numbers every row"
INDEXES = "builds an index over every row"

_SIZED = re.compile(r"(varchar|numeric)\((\d+)(, \d+)?\)")
_CALL = re.compile(r"([a-z_][\w$.]*) ?\(")
_STABLE = (
    "abs ceil concat convert_to current_setting date_trunc daterange decode encode exp floor "
    "int4range int8range json_build_object jsonb_build_array jsonb_build_object left length ln log "
    "lower lpad ltrim make_date make_interval make_timestamptz md5 mod now numrange power "
    "regexp_replace repeat replace reverse right round rpad rtrim sha256 sqrt statement_timestamp "
    "strpos substr substring timezone to_char to_date to_jsonb to_timestamp to_tsvector "
    "transaction_timestamp trunc tsrange tstzrange upper"
)
# words and types that stand before a parenthesis, and keywords that the server has for functions
_WORDS = (
    "and any array as between bit case cast char character coalesce current_time current_timestamp "
    "decimal else extract from greatest in interval is least like localtime localtimestamp not "
    "nullif numeric or row then time timestamp timestamptz timetz trim varbit varchar varying when "
    "zone"
)
# a function that is not listed may be volatile, as each is by default that a user creates
STABLE_FUNCTIONS = frozenset(_STABLE.split())
_NO_FUNCTIONS = frozenset(_WORDS.split())


def type_change_rewrites_rows(old: str, new: str) -> bool:
    """True for a change of type that writes each row again."""
    first, last = _SIZED.fullmatch(old), _SIZED.fullmatch(new)
    if first is None:
        return True
    # varchar and text are stored alike, so that only the catalog changes
    if last is None:
        return not (first[1] == "varchar" and new == "text")
    # numeric(8, 2) to numeric(10, 2) changes the catalog; another scale rounds each value
    return (first[1], first[3]) != (last[1], last[3]) or int(first[2]) > int(last[2])


def is_volatile_default(sql: str) -> bool:
    """True for a default that may differ from row to row."""
    words = " ".join(words for _, words in split_and_mask_statements(sql.lower()))
    called = {name.removeprefix("pg_catalog.") for name in _CALL.findall(words)}
    return bool(called - STABLE_FUNCTIONS - _NO_FUNCTIONS)
