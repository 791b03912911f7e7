"""`python tools/alone.py [PACKAGE ...] [--python VERSION ...] [--dist FOLDER] [OPTION ...]`.

Tests packages as users have them: each is built, its wheel is installed into an empty environment
with its declared requirements and nothing but wheels, and its own tests run there. The package
`integration` stands for the tests of whole applications, with all wheels. Without a name all others
are tested, without `--python` on the interpreter that runs this. With `--dist` nothing is built:
the wheels in the folder are tested, and all others come from the package index. Any other option,
and what follows it, is for pytest.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from suites import (
    INTEGRATION,
    ROOT,
    SUITES,
    Suite,
    arguments,
    build,
    distribution_of,
    module_of,
    suites_of,
    uv,
    virtual_environment,
)


def main() -> None:
    names, chosen, options = arguments(sys.argv[1:], "--python", "--dist")
    suites = suites_of(names)
    lines: list[str] = []
    failed = False
    with tempfile.TemporaryDirectory(prefix="alone-") as name:
        wheels = Path(chosen["--dist"][-1] if chosen["--dist"] else Path(name, "wheels"))
        if not chosen["--dist"]:
            wheels.mkdir()
            for folder in SUITES:
                build(ROOT / "packages" / folder, wheels)
        constraints = Path(name, "constraints.txt")
        constraints.write_text("".join(f"{line}\n" for line in pinned(wheels)))
        for version in chosen["--python"] or [None]:
            for number, suite in enumerate(suites):
                folder = Path(name, f"{version}-{number}")
                code, last = run(suite, version, folder, constraints, options)
                of = f"{suite.package} ({suite.environment})"
                lines.append(f"{of}, Python {version or platform.python_version()}: {last}")
                failed |= bool(code)
    print("\nfrom wheels alone:", *lines, sep="\n")
    sys.exit(failed)


def pinned(wheels: Path) -> list[str]:
    """Return constraints by which these wheels are installed, whatever an index may hold."""
    found = [(each, list(wheels.glob(f"{module_of(each)}-*.whl"))) for each in SUITES]
    if not any(files for _, files in found):
        sys.exit(f"There is no wheel of treefold in {wheels}; build one with 'hatch run build'")
    return [
        f"{distribution_of(each)} @ {file.resolve().as_uri()}"
        for each, files in found
        for file in files
    ]


def run(
    suite: Suite, version: str | None, folder: Path, constraints: Path, options: list[str]
) -> tuple[int, str]:
    """Install the wheels of a suite and run its tests; return the exit code and the figures."""
    python = virtual_environment(folder, version)
    wanted = [
        distribution_of(member) + (f"[{','.join(extras)}]" if extras else "")
        for member, extras in suite.members
    ]
    only = ("--only-binary", ":all:", "--constraint", constraints)
    uv("pip", "install", "--quiet", "--python", python, *only, *wanted, *suite.tools)
    module = "treefold" if suite.package == INTEGRATION else module_of(suite.package)
    where = f"import {module} as package; print(package.__file__)"
    done = subprocess.run(
        [python, "-c", where], cwd=folder, env=clean(), capture_output=True, text=True, check=True
    )
    if not Path(done.stdout.strip()).is_relative_to(folder.resolve()):
        sys.exit(f"{suite.package} is imported from {done.stdout.strip()}, not from its wheel")
    print(f"\n== {suite.package} ({suite.environment}) {version or ''}", flush=True)
    return suite.run(python, options)


def clean() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


if __name__ == "__main__":
    main()
