"""The locks of the three applications, which lie beside them in git.

They are up to date, at least 95 % of their answers are held, and almost no fact is unknown.
"""

import ast
import os
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from forked_commands import ForkServer

from treefold_contract import read_lock

APPLICATIONS = ("sample", "realworld", "helpdesk")
MOST_UNKNOWN = 0.02
UNKNOWN = re.compile(r"\b(?:any|foreign|opaque|[2-5]XX)\b").search
Check = Callable[..., CompletedProcess[str]]


@pytest.fixture
def check(fork_server: ForkServer) -> Check:
    def run(root: Path, *arguments: str) -> CompletedProcess[str]:
        command = ["contract", "check", *arguments]
        return fork_server.run(command, cwd=root, env={"PATH": os.environ["PATH"]})

    return run


@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_lock_of_an_application_is_up_to_date_and_held(
    name: str, request: pytest.FixtureRequest, check: Check
) -> None:
    root: Path = request.getfixturevalue(name)

    found = check(root, "--min-held", "95")

    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.startswith("routes.lock is up to date: ")
    held = re.search(r"(\d+) of (\d+) answers are checked", found.stdout)
    assert held is not None
    assert int(held[2]) > 15
    assert int(held[1]) >= 0.95 * int(held[2])


@pytest.mark.parametrize("name", APPLICATIONS)
def test_at_most_one_fact_of_fifty_is_unknown(name: str, repository: Path) -> None:
    text = (repository / "tests-integration" / name / "routes.lock").read_text()
    routes, _, _ = text.partition("\ntype ")
    # a quoted text, such as a pattern or a default, is no word
    lines = [re.sub(r'"(?:[^"\\]|\\.)*"', "", line) for line in text.splitlines()]
    facts = [line for line in lines if line.startswith("  ")]
    unknown = [line for line in facts if UNKNOWN(line)]

    assert len(read_lock(text).routes) >= 25
    assert len(facts) > 100
    assert len(unknown) <= MOST_UNKNOWN * len(facts), "\n".join(unknown)
    assert " unchecked" not in routes


@pytest.mark.parametrize("name", APPLICATIONS)
def test_no_answer_is_typed_twice(name: str, repository: Path) -> None:
    api = repository / "tests-integration" / name / "Api"
    twice = [
        str(file.relative_to(api))
        for file in api.rglob("*.py")
        if assigns_model(tree := ast.parse(file.read_text())) and annotates_handler(tree)
    ]

    assert len(list(api.rglob("*.py"))) > 20
    assert twice == []


def assigns_model(tree: ast.Module) -> bool:
    """Return True if a module says which type its answers have."""
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    return any(isinstance(each, ast.Name) and each.id == "response_model" for each in targets)


def annotates_handler(tree: ast.Module) -> bool:
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return any(each.name == "handler" and each.returns is not None for each in functions)


def test_a_change_of_the_sample_is_not_up_to_date(sample: Path, check: Check) -> None:
    file = sample / "Api" / "v1" / "Book" / "Get.py"
    text = file.read_text()
    try:
        file.write_text(text.replace("    price: float", "    price: float | None"))
        found = check(sample)
    finally:
        file.write_text(text)

    assert found.returncode == 1
    assert "routes.lock is not what the project does" in found.stderr
    assert "GET /v1/book 200 json [].price" in found.stdout
