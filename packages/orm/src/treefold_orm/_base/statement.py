"""Requests of an operation to a connection, and how an operation is written.

An operation is a generator: it yields a `Statement` and is sent the outcome, or has the mapped
database error thrown into it. It does no I/O itself, so that the async and the sync half run the
very same code. An operation that writes with more than one statement yields `ATOMIC` first.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Kind = Literal["rows", "count", "script", "raw", "atomic"]


class Statement:
    """SQL and its arguments; `kind` says whether rows or a number of rows come back, or neither;
    `raw` is SQL of the caller and gives column names too.

    `script` is for schema statements only: no arguments, and several statements are allowed.
    """

    __slots__ = ("args", "kind", "sql")

    def __init__(self, kind: Kind, sql: str, args: Sequence[object] = ()) -> None:
        self.kind: Kind = kind
        self.sql = sql
        self.args = args


ATOMIC = Statement("atomic", "")
"""Yielded first: the statements after it belong together. The runner of the operation opens a
transaction, or
a savepoint inside of one; both are undone where the operation fails.
"""

Operation = Generator[Statement, Any, T]
CoroutineOf = Coroutine[Any, Any, T]
"""The result of a call of the async half, whose twin of the sync half returns `T`."""
