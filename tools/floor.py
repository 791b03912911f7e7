"""`python tools/floor.py [PACKAGE ...] [-- OPTION ...]`: suites with the lowest declared versions.

Each package is installed with its requirements at their floors (uv's `lowest-direct`) and the tools
of its hatch environment into a folder that is removed at the end, then its tests run. Without a
name all of `SUITES` do.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

SUITES = {
    "router": "iso",
    "logging": "iso",
    "http": "extras",
    "orm": "orm",
    "migrations": "migrations",
    "cli": "iso",
}
"""The hatch environment that has the test tools of each package."""
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    names, options = words[:split] or list(SUITES), words[split + 1 :]
    if unknown := set(names) - SUITES.keys():
        sys.exit(f"unknown {', '.join(sorted(unknown))}; use one of {', '.join(SUITES)}")
    environments = tomllib.loads((ROOT / "hatch.toml").read_text())["envs"]
    codes = {name: run(name, environments[SUITES[name]], options) for name in names}
    failed = [name for name, code in codes.items() if code]
    print("floors:", f"failed in {', '.join(failed)}" if failed else f"held in {', '.join(names)}")
    sys.exit(bool(failed))


def run(name: str, environment: dict[str, Any], options: list[str]) -> int:
    """Install a package at its floors and run its tests; return the exit code."""
    with tempfile.TemporaryDirectory(prefix=f"floor-{name}-") as folder:
        python = Path(folder) / "bin" / "python"
        uv("venv", "--quiet", "--python", sys.executable, folder)
        members = environment["workspace"]["members"]
        installed = [item for member in members for item in requirement(member, name)]
        tools = [*environment["dependencies"], "pytest-xdist==3.8.0"]
        floors = ("--resolution", "lowest-direct")
        uv("pip", "install", "--quiet", "--python", os.fspath(python), *floors, *installed, *tools)
        print(f"\n== {name}", flush=True)
        uv("pip", "list", "--python", os.fspath(python), "--exclude-editable")
        tests = [f"packages/{name}/tests", "-p", "no:valkey", "-n", "2", "--dist", "loadfile"]
        if environment["template"] == "iso":
            tests.append("--ignore-glob=*/with_extras")
        search = os.pathsep.join([os.fspath(python.parent), os.environ["PATH"]])
        command = [python, "-m", "pytest", "-q", *tests, *options]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": search}).returncode


def requirement(member: Any, name: str) -> list[str]:
    """Return the arguments that install a member of a workspace from its folder."""
    path: str = member if isinstance(member, str) else member["path"]
    features: list[str] = [] if isinstance(member, str) else member["features"]
    extras = f"[{','.join(features)}]" if features else ""
    return ["-e", path.replace("{matrix:package}", name) + extras]


def uv(*arguments: str) -> None:
    subprocess.run(["uv", *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
