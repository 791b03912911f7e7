"""Lint of SQL that the author of a migration wrote: each statement by its words.

Cases that the words alone do not decide are ignored, since a false alarm costs more than a missed
finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from treefold_migrations._base.sql_words import split_and_mask_statements
from treefold_migrations._lint.rules import Finding, make_finding
from treefold_orm.schema import MAX_IDENTIFIER

_SHOWN = 60


_PATTERNS: tuple[tuple[str, str, str], ...] = (
    # rule, pattern that the words match, and pattern that they must not match
    ("drop-table", r"^DROP TABLE\b", ""),
    ("drop-column", r"^ALTER TABLE\b.*\bDROP COLUMN\b", ""),
    ("truncate-cascade", r"^TRUNCATE\b.*\bCASCADE\b", ""),
    ("remove-enum-value", r"^DELETE FROM (pg_catalog\.)?pg_enum\b", ""),
    ("rename-column", r"^ALTER TABLE\b.*\bRENAME (?!TO\b|CONSTRAINT\b)", ""),
    ("rename-table", r"^ALTER TABLE\b.*\bRENAME TO\b", ""),
    ("rename-schema", r"^ALTER SCHEMA\b.*\bRENAME\b", ""),
    (
        "required-without-default",
        # CHECK (... IS NOT NULL) is no column
        r"\bADD (COLUMN )?(?!CONSTRAINT\b).*\bNOT NULL\b",
        r"\bDEFAULT\b|\bGENERATED\b|\bCHECK\b",
    ),
    ("drop-default-in-use", r"\bALTER\b.*\bDROP DEFAULT\b", ""),
    ("type-rewrites", r"^ALTER TABLE\b.*\bALTER (COLUMN )?\S+ (SET DATA )?TYPE\b", ""),
    (
        "volatile-default",
        r"\bADD (COLUMN )?.*\bDEFAULT\b.*\b(random|gen_random_uuid|uuid_generate_v\w+|"
        r"clock_timestamp|nextval) ?\(",
        "",
    ),
    ("stored-generated-column", r"\bADD (COLUMN )?.*\bGENERATED ALWAYS AS \(.*\) STORED\b", ""),
    (
        "identity-on-filled-table",
        r"^ALTER TABLE\b.*\bADD (COLUMN )?.*(\bAS IDENTITY\b|\b(small|big)?serial\b)",
        "",
    ),
    ("index-not-concurrent", r"^CREATE (UNIQUE )?INDEX\b", r"\bCONCURRENTLY\b"),
    ("drop-index-not-concurrent", r"^DROP INDEX\b", r"\bCONCURRENTLY\b"),
    ("reindex", r"^REINDEX\b", r"\bCONCURRENTLY\b"),
    (
        "unique-without-index",
        r"^ALTER TABLE\b.*\bADD\b.*\b(UNIQUE|PRIMARY KEY)\b",
        r"\bUSING INDEX\b",
    ),
    ("foreign-key-not-valid", r"^ALTER TABLE\b.*\bADD\b.*\bFOREIGN KEY\b", r"\bNOT VALID\b"),
    ("check-not-valid", r"^ALTER TABLE\b.*\bADD (CONSTRAINT \S+ )?CHECK\b", r"\bNOT VALID\b"),
    ("set-not-null", r"^ALTER TABLE\b.*\bSET NOT NULL\b", ""),
    ("exclusion-constraint", r"^ALTER TABLE\b.*\bADD\b.*\bEXCLUDE\b", ""),
    ("partition-detach", r"\bDETACH PARTITION\b", r"\bCONCURRENTLY\b|\bFINALIZE\b"),
    # 0 is no limit: a value without another digit
    ("no-lock-timeout", r"^(SET|RESET)\b.*\block_timeout\b(?!.*[1-9])", ""),
    ("no-statement-timeout", r"^(SET|RESET)\b.*\bstatement_timeout\b(?!.*[1-9])", ""),
    (
        "timestamp-without-zone",
        r"^(CREATE TABLE|ALTER TABLE)\b.*\btimestamp\b(?! ?(\(\d\) ?)?with time zone)",
        "",
    ),
    ("narrow-key", r"^CREATE TABLE\b.*\b(small)?serial\b", ""),
)
_LOCKS_ONLY = frozenset(
    {
        "type-rewrites",
        "volatile-default",
        "stored-generated-column",
        "identity-on-filled-table",
        "index-not-concurrent",
        "drop-index-not-concurrent",
        "reindex",
        "unique-without-index",
        "foreign-key-not-valid",
        "check-not-valid",
        "set-not-null",
        "exclusion-constraint",
        "partition-detach",
    }
)
_COMPILED = [
    (rule, re.compile(wanted, re.IGNORECASE), re.compile(refused, re.IGNORECASE))
    for rule, wanted, refused in _PATTERNS
]
_CHANGES_DATA = re.compile(r"^(UPDATE|INSERT|DELETE|MERGE|COPY)\b", re.IGNORECASE)
_WHOLE = re.compile(r"^(UPDATE|DELETE)\b(?!.*\bWHERE\b)", re.IGNORECASE)
_NAMES = re.compile(r'"((?:[^"]|"")+)"|([A-Za-z_][A-Za-z0-9_$]*)')


def changes_data(sql: str) -> bool:
    """True if a statement changes rows."""
    return any(_CHANGES_DATA.search(words) for _, words in split_and_mask_statements(sql))


def changes_schema(sql: str) -> bool:
    """True if a statement changes tables."""
    starts = ("ALTER ", "CREATE ", "DROP ")
    return any(words.upper().startswith(starts) for _, words in split_and_mask_statements(sql))


def lint_sql(
    sql: str,
    operation_index: int,
    *,
    postgres: bool,
    transactional: bool,
    new_tables: frozenset[str],
) -> Iterator[Finding]:
    """Yield the findings for SQL; tables in `new_tables` were created in the same migration."""
    for written, words in split_and_mask_statements(sql):
        shown = written if len(written) <= _SHOWN else f"{written[:_SHOWN]}..."
        names = {a or b for a, b in _NAMES.findall(written)}
        for rule, wanted, refused in _COMPILED:
            # no other session knows a table of the same transaction
            if rule in _LOCKS_ONLY and (not postgres or names & new_tables):
                continue
            # the value of a timeout is quoted, and so missing in `words`
            text = written if rule.endswith("-timeout") else words
            if wanted.search(text) and not (refused.pattern and refused.search(words)):
                yield make_finding(rule, shown, operation_index, include_lock=postgres)
        if postgres and transactional and re.search(r"\bCONCURRENTLY\b", words, re.IGNORECASE):
            yield make_finding("concurrent-in-transaction", shown, operation_index)
        if _WHOLE.search(words):
            yield make_finding("unbatched-backfill", shown, operation_index)
        for name in sorted(names):
            if len(name.encode()) > MAX_IDENTIFIER:
                yield make_finding("long-identifier", name, operation_index)
