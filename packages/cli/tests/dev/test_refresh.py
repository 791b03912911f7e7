"""A save is found by looking at its path alone, whatever the size of the tree."""

import os
import random
import shutil
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


def test_new_files_and_folders_are_found(root: Path):
    before = take_snapshot(str(root))
    for file in ("Services/new.py", "Api/v1/Y/Z/Get.py", "Api/v1/Y/Put.py", "Api/v1/Y/notes.txt"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("")
    for touched in (["Services/new.py", "Api/v1/Y"], ["Services/new.py", "Api/v1/Y/Z/Get.py"]):
        assert refresh_snapshot_paths(str(root), before, touched) == take_snapshot(str(root))


def test_a_folder_that_is_gone_or_moved_is_found(root: Path):
    before = take_snapshot(str(root))
    os.rename(root / "Api/v1", root / "Api/v2")
    now = refresh_snapshot_paths(str(root), before, ["Api/v1", "Api/v2"])
    assert now == take_snapshot(str(root))
    assert now is not None
    assert now.keys() == {"hooks.py", "Api/v2/X/Get.py", "Services/a.py"}


@pytest.mark.parametrize("name", ["new.py", "Utils", "Api/v1/Linked", "Api/v1/Linked/Get.py"])
def test_what_is_new_at_the_root_or_behind_a_link_needs_a_scan(root: Path, name: str):
    before = take_snapshot(str(root))
    (root / "Utils").mkdir()
    (root / "new.py").touch()
    (root / "Api/v1/Linked").symlink_to(root / "Api/v1/X")
    assert refresh_snapshot_paths(str(root), before, [name]) is None


NAMES = ("Get.py", "a.py", "b.txt", ".env", ".hidden.py")
FOLDERS = ("X", "Y", "node_modules", "with.dot", "[id]")


@pytest.mark.parametrize("seed", range(20))
def test_a_refreshed_snapshot_is_the_one_of_a_scan(root: Path, seed: int):
    lot = random.Random(seed)
    known = take_snapshot(str(root))
    for step in range(30):
        touched: set[str] = set()
        for _ in range(lot.randint(1, 3)):
            places = [Path(folder) for folder, _, _ in os.walk(root) if Path(folder) != root]
            place, kind = lot.choice(places), lot.random()
            if kind < 0.5:
                for name in lot.sample(FOLDERS, lot.randint(0, 2)):
                    place /= name
                    touched.add(str(place.relative_to(root)))
                place.mkdir(parents=True, exist_ok=True)
                place /= lot.choice(NAMES)
                place.write_text(f"{step}")
            elif kind < 0.7 and place.parent != root:
                other = place.with_name(lot.choice(FOLDERS))
                if not other.exists():
                    place.rename(other)
                    touched.add(str(other.relative_to(root)))
            elif place.parent != root:
                shutil.rmtree(place)
            touched.add(str(place.relative_to(root)))
        found = refresh_snapshot_paths(str(root), known, touched)
        whole = take_snapshot(str(root))
        assert found is None or found == whole, (step, touched)
        known = whole
