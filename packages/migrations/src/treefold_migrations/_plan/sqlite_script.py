"""Statements of one text for SQLite, whose driver takes one at a time.

`CREATE TRIGGER a AFTER INSERT ON b BEGIN UPDATE c SET d = ';'; END; -- and\\nDROP TABLE e;` is two
statements: the semicolon inside of the text ends nothing, and the one in the body of the trigger
does not end the trigger. PostgreSQL takes the whole text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from treefold_migrations._base.errors import PlanError
from treefold_migrations._inspect.sql_text import tokenize_sql


def split_script(sql: str) -> list[str]:
    """Return the statements of a text, each with its comments and its semicolon.

    Raises `PlanError` for one that begins or ends a transaction among others, since the file has
    one already.
    """
    found = list(_split_statements(sql))
    # one statement stays in the words of its author, comments in front and behind included
    if len(found) < 2:
        return [sql] if found else []
    for statement in found:
        word = tokenize_sql(statement)[0].value
        if word in _TRANSACTIONS:
            raise PlanError(
                f"RunSQL cannot hold {word.upper()} among other statements, got "
                f"{_shorten_sql(sql)!r}; take it out: the statements of a file are one transaction"
            )
    return found


# SAVEPOINT is not among them: it works inside of a transaction
_TRANSACTIONS = frozenset({"begin", "commit", "end", "rollback"})


def _shorten_sql(sql: str) -> str:
    words = " ".join(sql.split())
    return f"{words[:60]}..." if len(words) > 60 else words


def _split_statements(sql: str) -> Iterator[str]:
    start = begun = 0
    tokens = tokenize_sql(sql)
    for place, token in enumerate(tokens):
        if token.kind != "sign" or token.value != ";":
            continue
        text = sql[start : token.end]
        if sqlite3.complete_statement(text):  # it knows the bodies of triggers
            if place > begun:
                yield text.strip()
            start, begun = token.end, place + 1
    # a text without a last semicolon; comments alone are no statement
    if begun < len(tokens):
        yield sql[start:].strip()
