"""An operation on a database of its own in memory, to try statements where nothing can be lost."""

from __future__ import annotations

from typing import TypeVar

from treefold_orm._base.statement import Operation
from treefold_orm._drivers.sqlite import SQLiteDatabase

T = TypeVar("T")


def run_in_memory(operation: Operation[T]) -> T:
    """Run an operation on a SQLite database in memory, which is empty before and gone afterwards.

    Raises what the operation raises.
    """
    database = SQLiteDatabase("memory", database=":memory:")
    try:
        return database.run(operation, write=True, read_only=False)
    finally:
        database.close()
