"""Two branches that touch one or two routes each merge without a conflict in the lock.

The merged lock is the one that the merged tree has, or git or the reader of locks refuses it.
`hatch run lock-merges` draws 200 pairs, and 25 pairs of whole projects, of each kind of API.
"""

import os
import random
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import pytest
from forked_commands import ForkServer
from lock_trees.branches import (
    Api,
    draw_api,
    draw_pair,
    merge_apis,
    write_api_lock,
    write_project,
)

from treefold_contract import LockError, read_lock

PAIRS = int(os.environ.get("TREEFOLD_LOCK_PAIRS", "10"))
PROJECTS = int(os.environ.get("TREEFOLD_LOCK_PROJECTS", "1"))
CONFLICTS = 0.05
"""The share of pairs that may conflict."""
CONFLICTS_OF_FEW = 3
"""Those of 10 pairs: with a share of 0.05, more are three standard deviations away."""
KINDS = {
    "one version": (1, False),
    "two versions": (2, False),
    "two versions that inherit": (2, True),
    "three versions": (3, False),
    "three versions that inherit": (3, True),
}
"""The number of versions, and whether each inherits from the one before it."""
Files: TypeAlias = Mapping[str, str]
Write: TypeAlias = Callable[[Api], Files]


def draw(kind: str, chance: random.Random) -> Api:
    versions, inherits = KINDS[kind]
    return draw_api(chance, versions, inherits=inherits)


def write_files(root: Path, files: Files) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Repository:
    """A repository that merges pairs of branches, without a folder of their files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.run("init", "-q")

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    def merge(self, base: Files, left: Files, right: Files) -> str | None:
        """Merge two branches; return the merged lock, or None if there is a conflict."""
        branches = {"base": base, "left": left, "right": right}
        given = "".join(_write_commit(name, files) for name, files in branches.items())
        imported = self.run("fast-import", "--quiet", "--force", given=given)
        assert imported.returncode == 0, imported.stderr
        merged = self.run("merge-tree", "--write-tree", "left", "right")
        if merged.returncode:
            assert "CONFLICT (content): Merge conflict in routes.lock" in merged.stdout
            return None
        return self.run("show", f"{merged.stdout.strip()}:routes.lock").stdout


def _write_commit(branch: str, files: Files) -> str:
    """Return the command that makes a branch of files; all but `base` begin there."""
    start = "" if branch == "base" else "from refs/heads/base\n"
    changes = "".join(
        f"M 100644 inline {name}\ndata {len(text)}\n{text}\n" for name, text in files.items()
    )
    author = "committer ann <ann@example.org> 0 +0000\ndata 0\n"
    reset = f"reset refs/heads/{branch}\n"
    return f"{reset}commit refs/heads/{branch}\n{author}{start}deleteall\n{changes}\n"


@dataclass(slots=True)
class Outcome:
    """The merges of some pairs.

    Attributes:
        clean: without a conflict, into the lock of the merged tree.
        conflicts: with a conflict.
        refused: without a conflict, into a text that is refused as a lock.
        wrong: the numbers of those that are read as another lock.
    """

    clean: int = 0
    conflicts: int = 0
    refused: int = 0
    wrong: list[int] = field(default_factory=list[int])

    def require_few_conflicts(self) -> None:
        assert self.wrong == []
        missed = self.conflicts + self.refused
        assert missed <= max(CONFLICTS_OF_FEW, CONFLICTS * (self.clean + missed))


def run_pairs(repository: Repository, count: int, kind: str, write: Write) -> Outcome:
    """Merge pairs of branches, and compare each merged lock with that of the merged tree."""
    outcome = Outcome()
    for number in range(count):
        chance = random.Random(f"{kind} {number}")
        base = draw(kind, chance)
        left, right = draw_pair(chance, base)
        assert left != base != right
        merged = repository.merge(write(base), write(left), write(right))
        if merged is None:
            outcome.conflicts += 1
            continue
        if merged == write(merge_apis(base, left, right))["routes.lock"]:
            outcome.clean += 1
            continue
        try:
            read_lock(merged)
        except LockError:
            outcome.refused += 1
        else:
            outcome.wrong.append(number)
    print(f"{count} pairs of {kind}: {outcome}")
    return outcome


@pytest.mark.parametrize("kind", KINDS)
def test_locks_of_branches_that_touch_different_routes_merge(kind: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "locks")

    outcome = run_pairs(repository, PAIRS, kind, lambda api: {"routes.lock": write_api_lock(api)})

    outcome.require_few_conflicts()


@pytest.mark.parametrize("kind", KINDS)
def test_projects_of_branches_that_touch_different_routes_merge(
    kind: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    repository = Repository(tmp_path / "projects")
    made = 0

    def write(api: Api) -> Files:
        nonlocal made
        made += 1
        files = write_project(api)
        root = tmp_path / f"project{made}"
        write_files(root, files)
        done = fork_server.run(["contract", "lock"], cwd=root, env={})
        assert done.returncode == 0, done.stdout + done.stderr
        return {**files, "routes.lock": (root / "routes.lock").read_text()}

    run_pairs(repository, PROJECTS, kind, write).require_few_conflicts()


@pytest.mark.parametrize("kind", KINDS)
def test_generated_locks_are_those_of_projects(
    kind: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    api = draw(kind, random.Random("equal"))
    write_files(tmp_path, write_project(api))

    done = fork_server.run(["contract", "show"], cwd=tmp_path, env={})

    assert done.returncode == 0, done.stderr
    assert done.stdout == write_api_lock(api)


def test_branches_that_touch_one_route_conflict(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "locks")
    base = draw_api(random.Random("one"))
    left, right = (replace(base, files={**base.files, min(base.files): count}) for count in (6, 8))

    files = ({"routes.lock": write_api_lock(api)} for api in (base, left, right))

    assert repository.merge(*files) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_merge_of_apis_has_both_changes(kind: str) -> None:
    for number in range(5):
        chance = random.Random(number)
        base = draw(kind, chance)
        left, right = draw_pair(chance, base)

        merged = merge_apis(base, left, right)

        assert merged == merge_apis(base, right, left)
        files = (left.files, right.files)
        assert all(
            merged.files.get(route) in (each.get(route) for each in files)
            for route in {*left.files, *right.files}
        )
