"""How a function of a connection fails a statement, and where its reason waits until then."""

from __future__ import annotations

import threading
from typing import NoReturn

from treefold_orm._base.errors import DataError

# SQLite keeps no exception of a function: its reason waits here until the statement has failed,
# which happens on the same thread
_refusal = threading.local()


def fail_statement(reason: str) -> NoReturn:
    """Fail the running statement with a `DataError`; for the functions of a connection.

    `reason` names no value.
    """
    _refusal.reason = reason
    raise DataError(reason)


def take_failure_reason() -> str | None:
    """The reason of the statement that has just failed on this thread, if a function gave one."""
    reason: str | None = getattr(_refusal, "reason", None)
    # taken once: the next statement of this thread must not report it again
    _refusal.reason = None
    return reason
