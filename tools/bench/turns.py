"""Batches that take turns with those of another process; alone, nothing here does anything.

`against.py` starts one bench twice, for two states of the packages, and gives each in turn the
leave to run one batch. Two pipes are handed over by their numbers: on one the leave arrives, on the
other go a line before each batch and a line of JSON for each row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

PIPES = "TREEFOLD_BENCH_PIPES"
WAITS = "waits"

# taken out: a process that a bench starts has no such pipes
_numbers = [int(number) for number in os.environ.pop(PIPES, "").split()]
_leave = os.fdopen(_numbers[0]) if _numbers else None
_notes = os.fdopen(_numbers[1], "w", buffering=1) if _numbers else None


@contextmanager
def turn() -> Generator[None]:
    """Wait until this process may run a batch; the other one waits meanwhile."""
    if _leave is not None and _notes is not None:
        print(WAITS, file=_notes)
        if not _leave.readline():
            raise SystemExit("The other bench has ended")
    yield


def note_row(name: str, figures: Sequence[float]) -> None:
    """Hand over the figures of a row, one for each batch of ours, in the order of the batches."""
    if _notes is not None:
        print(json.dumps([name, list(figures)]), file=_notes)
