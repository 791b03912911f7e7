"""`python tools/mutate_conversions.py [NAME ...]` proves that the table of types notices a missing
conversion: each mutation of `mutations.toml` is made in a copy of the ORM, and the table must fail.

A mutation that leaves the table green, or whose text is no longer in its file, fails the command.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "packages/orm/src"
TABLE = "packages/orm/tests/test_crossing.py"


@dataclass(frozen=True)
class Mutation:
    """One conversion taken out: `old` in `file` becomes `new`."""

    name: str
    file: str
    old: str
    new: str


def main() -> None:
    chosen = sys.argv[1:]
    with (Path(__file__).parent / "mutations.toml").open("rb") as file:
        every = [Mutation(name, **entry) for name, entry in tomllib.load(file).items()]
    unknown = {*chosen} - {mutation.name for mutation in every}
    if unknown:
        sys.exit(f"unknown mutations: {', '.join(sorted(unknown))}")
    if table_fails(None):
        sys.exit("the table must pass without a mutation; run it first")
    survived: list[str] = []
    for mutation in every:
        if chosen and mutation.name not in chosen:
            continue
        failed = table_fails(mutation)
        print(f"{mutation.name:44} {failed or 'SURVIVED'}", flush=True)
        if not failed:
            survived.append(mutation.name)
    if survived:
        sys.exit(f"the table does not notice: {', '.join(survived)}")


def table_fails(mutation: Mutation | None) -> str:
    """Run the table against a copy of the package; return its first failing cell, or nothing."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            mutate(copy, mutation)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                TABLE,
                "-x",
                "-q",
                "--tb=short",
                "-p",
                "no:cacheprovider",
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return ""
    if done.returncode != 1:
        sys.exit(
            f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    cells = [line for line in done.stdout.splitlines() if "cells are wrong" in line]
    lines = done.stdout.splitlines()
    return lines[lines.index(cells[0]) + 1].strip("E ") if cells else "an error outside of a cell"


def mutate(copy: Path, mutation: Mutation) -> None:
    """Change the copy."""
    path = copy / "treefold_orm" / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        sys.exit(f"{mutation.name}: {mutation.old!r} must occur once in {mutation.file}")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")


if __name__ == "__main__":
    main()
