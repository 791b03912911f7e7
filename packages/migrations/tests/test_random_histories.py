"""Random histories of changes, commands and failures: none ends in a state without exit.

The README's test makes 60 by their seeds; `hatch run migrations:histories` makes 5,000 on SQLite
and 500 on PostgreSQL.
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

CHILD = Path(__file__).parent / "history_child.py"
SEED = int(os.environ.get("TREEFOLD_HISTORIES_SEED", "1"))
PARTS = 10 if LONG else 2
COUNTS = {"sqlite": 500, "postgres": 50} if LONG else {"sqlite": 25, "postgres": 5}
"""Histories of each part."""
CHANGES = 6 if LONG else 3
"""Changes of each: the time of a history grows with the square of them."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_no_history_ends_without_an_exit(
    make_place: Callable[[str], Place], quick_folder: Path, engine: str, part: int
) -> None:
    place, count = make_place(engine), COUNTS[engine]
    given = {
        "engine": engine,
        "address": place.address if place.schema else str(quick_folder / "test.sqlite3"),
        "schema": place.schema,
        "folder": str(quick_folder),
        "histories": count,
        "seed": SEED + part * count,
        "changes": CHANGES,
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
    assert found["half"] >= (1 if engine == "sqlite" or LONG else 0)
