"""`tools/lanes.py`: scripts of hatch side by side; a lane that is free takes the next one."""

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "lanes.py"

HATCH = """# In place of hatch: `run SCRIPT ...` does what the file SCRIPT says, and writes it down.
import pathlib, sys, time
folder = pathlib.Path({folder!r})
words = sys.argv[2:]
with open(folder / "begun", "a") as begun:
    begun.write(" ".join(words) + "\\n")
print("output of", words[0])
exec((folder / words[0]).read_text())
"""

Lanes = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lanes(tmp_path: Path) -> Lanes:
    """Run the tool with scripts `{name: program}`, COUNT at a time."""
    program = tmp_path / "bin" / "hatch"
    program.parent.mkdir()
    source = tmp_path / "hatch.py"
    source.write_text(HATCH.format(folder=str(tmp_path)), encoding="utf-8")
    words = shlex.join([sys.executable, str(source)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o755)

    def run(
        count: int, scripts: dict[str, str], *arguments: str
    ) -> subprocess.CompletedProcess[str]:
        for name, text in scripts.items():
            (tmp_path / name).write_text(text)
        return subprocess.run(
            [sys.executable, TOOL, str(count), *scripts, "--", *arguments],
            env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def wait_for(name: str) -> str:
    """A program that ends when another script has begun."""
    return f"while {name!r} not in (folder / 'begun').read_text().split():\n    time.sleep(0.01)\n"


def test_a_free_lane_takes_the_next_script(lanes: Lanes) -> None:
    """The long one ends when the last has begun: in fixed lanes of two, it never would."""
    done = lanes(2, {"long": wait_for("last"), "second": "", "third": "", "last": ""})
    assert done.returncode == 0


def test_a_script_that_fails_keeps_no_other_from_running(lanes: Lanes, tmp_path: Path) -> None:
    done = lanes(1, {"first": "sys.exit(3)", "second": "sys.exit(4)", "third": ""}, "-x")
    assert done.returncode == 3
    assert (tmp_path / "begun").read_text() == "first -x\nsecond -x\nthird -x\n"


def test_the_output_of_a_script_beside_the_watched_one_is_whole(lanes: Lanes) -> None:
    done = lanes(2, {"watched": wait_for("beside"), "beside": "print('more')"})
    lines = done.stdout.splitlines()
    for name, length in (("watched", 2), ("beside", 3)):
        begins = lines.index(f"hatch run {name}")
        assert (
            lines[begins : begins + length]
            == [
                f"hatch run {name}",
                f"output of {name}",
                "more",
            ][:length]
        )


def test_the_last_lines_are_times_in_the_order_of_the_list_and_notes(lanes: Lanes) -> None:
    note = "import os; open(os.environ['TREEFOLD_TEST_NOTES'], 'a').write('a note\\n')"
    work = "while time.process_time() < 1.1: pass"
    done = lanes(2, {"works": work, "fails": f"{note}; sys.exit(1)", "tells": note})
    works, fails, tells, last = done.stdout.splitlines()[-4:]
    assert works.startswith("hatch run works: 0:0")
    assert ", processor 0:01" in works
    assert fails.startswith("hatch run fails: 0:0")
    assert fails.endswith(", exit code 1")
    assert tells.startswith("hatch run tells: 0:0")
    assert last == "a note"


@pytest.mark.parametrize("words", [[], ["2"], ["0", "test"], ["test", "2"]])
def test_without_a_number_and_a_script_the_usage_is_told(words: list[str]) -> None:
    done = subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "usage: python tools/lanes.py COUNT SCRIPT ... [-- ARGUMENT ...]\n"


def test_the_whole_run_has_the_suite_of_every_package(repository: Path) -> None:
    table = tomllib.loads((repository / "hatch.toml").read_text(encoding="utf-8"))["envs"]
    words = shlex.split(table["default"]["scripts"]["all"])
    scripts = words[words.index("3") + 1 : words.index("--")]
    (matrix,) = table["iso"]["matrix"]
    # the server has an environment for each uvicorn, and the newest serves the integration tests
    alone = {f"iso.{package}:test" for package in matrix["package"] if package != "server"}
    others = {"orm:test", "orm:test-own", "migrations:test", "extras:test", "types", "quick"}
    others |= {"jobs:test", "server.oldest:test"}
    together = {"served", "projects", "pages", "unserved-rest"}
    assert sorted(scripts) == sorted(alone | others | together)
    packages = {path.parent.name for path in repository.glob("packages/*/pyproject.toml")}
    assert packages == {*matrix["package"], "orm", "migrations", "jobs"}
