"""Each statement of each plan fails in each way, and from every state commands lead forward and
back: each change is applied, rolled back, expanded and contracted.

The README's test draws some failures by a seed; `hatch run migrations:failures` makes all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from run_support import (
    LONG,
    Place,
    make_place as make_place,
    quick_folder as quick_folder,
)

CHILD = Path(__file__).parent / "failure_child.py"
SEED = int(os.environ.get("TREEFOLD_FAILURES_SEED", "2026"))
PARTS = 8 if LONG else 2
DRAWN = {"sqlite": (8, 5), "postgres": (4, 4)}
"""Of each part in the README's test: courses, and failures of each."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_from_each_failure_commands_lead_forward_and_back(
    make_place: Callable[[str], Place], quick_folder: Path, engine: str, part: int
) -> None:
    place = make_place(engine)
    courses, failures = (None, None) if LONG else DRAWN[engine]
    given = {
        "engine": engine,
        "address": place.address if place.schema else str(quick_folder / "test.sqlite3"),
        "schema": place.schema,
        "folder": str(quick_folder),
        "part": [part, PARTS],
        "courses": courses,
        "failures": failures,
        "seed": SEED + part,
    }
    done = subprocess.run(
        [sys.executable, CHILD, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=7200 if LONG else 280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["failures"] >= (courses or 20) * (failures or 50)
