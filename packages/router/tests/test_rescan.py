"""A table of a tree that has changed, listed in part, is the one that a whole scan gives."""

import os
import random
import shutil
from pathlib import Path

import pytest

from treefold_router import RouterError, RouteTable

NAMES = ("Get.py", "Put.py", "get.py", "names.py", "__init__.py", "notes.txt")
MARKS = ("Get.gone", "user.gone", "[id].gone", "names.gone")
FOLDERS = ("User", "user", "[id]", "[name]", "Book", "Services")


class Tree:
    """A tree on the disk, and changes of it drawn by lot."""

    def __init__(self, root: Path, seed: int, *, inherits: bool = False) -> None:
        self.root = root
        self._lot = random.Random(seed)
        for version in ("v1", "v2", "tools"):
            (root / version).mkdir(parents=True)
        self._names, self._fixed = NAMES, {root}
        if inherits:
            (root / "v2/version.toml").write_text('inherits = "v1"')
            self._names, self._fixed = (*NAMES, *MARKS), {root, root / "v1"}

    def change(self) -> set[str]:
        """Change up to three places; return the files that are new, different or gone."""
        before = self._files()
        self._linked: set[str] = set()
        for _ in range(self._lot.randint(1, 3)):
            self._change_place()
        now = self._files()
        return {
            *(name for name in {*before, *now} if before.get(name) != now.get(name)),
            *self._linked,
        }

    def _files(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for folder, _, names in os.walk(self.root):
            place = Path(folder).relative_to(self.root).as_posix()
            for name in names:
                if name.endswith((".py", ".gone", ".toml")):
                    found[f"{place}/{name}".removeprefix("./")] = os.lstat(
                        os.path.join(folder, name)
                    ).st_ino
        return found

    def _change_place(self) -> None:
        folders = [Path(folder) for folder, _, _ in os.walk(self.root)]
        folder, kind = self._lot.choice(folders), self._lot.random()
        if kind < 0.45:
            for name in self._lot.sample(FOLDERS, self._lot.randint(0, 2)):
                folder /= name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / self._lot.choice(self._names)).touch()
        elif kind < 0.75:
            for file in [one for one in folder.iterdir() if not one.is_dir()][:1]:
                file.unlink()
        elif kind < 0.85 and folder not in self._fixed:
            shutil.rmtree(folder)
        elif kind < 0.95 and folder not in self._fixed:
            other = folder.with_name(self._lot.choice(FOLDERS))
            if not other.exists():
                folder.rename(other)
        elif kind > 0.99:
            link = folder / "Linked"
            if not link.is_symlink():
                link.symlink_to(self.root / "v2")
                self._linked.add(f"{link.relative_to(self.root).as_posix()}/Get.py")


def describe(table: RouteTable) -> dict[str, object]:
    return {
        "routes": [(r.method, r.template, r.file, r.parameters) for r in table.routes],
        "skipped": table.skipped,
        "duplicates": table.duplicates,
        "versions": (table.versions, table.latest),
        "packages": table.packages,
        "layers": (table.layers.files, table.layers.folders, set(table.find_layer_findings())),
        # a folder without files may clash as well, and no change of a file tells of one
        "lint": sorted(
            str(one)
            for one in table.lint()
            if one.code != "case-clash" or one.files[0].endswith(".py")
        ),
        "served": [
            str(table.resolve("GET", f"/{version}/user{rest}"))
            for version in ("v1", "v2")
            for rest in ("", "/5")
        ],
    }


@pytest.mark.parametrize("inherits", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_part_of_the_tree_is_listed_as_all_of_it(
    tmp_path: Path, seed: int, inherits: bool
) -> None:
    tree = Tree(tmp_path / "Api", seed, inherits=inherits)
    options = {"auto_head": True, "auto_options": True}
    table = RouteTable.scan(tree.root, keep_listing=True, **options)
    for step in range(25):
        changed = tree.change()
        table, former = table.rescan(changed), table
        whole = RouteTable.scan(tree.root, **options)
        assert describe(table) == describe(whole), (seed, step, changed)
        known = {(r.method, r.template, r.file, r.parameters): r for r in former.routes}
        for route in table.routes:
            same = known.get((route.method, route.template, route.file, route.parameters))
            assert same is None or same is route


def test_only_the_folders_of_changes_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        (tmp_path / f"v1/R{number}/[id]").mkdir(parents=True)
        (tmp_path / f"v1/R{number}/[id]/Get.py").touch()
    table = RouteTable.scan(tmp_path, keep_listing=True)
    (tmp_path / "v1/R5/[id]/Put.py").touch()
    (tmp_path / "v1/New/Deep").mkdir(parents=True)
    (tmp_path / "v1/New/Deep/Get.py").touch()

    listed: list[str] = []
    scandir = os.scandir

    def note(path: str) -> object:
        listed.append(os.path.relpath(path, tmp_path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", note)
    table = table.rescan(["v1/R5/[id]/Put.py", "v1/New/Deep/Get.py"])
    assert sorted(listed) == ["v1", "v1/New", "v1/New/Deep", "v1/R5/[id]"]
    assert len(table.routes) == 102
    listed.clear()
    assert table.rescan().routes == table.routes
    assert len(listed) > 200


def test_a_root_that_is_gone_is_the_error_of_a_scan(tmp_path: Path) -> None:
    (tmp_path / "Api/v1").mkdir(parents=True)
    (tmp_path / "Api/v1/Get.py").touch()
    table = RouteTable.scan(tmp_path / "Api", keep_listing=True)
    shutil.rmtree(tmp_path / "Api")
    with pytest.raises(RouterError, match="does not exist"):
        table.rescan(["v1/Get.py"])
