"""Event: progress of the runner, for progress bars and logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["file", "look", "step", "rows", "done", "retry", "wait"]


@dataclass(frozen=True, slots=True)
class Event:
    """One moment of a run.

    `kind` is "file" (a file begins), "look" (rows are read before a step, without a lock), "step"
    (a step begins), "rows" (a batch of a long step is complete), "done" (a file is complete),
    "retry" (a table is locked, the transaction begins again) or "wait" (another run holds the
    lock). `step` counts from 1 to `steps`; `rows` of `total` rows are done, where `total` is 0 if
    it is not known. `text` is for people.
    """

    kind: Kind
    text: str
    migration: str = ""
    step: int = 0
    steps: int = 0
    rows: int = 0
    total: int = 0


Listener = Callable[[Event], object]


def ignore_event(_event: Event) -> None:
    """Ignore an event."""
