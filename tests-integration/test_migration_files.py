"""Migration files are written as a formatter leaves them, with its own settings and with ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "packages" / "migrations" / "tests"))

from pairs import PAIRS

from treefold_migrations import SchemaState
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._files.writing import write_migration


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of all pairs of models."""
    folder = tmp_path_factory.mktemp("files")
    for number, pair in enumerate(PAIRS, 1):
        old, new = pair.old(), pair.new()
        before = f"{number:04d}_before"
        write_migration(folder, before, [], detect_operations(SchemaState(), old))
        changes = detect_operations(old, new, pair.answers())
        write_migration(folder, f"{number:04d}_change", [before], changes)
    return folder


@pytest.mark.parametrize("width", [88, 100])
def test_a_formatter_changes_nothing(files: Path, width: int) -> None:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff"]
    done = subprocess.run(
        [*command, f"--line-length={width}", files], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0


def test_imports_are_sorted_and_all_used(files: Path) -> None:
    rules = ["--isolated", "--no-cache", "--select=E,F,I,W", "--ignore=E501"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *rules, files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
