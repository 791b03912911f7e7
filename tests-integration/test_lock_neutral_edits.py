"""Edits that change nothing for clients change no byte of the lock.

Several edits at once, each time on a copy of the sample; `hatch run lock-edits` makes each alone.
"""

import os
import shutil
from pathlib import Path

import pytest
from forked_commands import ForkServer
from lock_trees.neutral_edits import EDITS

GROUPS = int(os.environ.get("TREEFOLD_LOCK_GROUPS", "8"))


def test_there_are_forty_edits() -> None:
    assert len(EDITS) >= 40


@pytest.mark.parametrize("names", [[*EDITS][start::GROUPS] for start in range(GROUPS)], ids=str)
def test_neutral_edits_of_the_sample_leave_the_lock(
    names: list[str], sample: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    if not names:
        pytest.fail(f"TREEFOLD_LOCK_GROUPS must be at most {len(EDITS)}, got {GROUPS}")
    root = tmp_path / "sample"
    shutil.copytree(sample, root)
    for name in names:
        EDITS[name](root)
    committed = (root / "routes.lock").read_bytes()
    (root / "routes.lock").unlink()

    found = fork_server.run(["contract", "lock"], cwd=root, env={})

    assert found.returncode == 0, found.stdout + found.stderr
    assert "files with errors 0" in found.stderr
    assert (root / "routes.lock").read_bytes() == committed
