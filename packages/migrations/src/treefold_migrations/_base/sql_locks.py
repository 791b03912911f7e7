"""The lock of PostgreSQL that a statement of the author's own takes, by its words.

Only locks that other queries wait for count: such a statement gets the limits of blocking steps.
The words do not tell everything, such as a function that alters a table.
"""

from __future__ import annotations

import re

from treefold_migrations._base.sql_words import split_and_mask_statements

EXCLUSIVE = "ACCESS EXCLUSIVE"
# VALIDATE alone: as a part of a longer ALTER TABLE it waits with the lock of the others
_NONE = re.compile(
    r"\bCONCURRENTLY\b|^ALTER TABLE (ONLY )?\S+ VALIDATE CONSTRAINT \S+$", re.IGNORECASE
)
_ALTERS = r"(ALTER|DROP|TRUNCATE|CLUSTER|REINDEX|LOCK|REFRESH|VACUUM FULL|CREATE POLICY)"
_LOCKS = (
    (re.compile(rf"^{_ALTERS}\b", re.IGNORECASE), EXCLUSIVE),
    (re.compile(r"^CREATE (OR REPLACE )?RULE\b", re.IGNORECASE), EXCLUSIVE),
    (
        re.compile(
            # a reference in a new table locks the table that it points to
            r"^CREATE (OR REPLACE )?(CONSTRAINT )?TRIGGER\b|^CREATE .*TABLE\b.*\bREFERENCES\b",
            re.IGNORECASE,
        ),
        "SHARE ROW EXCLUSIVE",
    ),
    (re.compile(r"^CREATE (UNIQUE )?INDEX\b", re.IGNORECASE), "SHARE"),
)
_BODY = re.compile(rf"\b{_ALTERS} TABLE\b", re.IGNORECASE)


def find_strongest_lock(sql: str) -> str:
    """Return the strongest lock that others wait for, empty where there is none."""
    found = [
        _find_statement_lock(written, words) for written, words in split_and_mask_statements(sql)
    ]
    return next((lock for _, lock in _LOCKS if lock in found), "")


def _find_statement_lock(written: str, masked_sql: str) -> str:
    if _NONE.search(masked_sql):
        return ""
    # its body is one text, which `masked_sql` leaves out
    if masked_sql.upper().startswith("DO "):
        return EXCLUSIVE if _BODY.search(written) else ""
    return next((lock for pattern, lock in _LOCKS if pattern.search(masked_sql)), "")
