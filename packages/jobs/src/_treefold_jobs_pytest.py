"""The pytest plugin: the fixture `outbox`, which holds the jobs of a test.

pytest imports this module at every start, in projects that never heard of treefold as well: it
imports `treefold_jobs` only when the fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from treefold_jobs.testing import Outbox


@pytest.fixture
def outbox() -> Iterator[Outbox]:
    """The jobs that the test enqueues, which are held in place of running."""
    from treefold_jobs.testing import hold_jobs

    with hold_jobs() as held:
        yield held
