"""`python tools/floor.py [PACKAGE ...] [OPTION ...]`: suites with the lowest declared versions.

Each package is installed with its requirements at their floors (uv's `lowest-direct`) and the tools
of its hatch environment into a folder that is removed at the end, then its tests run. Packages of
this repository are installed from the tag of the lowest version in the range, or from the checkout
if that is the version here. Without a name all packages are tested. Options are for pytest.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

from archives import unpack
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from suites import (
    ROOT,
    SUITES,
    Suite,
    arguments,
    distribution_of,
    suites_of,
    uv,
    virtual_environment,
)

TIED = {"opentelemetry-sdk": "opentelemetry-api"}
"""Test tools of the same version as a requirement: their pin would lift that one off its floor."""


def main() -> None:
    names, _, options = arguments(sys.argv[1:])
    suites = {suite.package: suite for suite in suites_of(names)}  # the one with the most extras
    lines: list[str] = []
    failed = False
    for name, suite in suites.items():
        code, last = run(suite, options)
        lines.append(f"{name}: {last}")
        failed |= bool(code)
    print("\nwith the lowest declared versions:", *lines, sep="\n")
    sys.exit(failed)


def run(suite: Suite, options: list[str]) -> tuple[int, str]:
    """Install a package at its floors and run its tests; return the exit code and the figures."""
    with tempfile.TemporaryDirectory(prefix=f"floor-{suite.package}-") as name:
        python = virtual_environment(Path(name, "environment"))
        extras = dict(suite.members)
        floors = floors_of(suite.package, extras.get(suite.package, []))
        siblings = {folder for folder in SUITES if distribution_of(folder) in floors}
        installed: list[str] = []
        for folder in [suite.package, *sorted(siblings | extras.keys() - {suite.package})]:
            place = source(folder, floors.get(distribution_of(folder)), Path(name))
            of = extras.get(folder)
            installed += ["-e", f"{place}[{','.join(of)}]" if of else os.fspath(place)]
        tools = [relaxed(tool, floors) for tool in suite.tools]
        lowest = ("--quiet", "--no-sources", "--resolution", "lowest-direct")
        uv("pip", "install", "--python", python, *lowest, *installed, *tools)
        print(f"\n== {suite.package}", flush=True)
        if above := above_their_floors(floors, python):
            return 1, f"not at their floors: {', '.join(above)}"
        return suite.run(python, options)


def floors_of(package: str, extras: list[str]) -> dict[str, str]:
    """Return the lowest declared version of each requirement that this machine needs."""
    manifest = (ROOT / "packages" / package / "pyproject.toml").read_text()
    project = tomllib.loads(manifest)["project"]
    optional = project.get("optional-dependencies", {})
    lines = [
        *project.get("dependencies", []),
        *(line for name in extras for line in optional[name]),
    ]
    floors: dict[str, str] = {}
    for requirement in map(Requirement, lines):
        if requirement.marker and not requirement.marker.evaluate():
            continue
        lowest = [each.version for each in requirement.specifier if each.operator in (">=", "==")]
        if not lowest:
            sys.exit(f"{package}: {requirement} has no lowest version; declare one with '>='")
        floors[canonicalize_name(requirement.name)] = lowest[0]
    return floors


def source(folder: str, floor: str | None, temporary: Path) -> Path:
    """Return a folder with the lowest version of a package: the checkout, or one from its tag."""
    here = ROOT / "packages" / folder
    about = next(here.glob("src/*/__about__.py")).read_text(encoding="utf-8")
    if floor is None or f'"{floor}"' in about:
        return here
    command = ["git", "archive", f"{folder}-v{floor}", f"packages/{folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    if done.returncode:
        sys.exit(
            f"{folder} {floor} has no tag {folder}-v{floor}; raise the floor or fetch the tags"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        unpack(archive, temporary)
    return temporary / "packages" / folder


def relaxed(tool: str, floors: dict[str, str]) -> str:
    name = tool.partition("==")[0]
    tied = TIED.get(name, name)  # a tool may be a requirement too
    return f"{name}>={floors[tied]}" if tied in floors else tool


def above_their_floors(floors: dict[str, str], python: Path) -> list[str]:
    command = ["uv", "pip", "list", "--format", "json", "--python", os.fspath(python)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions: dict[str, str] = {
        canonicalize_name(each["name"]): each["version"] for each in json.loads(listed)
    }
    return [
        f"{name} {versions[name]} instead of {floor}"
        for name, floor in sorted(floors.items())
        if Version(versions[name]) != Version(floor)
    ]


if __name__ == "__main__":
    main()
