"""Numbers of the command line: times and counts of a run, read from text."""

from __future__ import annotations

import math

from treefold_migrations._run.timeouts import Limits

LONGEST = 1_000_000.0
"""Seconds; PostgreSQL takes about twice as many as the longest limit."""
SHORTEST = 0.001
"""Seconds; a shorter time would reach PostgreSQL as 0, which is no limit."""


class Misuse(Exception):
    """An option has a value that it does not take."""


def parse_run_limits(lock_timeout: str, statement_timeout: str, attempts: str) -> Limits:
    """Return the limits of a run; raises `Misuse` for text that is no number in range."""
    return Limits(
        parse_seconds("--lock-timeout", lock_timeout),
        parse_seconds("--statement-timeout", statement_timeout),
        parse_count("--attempts", attempts, 1000),
    )


def parse_seconds(flag: str, text: str) -> float:
    """Return a time; raises `Misuse` for text that is no number in range."""
    try:
        found = float(text) if text.isascii() else math.nan
    except ValueError:
        found = math.nan
    if found == 0 or SHORTEST <= found <= LONGEST:
        return found
    raise Misuse(f"Invalid value {text!r} for {flag}; give seconds from 0.001 to 1000000, or 0")


def parse_count(flag: str, text: str, maximum: int) -> int:
    """Return a whole number from 1 to `maximum`; raises `Misuse` for text that is none."""
    if text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= maximum:
        return int(text)
    raise Misuse(f"Invalid value {text!r} for {flag}; give a number from 1 to {maximum}")
