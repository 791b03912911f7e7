"""`python tools/alone.py [PACKAGE ...] [--python VERSION ...] [-- OPTION ...]`.

Tests packages as users have them: each is built, its wheel is installed into an empty environment
with its declared requirements and nothing but wheels, and its own tests run there. Without a name
all packages are tested, without `--python` on the interpreter that runs this.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from suites import (
    ROOT,
    SUITES,
    Suite,
    build,
    distribution_of,
    module_of,
    suites_of,
    uv,
    virtual_environment,
)


def main() -> None:
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(usage=(__doc__ or "").partition("\n")[0].strip("`."))
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--python", action="append", default=[])
    chosen = parser.parse_args(words[:split])
    lines: list[str] = []
    failed = False
    with tempfile.TemporaryDirectory(prefix="alone-") as name:
        wheels = Path(name, "wheels")
        wheels.mkdir()
        for folder in SUITES:
            build(ROOT / "packages" / folder, wheels)
        constraints = Path(name, "constraints.txt")
        constraints.write_text("".join(f"{line}\n" for line in pinned(wheels)))
        for version in chosen.python or [None]:
            for number, suite in enumerate(suites_of(chosen.packages)):
                folder = Path(name, f"{version}-{number}")
                code, last = run(suite, version, folder, constraints, words[split + 1 :])
                of = f"{suite.package} ({suite.environment})"
                lines.append(f"{of}, Python {version or platform.python_version()}: {last}")
                failed |= bool(code)
    print("\nfrom wheels alone:", *lines, sep="\n")
    sys.exit(failed)


def pinned(wheels: Path) -> list[str]:
    """Return constraints by which these wheels are installed, whatever an index may hold."""
    found = {folder: next(wheels.glob(f"{module_of(folder)}-*.whl")) for folder in SUITES}
    return [f"{distribution_of(folder)} @ {wheel.as_uri()}" for folder, wheel in found.items()]


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
    where = f"import {module_of(suite.package)} as package; print(package.__file__)"
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
