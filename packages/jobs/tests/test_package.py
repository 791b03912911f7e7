"""The package as others meet it: its names, its entry points, and what it takes from the ORM."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import treefold_jobs

PUBLIC = {"treefold_orm", "treefold_orm.connections"}
"""The modules of the ORM that jobs import, for their public names alone."""
MOST_NAMES = 12


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def imported_from_orm() -> Iterator[tuple[str, str]]:
    for file in Path(treefold_jobs.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                names = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "", alias.name) for alias in node.names]
            else:
                continue
            yield from (one for one in names if one[0].startswith("treefold_orm"))


def test_jobs_take_at_most_twelve_public_names_of_the_orm() -> None:
    found = sorted(set(imported_from_orm()))
    assert {module for module, _ in found} == PUBLIC
    private = [
        f"{module}.{name}"
        for module, name in found
        if name not in importlib.import_module(module).__all__
    ]
    assert private == []
    assert len(found) <= MOST_NAMES, found


@pytest.mark.parametrize("name", treefold_jobs.__all__)
def test_every_listed_name_can_be_imported(name: str) -> None:
    assert getattr(treefold_jobs, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(treefold_jobs, "nothing")  # noqa: B009 - a type checker knows it too


def test_the_names_can_still_be_imported_from_the_orm() -> None:
    former = importlib.import_module("treefold_orm.jobs")
    for name in ("Schedule", "aenqueue", "enqueue"):
        assert getattr(former, name) is getattr(treefold_jobs, name)


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("treefold.commands", ["jobs discard", "jobs list", "jobs retry", "worker"]),
        ("treefold.extensions", ["jobs"]),
        ("treefold.tables", ["jobs"]),
    ],
)
def test_entry_points_lead_to_this_package(group: str, names: list[str]) -> None:
    points = [p for p in entry_points(group=group) if p.value.startswith("treefold_jobs.")]
    assert sorted(point.name for point in points) == names
    assert all(callable(point.load()) for point in points)


def test_a_boot_imports_neither_the_queue_nor_enqueueing() -> None:
    code = (
        "import sys, treefold_jobs._extension; "
        "print({'pgqueuer', 'asyncpg', 'treefold_orm', 'treefold_jobs._enqueueing'}"
        " & sys.modules.keys())"
    )
    assert run(code) == "set()"
