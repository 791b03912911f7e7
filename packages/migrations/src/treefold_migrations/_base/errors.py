"""Errors of this package: `MigrationError` is the base of all.

Messages name the migration, table or field, and the next step. They never hold a stored value.
"""

from __future__ import annotations

from collections.abc import Sequence


class MigrationError(Exception):
    """Base of every error of this package."""


class StateError(MigrationError):
    """An operation does not fit the state: a table, field or name is missing or taken."""


class FileError(MigrationError):
    """A migration file cannot be read, written or placed in the graph."""


class HistoryError(FileError):
    """The files do not form one history: a fork, a missing parent, a changed applied file."""


class Ambiguous(MigrationError):
    """The change has several readings; the caller must choose.

    `flags` are the answers to choose from, as given on a command line.
    """

    def __init__(self, message: str, *, flags: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.flags = tuple(flags)


class DataLossRefused(MigrationError):
    """The change destroys data, and `allow_destructive` was not given."""


class PlanError(MigrationError):
    """A change cannot be planned for a database."""


class LockTimeout(MigrationError):
    """Another runner holds the lock of migrations, or a table stayed locked."""


class RunError(MigrationError):
    """A migration failed, or its records do not allow it to run."""
