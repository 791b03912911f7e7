"""Typical user code passes strict mypy; strict pyright reads it with everything else."""

import subprocess
import sys
from pathlib import Path


def test_strict_mypy_reports_nothing_on_user_code(repository: Path, tmp_path: Path) -> None:
    file = repository / "tests-integration" / "typed" / "user_code.py"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
