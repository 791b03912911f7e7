"""Two branches that touch one or two routes each merge without a conflict in the lock.

The merged lock is the one that the merged tree has. `hatch run lock-merges` draws 200 pairs, and 25
pairs of whole projects.
"""

import os
import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

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

PAIRS = int(os.environ.get("TREEFOLD_LOCK_PAIRS", "20"))
PROJECTS = int(os.environ.get("TREEFOLD_LOCK_PROJECTS", "1"))
CONFLICTS = 0.05
"""The share of pairs that may conflict."""
CONFLICTS_OF_FEW = 4
"""Those of 20 pairs: with a share of 0.05, more are three standard deviations away."""
Write = Callable[[Api], Mapping[str, str]]


class Repository:
    """A repository in which pairs of branches are merged."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.run("init", "-q", "-b", "base")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        options = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "gc.auto=0")
        command = ["git", "-C", str(self.root), *options, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def commit(self, branch: str, files: Mapping[str, str], start: str = "base") -> None:
        """Commit files, and no others, to a new branch."""
        self.run("checkout", "-q", "-B", branch, *([start] if start != branch else []))
        self.run("rm", "-rq", "--ignore-unmatch", ".")
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.run("add", "-A")
        made = self.run("commit", "-q", "--allow-empty", "-m", branch)
        assert made.returncode == 0, made.stderr

    def merges(self, base: Api, left: Api, right: Api, write: Write) -> bool:
        """Merge two branches; return False if there is a conflict in the lock."""
        self.commit("base", write(base), "base")
        self.commit("left", write(left))
        self.commit("right", write(right))
        return self.run("merge", "-q", "--no-edit", "left").returncode == 0


def run_pairs(repository: Repository, count: int, seed: str, write: Write) -> tuple[int, list[int]]:
    """Return how many pairs merge without a conflict, and those whose lock is another."""
    clean, wrong = 0, list[int]()
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        base = draw_api(chance)
        left, right = draw_pair(chance, base)
        assert left != base != right
        if not repository.merges(base, left, right, write):
            repository.run("merge", "--abort")
            continue
        clean += 1
        merged = (repository.root / "routes.lock").read_text()
        if merged != write(merge_apis(base, left, right))["routes.lock"]:
            wrong.append(number)
    return clean, wrong


def test_locks_of_branches_that_touch_different_routes_merge(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "locks")

    clean, wrong = run_pairs(
        repository, PAIRS, "locks", lambda api: {"routes.lock": write_api_lock(api)}
    )

    print(f"{clean} of {PAIRS} pairs of locks merge, {len(wrong)} of them into another lock")
    assert PAIRS - clean <= max(CONFLICTS_OF_FEW, CONFLICTS * PAIRS)
    assert wrong == []


def test_projects_of_branches_that_touch_different_routes_merge(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    repository = Repository(tmp_path / "projects")
    made = 0

    def write(api: Api) -> Mapping[str, str]:
        nonlocal made
        made += 1
        files = write_project(api)
        root = tmp_path / f"project{made}"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = fork_server.run(["contract", "lock"], cwd=root, env={})
        assert done.returncode == 0, done.stdout + done.stderr
        return {**files, "routes.lock": (root / "routes.lock").read_text()}

    clean, wrong = run_pairs(repository, PROJECTS, "projects", write)

    print(f"{clean} of {PROJECTS} pairs of projects merge, {len(wrong)} into another lock")
    assert PROJECTS - clean <= max(CONFLICTS_OF_FEW, CONFLICTS * PROJECTS)
    assert wrong == []


def test_generated_locks_are_those_of_projects(tmp_path: Path, fork_server: ForkServer) -> None:
    api = draw_api(random.Random("equal"))
    for name, text in write_project(api).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    done = fork_server.run(["contract", "show"], cwd=tmp_path, env={})

    assert done.returncode == 0, done.stderr
    assert done.stdout == write_api_lock(api)


def test_branches_that_touch_one_route_conflict(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "locks")
    base = draw_api(random.Random("one"))
    route = min(base)

    def write(api: Api) -> Mapping[str, str]:
        return {"routes.lock": write_api_lock(api)}

    assert not repository.merges(base, {**base, route: 6}, {**base, route: 8}, write)


@pytest.mark.parametrize("number", range(5))
def test_the_merge_of_apis_has_both_changes(number: int) -> None:
    chance = random.Random(number)
    base = draw_api(chance)
    left, right = draw_pair(chance, base)

    merged = merge_apis(base, left, right)

    assert merged == merge_apis(base, right, left)
    assert all(
        merged.get(route) in (left.get(route), right.get(route)) for route in {*left, *right}
    )
