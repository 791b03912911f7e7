"""When a job runs, and beside which others: the options that `later` binds before the call.

Nothing here knows a database: a time is an instant or a delay, which the queue adds to its clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

LONGEST_NAME = 200
"""Characters of the name of a unique job; the queue has an index of them."""
LONGEST_DELAY = timedelta(days=36525)
"""A century: a longer delay is one of milliseconds that was taken for seconds."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The options of one job.

    Attributes:
        delay: how long it waits at least.
        at: before which time it does not run.
        unique: its name, of which no second job of its function is kept while it waits or runs.
    """

    delay: timedelta = timedelta()
    at: datetime | None = None
    unique: str = ""

    @classmethod
    def from_options(cls, delay: Any, at: Any, unique: Any) -> Delivery:
        """Return the checked options of `later`.

        Raises:
            TypeError: one is of another type.
            ValueError: one has no meaning, or both times are given.
        """
        if delay is not None and at is not None:
            raise ValueError("A job must have delay or at, got both; leave one of them out")
        checked = timedelta() if delay is None else _check_delay(delay)
        if at is not None:
            _check_time(at)
        if unique is not None:
            _check_name(unique)
        return cls(checked, at, unique or "")

    def compute_delay(self) -> timedelta:
        """Return how long the job waits from now on."""
        if self.at is None:
            return self.delay
        return max(self.at - datetime.now(UTC), timedelta())


AT_ONCE = Delivery()


def _check_delay(delay: Any) -> timedelta:
    if isinstance(delay, (int, float)) and not isinstance(delay, bool) and math.isfinite(delay):
        try:
            delay = timedelta(seconds=delay)
        except OverflowError:
            delay = timedelta.max
    elif not isinstance(delay, timedelta):
        raise TypeError(f"The delay of a job must be seconds or a timedelta, got {delay!r}")
    if not timedelta() <= delay <= LONGEST_DELAY:
        raise ValueError(f"The delay of a job must be 0 to {LONGEST_DELAY.days} days, got {delay}")
    return delay


def _check_time(at: Any) -> None:
    if not isinstance(at, datetime):
        raise TypeError(f"The time of a job must be a datetime with a zone, got {at!r}")
    if at.utcoffset() is None:
        raise ValueError(f"The time of a job must have a zone, got {at!r}; add tzinfo=UTC")


def _check_name(unique: Any) -> None:
    if not isinstance(unique, str):
        raise TypeError(f"The name of a unique job must be text, got {unique!r}")
    if not 1 <= len(unique) <= LONGEST_NAME or "\0" in unique or not _is_unicode(unique):
        raise ValueError(
            f"The name of a unique job must be 1 to {LONGEST_NAME} characters, without NUL and"
            f" surrogates, got {unique!r}"
        )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
