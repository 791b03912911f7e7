"""Test suites of single packages, outside of hatch: how to build, install and run one.

`floor.py` and `alone.py` use this module. The test tools of a suite are those of its environment in
`hatch.toml`, so that they are pinned in one place. `python tools/suites.py PACKAGE FOLDER` builds
the sdist and the wheel of a package into a folder.
"""

import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from archives import unpack

ROOT = Path(__file__).resolve().parent.parent
XDIST = "pytest-xdist==3.8.0"

SUITES: dict[str, list[str]] = {
    "router": ["iso"],
    "contract": ["iso"],
    "logging": ["iso"],
    "docs-ui": ["iso"],
    "scaffold": ["iso"],
    "orm": ["orm"],
    "migrations": ["migrations"],
    "jobs": ["jobs"],
    "http": ["iso", "extras"],
    "server": ["iso", "server"],
    "cli": ["iso"],
    "treefold": ["iso"],
}
"""The hatch environments in which each package is tested; the last one has the most extras."""

INTEGRATION = "integration"
"""The name of the suite of whole applications, among those of packages."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one package, or of whole applications, in one hatch environment."""

    package: str
    environment: str

    @property
    def tools(self) -> list[str]:
        """The requirements of the tests, as pinned in `hatch.toml`."""
        table = environments()[self.environment]
        extra = table.get("overrides", {}).get("matrix", {}).get("package", {})
        chosen = [
            entry["value"]
            for entry in extra.get("extra-dependencies", [])
            if self.package in entry["if"]
        ]
        return list(dict.fromkeys([*table["dependencies"], *chosen, XDIST]))

    @property
    def members(self) -> list[tuple[str, list[str]]]:
        """The packages that the environment installs: the folder and the extras of each."""
        found: list[tuple[str, list[str]]] = []
        for member in environments()[self.environment]["workspace"]["members"]:
            path: str = member if isinstance(member, str) else member["path"]
            features: list[str] = [] if isinstance(member, str) else member.get("features", [])
            folder = path.replace("{matrix:package}", self.package)
            found.append((folder.removeprefix("packages/"), features))
        return found

    def run(self, python: Path, options: list[str]) -> tuple[int, str]:
        """Run the tests with an interpreter; return the exit code and the last line of pytest."""
        tests = ["packages/cli/tests/with_extras", "tests-integration"]
        if self.package != INTEGRATION:
            tests = [f"packages/{self.package}/tests", "-n", "2", "--dist=loadfile"]
        if self.environment == "iso":
            tests.append("--ignore-glob=*/with_extras")
        search = os.pathsep.join([os.fspath(python.parent), os.environ["PATH"]])
        outside = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS")
        variables = {k: v for k, v in os.environ.items() if k not in outside} | {"PATH": search}
        last = ""
        with subprocess.Popen(
            [python, "-m", "pytest", "-p", "no:valkey", *tests, *options],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=heed_signals if os.name == "posix" else None,
        ) as tested:
            for line in tested.stdout or ():
                print(line, end="", flush=True)
                last = line.strip("= \n") or last
        return tested.returncode, last


def heed_signals() -> None:
    """Undo what a shell ignores for a program in the background: tests send these signals."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@cache
def environments() -> dict[str, Any]:
    return tomllib.loads((ROOT / "hatch.toml").read_text())["envs"]


def arguments(words: list[str], *known: str) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """Split words into packages, values of known options, and options of pytest."""
    names: list[str] = []
    values: dict[str, list[str]] = {name: [] for name in known}
    rest = list(words)
    while rest and (not rest[0].startswith("-") or rest[0] in values):
        word = rest.pop(0)
        if word not in values:
            names.append(word)
        elif rest:
            values[word].append(rest.pop(0))
        else:
            sys.exit(f"{word} needs a value")
    return names, values, rest[1:] if rest[:1] == ["--"] else rest


def suites_of(names: list[str]) -> list[Suite]:
    """Return the suites of some packages, of all without a name."""
    known = SUITES | {INTEGRATION: ["default"]}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"Unknown package {', '.join(unknown)}; use one of {', '.join(known)}")
    return [Suite(name, each) for name in names or SUITES for each in known[name]]


def distribution_of(folder: str) -> str:
    return folder if folder == "treefold" else f"treefold-{folder}"


def module_of(folder: str) -> str:
    return distribution_of(folder).replace("-", "_")


def virtual_environment(folder: Path, version: str | None = None) -> Path:
    """Make an empty environment and return its interpreter.

    Args:
        version: such as "3.12"; this interpreter's without it. Those of pyenv are found too.
    """
    variables = dict(os.environ)
    if version and (known := pyenv_versions(version)):
        variables["PYENV_VERSION"] = ":".join(known)
    uv("venv", "--quiet", "--python", version or sys.executable, folder, variables=variables)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def pyenv_versions(version: str) -> list[str]:
    try:
        listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True)
    except OSError:
        return []
    return [each for each in listed.stdout.split() if each.startswith(f"{version}.")]


def build(folder: Path, destination: Path) -> Path:
    """Build the sdist of a package, and from that sdist its wheel; return the wheel."""
    hatchling("sdist", folder, destination)
    name = re.escape(module_of(folder.name))
    (sdist,) = [p for p in destination.glob("*.tar.gz") if re.match(rf"{name}-\d", p.name)]
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(sdist) as archive:
            unpack(archive, unpacked)
        hatchling("wheel", Path(unpacked, sdist.name.removesuffix(".tar.gz")), destination)
    (wheel,) = destination.glob(f"{module_of(folder.name)}-*.whl")
    return wheel


def hatchling(target: str, folder: Path, destination: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", destination]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"No {target} of {folder.name}:\n{done.stdout}{done.stderr}")


def uv(*arguments: str | Path, variables: dict[str, str] | None = None) -> None:
    subprocess.run(["uv", *arguments], cwd=ROOT, env=variables, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in SUITES:
        sys.exit("usage: python tools/suites.py PACKAGE FOLDER")
    Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    print(build(ROOT / "packages" / sys.argv[1], Path(sys.argv[2]).resolve()))
