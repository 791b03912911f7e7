"""Make a condition true: a place for the code, variables, a clock, a user. All below one folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from suites import ROOT

from elsewhere.conditions import Condition
from elsewhere.needs import CONFINE, becomes_nobody, starting_interpreter

CLOCK = Path(__file__).with_name("clock_shift.c")
OF_OUR_HATCH = ("HATCH_", "PYTHON", "PYTEST_", "XDG_", "VIRTUAL_ENV", "TREEFOLD_")
"""How variables begin that a user who opens a terminal does not have."""

SERVERS = ("TREEFOLD_TEST_POSTGRES", "TREEFOLD_TEST_REDIS")
"""Variables that name servers of the machine."""

TRAP = "raise SystemExit('A module of the foreign environment was imported')\n"


@dataclass(frozen=True, slots=True)
class World:
    """Where and how the suites of a condition run.

    Attributes:
        root: the folder with the code.
        starts: the words before those of a suite: an interpreter and `tools/run.py`.
        variables: of the suites.
        git: the variables by which git finds out what has changed in `root`.
        user: the options of `confine.py` that preparations have too.
        kept: folders in which nothing may change.
    """

    condition: Condition
    root: Path
    starts: tuple[str, ...]
    variables: Mapping[str, str]
    git: Mapping[str, str]
    user: tuple[str, ...] = ()
    kept: tuple[Path, ...] = ()

    def prepare(self, words: list[str]) -> int:
        """Make the environment of a suite: with a network, and without any shift of the clock."""
        matrix = words[:1] if words[0].startswith("+") else []
        environment, colon, _ = words[len(matrix)].partition(":")
        named = f"{environment}:" if colon else ""
        return self._run([*matrix, f"{named}python", "-c", "pass"], self.user, self.variables)

    def run(self, words: list[str], limit: float) -> int:
        """Run a suite; return its exit code.

        Raises:
            TimeoutExpired: it did not end within as many seconds.
        """
        variables = dict(self.variables)
        if self.condition.clock:
            now = datetime.now(UTC)
            variables["CLOCK_SHIFT"] = str(int((self.condition.clock(now) - now).total_seconds()))
        return self._run(words, (*self.user, *self.condition.confine), variables, limit)

    def _run(
        self,
        words: list[str],
        options: tuple[str, ...],
        variables: Mapping[str, str],
        limit: float | None = None,
    ) -> int:
        command = [sys.executable, CONFINE, *options, "--", *self.starts, *words]
        done = subprocess.run(command, cwd=self.root, env=variables, timeout=limit, check=False)
        return done.returncode


def make_world(condition: Condition, folder: Path) -> World:
    """Make all that a condition needs below an empty folder."""
    folder.chmod(0o755)
    temporary = folder / "tmp"
    temporary.mkdir()
    is_fresh = condition.place != "checkout"
    variables = fresh_variables(condition, folder) if is_fresh else dict(os.environ)
    variables |= {**condition.variables, "TMPDIR": str(temporary)}
    if not condition.servers:
        for name in SERVERS:
            variables.pop(name, None)
    if condition.clock:
        variables |= {"LD_PRELOAD": str(build_clock(folder)), "TREEFOLD_TEST_SERVICES": "own"}
        variables["CLOCK_SHIFT"] = "0"
    if condition.language:
        variables["LOCPATH"] = str(build_locale(condition.language, folder))
    if not is_fresh:
        # that of no environment, as a user has it
        python = getattr(sys, "_base_executable", sys.executable)
        return World(condition, ROOT, (python, "tools/run.py"), variables, variables)

    root = folder / ("treefold für uns" if condition.plain_user else "treefold")
    git = make_place(condition.place, root, folder)
    python = starting_interpreter(condition) or sys.exit(f"{condition.name}: no interpreter")
    kept: tuple[Path, ...] = ()
    if condition.foreign_environment:
        foreign = make_foreign_environment(python, folder)
        python, kept = foreign / "bin" / "python", (foreign,)
        variables |= {"VIRTUAL_ENV": str(foreign)}
        variables["PATH"] = f"{python.parent}:{variables['PATH']}"
    user: tuple[str, ...] = ()
    if becomes_nobody(condition):
        user = ("--user", "nobody")
        for each in (root, temporary, Path(variables["HOME"])):
            subprocess.run(["chown", "-R", "nobody:", each], check=True)
    return World(condition, root, (str(python), "tools/run.py"), variables, git, user, kept)


# Variables


def fresh_variables(condition: Condition, folder: Path) -> dict[str, str]:
    """Return the variables of a user with an empty HOME, who shares what has been downloaded."""
    home = folder / ("Zuhause für uns" if condition.plain_user else "home")
    home.mkdir()
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in SERVERS or not name.startswith(OF_OUR_HATCH)
    }
    folders = variables["PATH"].split(":")
    outside = [each for each in folders if not Path(each).with_name("pyvenv.cfg").exists()]
    variables |= {"HOME": str(home), "PATH": ":".join(outside)}
    if not becomes_nobody(condition):
        done = subprocess.run(["uv", "cache", "dir"], capture_output=True, text=True, check=True)
        variables["UV_CACHE_DIR"] = done.stdout.strip()
    return variables


def build_clock(folder: Path) -> Path:
    library = folder / "clock_shift.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, CLOCK, "-ldl"]
    subprocess.run(command, check=True)
    return library


def build_locale(name: str, folder: Path) -> Path:
    """Make a locale for LOCPATH, so that none has to be installed."""
    place = folder / "locales"
    place.mkdir()
    made = place / f"{name}.UTF-8"
    subprocess.run(["localedef", "-i", name, "-f", "UTF-8", made], check=True)
    return place


# Places


def make_place(kind: str, root: Path, folder: Path) -> dict[str, str]:
    """Put the last commit into a folder; return the variables by which git compares it."""
    if kind == "archive":
        root.mkdir()
        packed = folder / "archive.tar"
        subprocess.run(["git", "archive", "-o", packed, "HEAD"], cwd=ROOT, check=True)
        subprocess.run(["tar", "-xf", packed], cwd=root, check=True)
        outside = {"GIT_DIR": str(folder / "git"), "GIT_WORK_TREE": str(root)}
        for command in (["init", "--quiet"], ["add", "--all"]):
            subprocess.run(["git", *command], cwd=root, env=os.environ | outside, check=True)
        return os.environ | outside
    depth = ["--depth", "1"] if kind == "shallow clone" else []
    subprocess.run(["git", "clone", "--quiet", *depth, ROOT.as_uri(), root], check=True)
    # the user who compares may be another one than the user who owns the clone
    trusted = {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"}
    return os.environ | {f"GIT_CONFIG_{name}": value for name, value in trusted.items()}


def make_foreign_environment(python: Path, folder: Path) -> Path:
    """Make an environment whose modules must not be imported: those that a mistake would take."""
    foreign = folder / "foreign"
    subprocess.run([python, "-m", "venv", foreign], check=True)
    (modules,) = foreign.glob("lib/python*/site-packages")
    for name in ("hatch", "pytest", "treefold", "treefold_http"):
        (modules / f"{name}.py").write_text(TRAP)
    program = foreign / "bin" / "pytest"
    shutil.copy("/bin/false", program)
    return foreign
