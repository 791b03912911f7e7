"""Rows of the soak in a short form, those whose bars are no times; `hatch run soak` runs all."""

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parents[2] / "tools/soak"


@pytest.mark.parametrize("row", ["R-10", "R-30"])
def test_a_row_of_the_soak_keeps_its_bars(row: str) -> None:
    command = [sys.executable, SOAK, "--scale", "0.02", "--only", row]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
