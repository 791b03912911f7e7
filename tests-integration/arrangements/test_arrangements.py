"""Generated applications: nobody gets a response meant for another, or past a guard.

The seeds are always the same, so that a failure is one for everybody; `hatch run arrangements` runs
ten times as many. A process of its own is forked for each of them: pytest has threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="arrangements are forked")


def run_arrangements(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command of `hatch run arrangements`."""
    folders = [repository / "tests-integration", repository / "packages" / "http" / "tests"]
    return subprocess.run(
        [sys.executable, "-m", "arrangements", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_100_arrangements_have_no_hole(repository: Path) -> None:
    done = run_arrangements(repository, "--count", "100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100 arrangements" in done.stdout


@pytest.mark.parametrize("parser", ["h11", "httptools"])
def test_arrangements_have_no_hole_on_the_wire(repository: Path, parser: str) -> None:
    done = run_arrangements(repository, "--first", "1000", "--count", "12", "--parser", parser)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 arrangements" in done.stdout
