"""`hatch run t`: the tests near a module, and the environment that they need."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

import tests_near

ROOT = tests_near.ROOT
ORM = "packages/orm/src/treefold_orm"


@pytest.mark.parametrize(
    ("module", "test"),
    [
        (f"{ORM}/_operations/saving.py", "packages/orm/tests/test_saving.py"),
        (f"{ORM}/_functions/choice.py", "packages/orm/tests/test_functions_choice.py"),
        (
            "packages/migrations/src/treefold_migrations/_lint/rules.py",
            "packages/migrations/tests/test_lint.py",
        ),
        (
            "packages/http/src/treefold_http/_headers/host_names.py",
            "packages/http/tests/middleware/test_trusted_hosts.py",
        ),
        (
            "packages/router/src/treefold_router/_near_names.py",
            "packages/router/tests/test_lint.py",
        ),
    ],
)
def test_the_tests_near_a_module_are_those_that_know_it(module: str, test: str) -> None:
    found = tests_near.find_near_tests(ROOT / module)
    assert test in found
    assert len(found) <= tests_near.MOST
    assert all((ROOT / file).is_file() for file in found)


@pytest.mark.parametrize("package", ["orm", "http", "migrations", "jobs"])
def test_almost_every_module_has_tests_near_it(package: str) -> None:
    every = sorted((ROOT / "packages" / package / "src").rglob("*.py"))
    drawn = random.Random(29).sample([f for f in every if not f.name.startswith("__")], 12)
    assert [file.name for file in drawn if not tests_near.find_near_tests(file)] == []


def test_a_test_is_run_as_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    named = "packages/orm/tests/test_saving.py::test_a"
    assert list(tests_near.find_tests(named)) == [named]
    monkeypatch.chdir(ROOT / "packages/orm")
    assert list(tests_near.find_tests("tests/test_saving.py")) == [
        "packages/orm/tests/test_saving.py"
    ]
    with pytest.raises(SystemExit, match="no file of this repository"):
        tests_near.find_tests("tests/test_nowhere.py")


@pytest.mark.parametrize(
    ("test", "environment"),
    [
        ("packages/orm/tests/test_saving.py::test_a", "orm"),
        ("packages/migrations/tests/test_lint.py", "migrations"),
        ("packages/jobs/tests/test_worker.py", "jobs"),
        ("packages/http/tests/_serving/test_lifespan.py", "iso.http"),
        ("packages/http/tests/openapi/test_schemas.py", "extras"),
        ("packages/cli/tests/commands/test_test.py", "iso.cli"),
        ("packages/server/tests/test_serve.py", "server.newest"),
        ("packages/cli/tests/with_extras/test_reload.py", "default"),
        ("tests-integration/test_sample.py", "default"),
    ],
)
def test_a_test_runs_where_its_requirements_are(test: str, environment: str) -> None:
    assert tests_near.choose_environment(test) == environment
