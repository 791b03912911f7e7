"""State of the current task or thread: transactions, a recorder, read-only mode.

One context variable holds it all, so that an operation outside of any of these pays for a single
look.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from treefold_orm._base.records import Record, copy_with_changes, frozen_record

if TYPE_CHECKING:
    from treefold_orm._base.journal import Journal
    from treefold_orm._runtime.open_transaction import Transaction
    from treefold_orm._runtime.recorder import Recorder


NO_TRANSACTIONS: Mapping[str, Transaction] = {}


@frozen_record
class Context(Record):
    """Immutable; code that changes something sets a new one and restores the old one."""

    transactions: Mapping[str, Transaction] = NO_TRANSACTIONS
    recorder: Recorder | None = None
    read_only: bool = False
    blocking: bool = False


EMPTY = Context()
current: ContextVar[Context | None] = ContextVar("treefold_orm", default=None)


def find_current_journal(alias: str) -> Journal | None:
    """Return the journal of the transaction that this code runs in, if there is one."""
    context = current.get()
    found = None if context is None else context.transactions.get(alias)
    return None if found is None else found.journal


def is_read_only() -> bool:
    """Return True in a block of `read_only()`."""
    context = current.get()
    return context is not None and context.read_only


@contextmanager
def override_context(**changes: object) -> Generator[None]:
    """Run a block with a changed context."""
    token = current.set(copy_with_changes(current.get() or EMPTY, **changes))
    try:
        yield
    finally:
        current.reset(token)


@contextmanager
def allow_blocking() -> Generator[None]:
    """Allow synchronous calls on an event-loop thread: for start-up code that runs before
    requests do.
    """
    with override_context(blocking=True):
        yield


@contextmanager
def read_only() -> Generator[None]:
    """Refuse writes in this block, and let the database refuse them too."""
    with override_context(read_only=True):
        yield
