"""A machine without a browser: the README's test says what it skipped; a deciding run fails."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TEST = "tests-integration/served/test_browser_application.py"
NOTE = (
    "The browser tests were skipped: install Chromium or Chrome, or name a browser in"
    " TREEFOLD_BROWSER"
)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_without_browser(repository: Path, tmp_path: Path) -> Run:
    """Run a browser test where PATH has a shell, but no browser."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    search = os.pathsep.join([os.path.dirname(sys.executable), os.fspath(programs)])

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        return run_browser_test(repository, {"PATH": search} | variables)

    return run


def run_browser_test(
    repository: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
    command = [sys.executable, "-m", "pytest", TEST, "-q", "-x", "-p", "no:valkey"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "-rs"],
        cwd=repository,
        env=inherited | variables,
        capture_output=True,
        text=True,
    )


def test_the_browser_tests_are_skipped_and_the_last_line_says_so(
    run_without_browser: Run, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    done = run_without_browser(TREEFOLD_TEST_NOTES=str(notes))
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" not in done.stdout
    assert NOTE in done.stdout.splitlines()
    assert notes.read_text(encoding="utf-8") == f"{NOTE}\n"


def test_a_run_that_decides_about_a_change_fails(run_without_browser: Run) -> None:
    done = run_without_browser(TREEFOLD_BROWSER_REQUIRED="1")
    assert done.returncode == 1
    assert "None of chromium, chromium-browser," in done.stdout


@pytest.mark.parametrize("file", [".ci/run", ".github/workflows/ci.yml"])
def test_runs_that_decide_require_a_browser(repository: Path, file: str) -> None:
    assert "TREEFOLD_BROWSER_REQUIRED" in (repository / file).read_text(encoding="utf-8")
