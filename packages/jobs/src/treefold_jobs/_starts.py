"""The starts of a job, kept in its row: which runs ended, and which were lost with their worker.

A start is written before the function runs. `attempts` of the row grows with every end that is
recorded, so that a job which is claimed again shows what became of its last start:

| `attempt` of the start | the last run | losses in a row |
|---|---|---|
| none | has never begun, however often it was claimed | 0 |
| `attempts` of the row | was lost with its worker | one more |
| less than that | ended, and is tried again | 0 |
| `STOPPED` | was in a worker that was told to stop | as before |
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pgqueuer.models import Job

KEY = "treefold"
"""The part of a row's headers that holds them."""
NEVER, STOPPED = -1, -2


@dataclass(frozen=True, slots=True)
class JobStarts:
    """What is known of the starts of one job.

    Attributes:
        attempt: `attempts` of the row at its last start, or one of the two above.
        alone: nothing else ran in the worker then.
        losses: how many starts in a row were lost with their worker.
        stops: how many attempts a worker has put back at its end; they are not charged.
    """

    attempt: int = NEVER
    alone: bool = False
    losses: int = 0
    stops: int = 0

    @classmethod
    def from_job(cls, job: Job) -> JobStarts:
        """Return the starts of a job that was just claimed, a lost one counted."""
        kept: Any = (job.headers or {}).get(KEY)
        found = cls(**cast("dict[str, Any]", kept)) if isinstance(kept, dict) else cls()
        if found.attempt == job.attempts:
            return replace(found, losses=found.losses + 1)
        return found if found.attempt < 0 else replace(found, losses=0)

    @property
    def was_lost_with_worker(self) -> bool:
        """True for a job whose last run took its worker along, or was taken along."""
        return self.losses > 0

    def compute_attempt_number(self, job: Job) -> int:
        """Return the number of the attempt that a job is at, counted from 1."""
        return job.attempts - self.stops + 1

    def with_start(self, job: Job, *, alone: bool) -> JobStarts:
        """Return the starts with a new one."""
        return replace(self, attempt=job.attempts, alone=alone)

    def with_stopped_worker(self) -> JobStarts:
        """Return the starts where the last one is no loss, whatever becomes of its worker."""
        return replace(self, attempt=STOPPED)

    def with_uncharged_attempt(self) -> JobStarts:
        """Return the starts where the last one ended with its worker, as it was told to."""
        return replace(self, attempt=STOPPED, stops=self.stops + 1)

    def to_json(self) -> str:
        """Return the part of the headers."""
        return json.dumps({KEY: asdict(self)})
