"""A save is found by looking at its path alone, whatever the size of the tree."""

import os
from pathlib import Path

import pytest

from treefold_cli._dev.snapshot import find_changed_files, refresh_snapshot_paths, take_snapshot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("hooks.py", "Api/v1/X/Get.py", "Services/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_saved_and_a_deleted_file_are_found(root: Path):
    before = take_snapshot(str(root))
    (root / "hooks.py").write_text("longer than before")
    (root / "Services/a.py").unlink()
    now = refresh_snapshot_paths(
        str(root), before, ["hooks.py", "Services/a.py", "Api/v1/X/4913", "x.swp"]
    )
    assert now == take_snapshot(str(root))
    assert now is not None
    assert find_changed_files(before, now) == {"hooks.py", "Services/a.py"}


@pytest.mark.parametrize("name", ["Services/new.py", "Api/v1/Y", "Api/v1/Y/Get.py"])
def test_a_new_file_or_folder_needs_a_scan(root: Path, name: str):
    before = take_snapshot(str(root))
    (root / "Api/v1/Y").mkdir()
    for file in ("Services/new.py", "Api/v1/Y/Get.py"):
        (root / file).write_text("")
    assert refresh_snapshot_paths(str(root), before, [name]) is None


def test_a_folder_that_is_gone_needs_a_scan(root: Path):
    before = take_snapshot(str(root))
    os.rename(root / "Api/v1", root.parent / f"{root.name}-away")
    assert refresh_snapshot_paths(str(root), before, ["Api/v1"]) is None
