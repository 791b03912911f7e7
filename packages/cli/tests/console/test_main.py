"""The program as a whole: exit codes, one line per error, what is imported and what is not."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import treefold_cli
from treefold_cli.__about__ import __version__

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]

COMMANDS = [
    *("new", "dev", "serve", "create", "routes", "why", "check", "openapi", "doctor"),
    *("test", "typecheck", "shell", "docs", "version", "client", "contract"),
]
INSIDE = [
    *("version create", "version list", "version diff"),
    *("contract lock", "contract check", "contract diff", "contract accept", "contract show"),
]


@pytest.mark.parametrize("name", ["treefold", "tfold"])
def test_both_spellings_start_the_same_program(name: str):
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    entry = EntryPoint(name, pyproject["project"]["scripts"][name], "console_scripts")
    assert entry.load() is treefold_cli.main


def test_the_version_is_printed(executable: Executable):
    done = executable("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[1] == __version__ or done.stdout.startswith("treefold ")


def test_the_version_is_printed_among_other_words_too(treefold: Treefold):
    assert treefold("--version", "routes") == treefold("--version")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_the_help_lists_every_command(executable: Executable, arguments: list[str]):
    done = executable(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    listed = done.stdout.partition("Commands:")[2].splitlines()
    assert [line.split()[0] for line in listed if line] == COMMANDS
    codes = " ".join(done.stdout.partition("Exit codes: ")[2].partition("Options:")[0].split())
    assert codes == (
        "0 done, 1 something found or failed, 2 wrong use, 130 interrupted; 'test' and 'typecheck'"
        " pass on those of the tool they run."
    )


WITHOUT_PROJECT = {"docs"}
"""Commands that read nothing of a project."""


@pytest.mark.parametrize("command", [*COMMANDS[:-3], "client", *INSIDE])
def test_every_command_has_a_help_and_an_app_dir(treefold: Treefold, command: str):
    code, out, err = treefold(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert ("--app-dir" in out) is (command not in WITHOUT_PROJECT)


def test_the_usage_line_names_the_program_as_it_was_started(tmp_path: Path):
    script = tmp_path / "tfold"
    script.write_text("from treefold_cli import main\nmain()\n")
    done = subprocess.run([sys.executable, script, "routes", "-h"], capture_output=True, text=True)
    assert done.stdout.startswith("Usage: tfold routes ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rout"], "Unknown command 'rout'; did you mean 'routes'"),
        (["x"], "Unknown command 'x'; use one of new, dev, serve, create, routes, why, check, "),
        (["version"], "Missing command; see '"),
        (["version", "lst"], "Unknown command 'version lst'; did you mean 'list'"),
        (["version", "create"], "Missing argument 'N'; see '"),
        (["routes", "--nope"], "No such option"),
        (["--nope"], "No such option"),
        (["routes", "extra"], "Got unexpected extra argument"),
        (["create", "user"], "Missing argument 'METHOD'; see '"),
        (["routes", "--app-dir"], "Option '--app-dir' requires an argument"),
        (["routes", "--app-dir", "missing"], "No folder 'missing'; name another with --app-dir"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(treefold: Treefold, arguments: list[str], message: str):
    code, out, err = treefold(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"Error: {message}")


def test_an_error_of_the_project_is_one_line_and_code_1(executable: Executable, tmp_path: Path):
    done = executable("routes", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: No folder 'Api' in '.'; run this at the root")


def test_a_reader_that_leaves_is_no_traceback(project: Project):
    root = project(*(f"v1/R{number}/Get.py" for number in range(3)))
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "treefold_cli", "routes"]
    done = subprocess.run(command, cwd=root, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--version"], {"typer", "asyncio", "treefold_router", "treefold_http"}),
        (["routes"], {"pydantic", "rich", "asyncio", "treefold_http", "uvicorn"}),
        (["routes", "--json", "--app-dir", "."], {"pydantic", "rich", "asyncio"}),
        (["create", "user", "get"], {"pydantic", "rich", "asyncio", "treefold_http", "uvicorn"}),
        (["why", "get", "/v1/x"], {"pydantic", "rich", "asyncio", "treefold_http", "libcst"}),
        (["version", "list"], {"pydantic", "rich", "asyncio", "treefold_http", "libcst"}),
        (["--help"], {"pydantic", "rich", "asyncio", "treefold_http", "uvicorn"}),
    ],
)
def test_a_light_command_imports_nothing_heavy(
    project: Project, arguments: list[str], heavy: set[str]
):
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('\\n', *sys.modules, file=sys.stderr))\n"
        "from treefold_cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=project(), capture_output=True, text=True)
    assert done.returncode == (1 if arguments[0] == "why" else 0)
    assert heavy & set(done.stderr.split()) == set()


def test_completion_knows_the_commands(tmp_path: Path):
    script = tmp_path / "treefold"
    script.write_text("from treefold_cli import main\nmain()\n")
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ
        | {"_TREEFOLD_COMPLETE": "complete_bash", "COMP_WORDS": "treefold ", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == COMMANDS
