"""Sixty changes of small trees: what breaks old clients is found, what is harmless does not fail.

The slips are those of one large user of versions.
"""

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from forked_commands import ForkServer
from lock_trees.slips import NAMES, Pair, Tree, list_harmless, list_slips
from serving import write_tree

from treefold import Application
from treefold_contract import Finding, diff_locks, read_lock, write_lock
from treefold_http.contract import build_project_lock

SLIPS, HARMLESS = list_slips(), list_harmless()
Diff = Callable[[Pair], tuple[int, dict[str, object]]]


def compare(pair: Pair) -> list[Finding]:
    return diff_locks(
        *(read_lock(write_tree_lock(tuple(sorted(t.items())))) for t in (pair.old, pair.new))
    )


@cache
def write_tree_lock(files: tuple[tuple[str, str], ...]) -> str:
    """Return the lock of a tree, which is written, booted and removed."""
    with TemporaryDirectory() as folder:
        app = Application(write_tree(Path(folder), dict(files)))
        return write_lock(build_project_lock(app).lock)


def test_half_of_sixty_changes_are_harmless() -> None:
    assert len(SLIPS) == len(HARMLESS) == 30
    assert len({pair.name for pair in SLIPS}) == 6


@pytest.mark.parametrize("pair", SLIPS, ids=lambda pair: f"{pair.name}: {pair.place}")
def test_a_slip_is_found_at_its_place(pair: Pair) -> None:
    found = compare(pair)

    assert (pair.rule, pair.verdict, pair.place) in [
        (each.rule, each.verdict, place) for each in found for place in each.places
    ]
    assert all(each.line for each in found)


@pytest.mark.parametrize("pair", HARMLESS, ids=lambda pair: pair.name)
def test_a_harmless_change_does_not_fail(pair: Pair) -> None:
    assert [each for each in compare(pair) if each.is_failure] == []


@pytest.fixture
def diff(tmp_path: Path, fork_server: ForkServer) -> Diff:
    """Commit the lock of one tree, write that of the other, and run `treefold contract diff`."""
    environment = {"PATH": os.environ["PATH"]}

    def run(pair: Pair) -> tuple[int, dict[str, object]]:
        commit_lock(tmp_path, pair.old, environment)
        write_tree(
            tmp_path, {**pair.new, "routes.lock": write_tree_lock(tuple(sorted(pair.new.items())))}
        )
        command = ["contract", "diff", "--format", "json", "--fail-on", "breaking"]
        done = fork_server.run(command, cwd=tmp_path, env=environment)
        return done.returncode, json.loads(done.stdout)

    return run


def commit_lock(root: Path, tree: Tree, environment: dict[str, str]) -> None:
    write_tree(root, {**tree, "routes.lock": write_tree_lock(tuple(sorted(tree.items())))})
    git = ["git", "-C", str(root), "-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "before"]):
        subprocess.run([*git, *words], check=True, env=environment, capture_output=True)


@pytest.mark.parametrize("pair", SLIPS[: len(SLIPS) // len(NAMES)], ids=lambda pair: pair.name)
def test_the_command_finds_each_slip(pair: Pair, diff: Diff) -> None:
    code, report = diff(pair)

    assert code == (1 if pair.verdict == "breaking" else 0)
    text = json.dumps(report)
    assert pair.place in text
    assert f'"{pair.verdict}"' in text
