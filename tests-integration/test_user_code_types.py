"""Typical user code passes strict mypy; strict pyright reads it with everything else."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of mypy: each run reads the packages, whose types are then known."""
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize(
    "file",
    [
        "tests-integration/typed/user_code.py",
        "tests-integration/typed/user_models.py",
        "packages/orm/tests/orm_typing.py",
        "packages/jobs/tests/jobs_typing.py",
    ],
)
def test_strict_mypy_reports_nothing_on_user_code(repository: Path, cache: Path, file: str) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache)]
    done = subprocess.run(
        [*command, str(repository / file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_strict_mypy_reports_nothing_on_the_models_of_the_sample(
    repository: Path, cache: Path
) -> None:
    sample = repository / "tests-integration" / "sample"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache)]
    packages = ["-p", "Models", "-p", "Services"]
    done = subprocess.run(
        [*command, *packages], cwd=sample, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_strict_mypy_reports_nothing_on_the_help_desk(helpdesk: Path, cache: Path) -> None:
    command = [sys.executable, "-m", "treefold", "typecheck", "--with", "mypy"]
    done = subprocess.run(
        [*command, "--cache-dir", str(cache)],
        cwd=helpdesk,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Success" in done.stdout) == (0, True), done.stdout + done.stderr
    assert "strict = true" in (helpdesk / "pyproject.toml").read_text()
