"""How often a job is tried: declared at its function by `@job`, and read where it has failed.

    attempt   1   2    3    4    5    6   ...   11       12    13    14    15
    pause       5 s  10 s 20 s 40 s 80 s  ...  2560 s  1 h   1 h   1 h   1 h

With these defaults a job fails for good after five and a half hours: a server that is away in the
night is back by then.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

ATTEMPTS, BACKOFF = 15, 5.0
LONGEST_BACKOFF = 3600.0
"""Seconds between two attempts of a job: what fails for hours is tried once in an hour."""
MOST_LOSSES = 5
"""Workers that one job may end: each loss also ends the neighbours of the job, once."""
_ATTRIBUTE = "__treefold_retries__"


@dataclass(frozen=True, slots=True)
class Retries:
    """The attempts of a job.

    Attributes:
        attempts: how often it is run until it is kept as failed.
        backoff: seconds until the second attempt; each further one waits twice as long, at most
            an hour.
    """

    attempts: int = ATTEMPTS
    backoff: float = BACKOFF

    def __post_init__(self) -> None:
        attempts, backoff = cast("Any", self.attempts), cast("Any", self.backoff)
        if type(attempts) is not int or attempts < 1:
            raise ValueError(f"The attempts of a job must be a number from 1, got {attempts!r}")
        is_number = isinstance(backoff, (int, float)) and not isinstance(backoff, bool)
        if not is_number or not 0 <= backoff < math.inf:
            raise ValueError(f"The backoff of a job must be seconds from 0, got {backoff!r}")

    def compute_delay(self, attempt: int) -> float:
        """Return the seconds until the next attempt, after that with this number."""
        # the power is bounded, as a float beyond 1e308 raises OverflowError
        return min(self.backoff * 2.0 ** min(attempt - 1, 30), LONGEST_BACKOFF)


def job(*, attempts: int = ATTEMPTS, backoff: float = BACKOFF) -> Callable[[F], F]:
    """Declare how often a job is tried: `@job(attempts=3)` above its function.

    The function stays what it is, and may be a job without this, with the defaults: 15 attempts
    within five and a half hours.

    Args:
        attempts: how often it is run until it is kept as failed.
        backoff: seconds until the second attempt; each further one waits twice as long, at most
            an hour.

    Raises:
        ValueError: one has no meaning.
    """
    retries = Retries(attempts, backoff)

    def declare_retries(function: F) -> F:
        setattr(function, _ATTRIBUTE, retries)
        return function

    return declare_retries


def read_retries(function: Callable[..., Any]) -> Retries | None:
    """Return what `@job` has declared at a function."""
    return getattr(function, _ATTRIBUTE, None)


def find_retries(name: str) -> Retries | None:
    """Return what is declared at a function by name, if its module is imported.

    Nothing is imported: the module of a job may be what ends its worker.
    """
    module, _, function = name.partition(":")
    with contextlib.suppress(Exception):  # of a module with a `__getattr__` of its own
        return read_retries(getattr(sys.modules.get(module), function))
    return None
