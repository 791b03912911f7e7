"""Names of migration files: `NNNN_words.py`.

Two branches may both write a `0003_...`; both files stay, and the merge gets the next number:

    0002_add_slug
    0003_add_rank, 0003_drop_note    of two branches
    0004_merge
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from treefold_migrations._base.errors import FileError
from treefold_migrations._operations.base import Operation

_NAME = re.compile(r"([0-9]{4,})_[a-z0-9_]+")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_MAX_WORDS = 50
"""Characters after the number: a line of a list shows them, and no file system refuses them."""


def is_migration_name(name: str) -> bool:
    """True for the name of a migration file without its ending."""
    return _NAME.fullmatch(name) is not None


def require_migration_name(name: str) -> str:
    """Return the name of a migration; raises `FileError` for another text."""
    if not is_migration_name(name):
        raise FileError(
            f"{name!r} cannot name a migration; use four digits, an underscore and lower-case "
            "words, such as 0002_add_slug"
        )
    return name


def parse_migration_number(name: str) -> int:
    """Return the number that a name begins with."""
    return int(name.partition("_")[0])


def build_next_migration_name(existing_names: Iterable[str], words: str) -> str:
    """Return the name of the next file; words are made plain."""
    number = max(map(parse_migration_number, existing_names), default=0) + 1
    plain = _NOT_PLAIN.sub("_", words.lower()).strip("_")[:_MAX_WORDS].strip("_")
    return require_migration_name(f"{number:04d}_{plain or 'changes'}")


def suggest_name_words(operations: Sequence[Operation], *, is_first_migration: bool) -> str:
    """Return words for a file that holds these operations."""
    if is_first_migration:
        return "initial"
    if not operations:
        return "empty"
    # a file with "run SQL: UPDATE book ..." is `run_sql`: the statement itself makes no name
    words = " ".join(operations[0].describe().split(":")[0].split())
    return f"{words} and more" if len(operations) > 1 else words
