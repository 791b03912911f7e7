"""Commands of other packages: found by entry point, loaded when typed, unable to do harm."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

MODULE = """\
print("imported")


def migrate(name: str = "all", app_dir: str = ".") -> int:
    '''Apply migrations.'''
    print("migrating", name)
    return 3


def show() -> int:
    '''Show migrations.'''
    return 0
"""
ENTRIES = """\
[treefold.commands]
migrate = other_package:migrate
migrations show = other_package:show
broken = no_such_module:nothing
routes = other_package:migrate
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    info = tmp_path / "other_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (tmp_path / "other_package.py").write_text(MODULE)
    (tmp_path / "Api/v1").mkdir(parents=True)

    def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        program += "from treefold_cli import main\nmain()\n"
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return call


def test_a_command_runs_with_its_options_and_its_exit_code(run: Run):
    done = run("migrate", "--name", "one")
    assert (done.returncode, done.stdout) == (3, "imported\nmigrating one\n")


def test_a_name_of_two_words_is_a_command_in_a_group(run: Run):
    assert run("migrations", "show").returncode == 0
    assert "Show migrations." in run("migrations", "--help").stdout
    unknown = run("migrations", "shw")
    message = "Error: Unknown command 'migrations shw'; did you mean 'show'\n"
    assert (unknown.returncode, unknown.stderr) == (2, message)


def test_the_help_lists_them_after_the_built_in_ones(run: Run):
    done = run("--help")
    assert done.returncode == 0
    listed = [
        line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line
    ]
    assert listed[-4:] == ["version", "broken", "migrate", "migrations"]


def test_what_is_built_in_wins_and_imports_nothing_of_them(run: Run):
    done = run("routes")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_package_that_is_broken_says_so_where_it_is_used(run: Run):
    done = run("broken")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: Command 'broken' of 'other-package' cannot be loaded (ModuleNotFoundError: No"
        " module named 'no_such_module'); mend or uninstall that package\n"
    )


def test_a_typing_error_finds_them_too(run: Run):
    assert run("migrat").stderr.startswith("Error: Unknown command 'migrat'; did you mean 'migrat")
