"""What the current task or thread is in the middle of: transactions, a recorder, read-only mode.

One context variable holds it all, so that an operation outside of any of these pays for a single
look.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treefold_orm._observe import Recorder
    from treefold_orm._open_transaction import Transaction


@dataclass(frozen=True, slots=True)
class Context:
    """Immutable; whoever changes something sets a new one and restores the old one."""

    transactions: Mapping[str, Transaction] = field(default_factory=dict[str, "Transaction"])
    recorder: Recorder | None = None
    read_only: bool = False
    blocking: bool = False


EMPTY = Context()
current: ContextVar[Context | None] = ContextVar("treefold_orm", default=None)


@contextmanager
def changed(**changes: object) -> Generator[None]:
    """Run a block with a changed context."""
    token = current.set(replace(current.get() or EMPTY, **changes))
    try:
        yield
    finally:
        current.reset(token)


@contextmanager
def allow_blocking() -> Generator[None]:
    """Let synchronous calls run on an event-loop thread: for start-up code that runs before
    requests do.
    """
    with changed(blocking=True):
        yield


@contextmanager
def read_only() -> Generator[None]:
    """Refuse writes in this block, and let the database refuse them too."""
    with changed(read_only=True):
        yield
