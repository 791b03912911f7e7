"""Run the tests of some files, or those near a module, each in the environment that it needs.

    hatch run t packages/orm/tests/test_saving.py::test_a_copy    what is named
    hatch run t packages/orm/src/treefold_orm/_drivers/pool.py    the tests near a module
    hatch run t --changed [BASE]                                  near each file of a diff
    hatch run t PATH ... -- -x --lf                               with arguments of pytest

Near are at most five files of the same package: those that import the module, that have its name in
theirs, or that name what it defines, the nearest first. A module that no test knows by itself is
tested through the modules that import it. What a change breaks far away only whole suites find.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from changed import changed_files
from repository import ROOT

ENOUGH, MOST = 2, 4
"""The files of tests near one module: with fewer, those near its importers count too."""
SLOW = (
    "_random.py",
    "test_crossing.py",
    "test_crossing_nested.py",
    "test_django_differential.py",
    "test_each_step_fails.py",
    "test_faults.py",
    "test_long_locks.py",
    "test_random_histories.py",
)
"""Ends of files that search for minutes, which only those get who name them."""
IMPORTS, NAMED = 8, 4
"""The points of a file of tests that imports the module, or has its name; each public name of the
module in its code is one."""


def main() -> None:
    """Run the chosen tests, environment by environment; end with 1 if one of them fails."""
    words = sys.argv[1:]
    options = words[words.index("--") + 1 :] if "--" in words else []
    words = words[: words.index("--")] if "--" in words else words
    if words[:1] == ["--changed"]:
        found = changed_files(ROOT, *words[1:2])
        words = [file for file in found if file.endswith(".py") and (ROOT / file).exists()]
    elif not words:
        sys.exit("usage: hatch run t PATH ... | --changed [BASE]   [-- ARGUMENTS OF PYTEST]")
    chosen: dict[str, dict[str, None]] = {}
    for word in words:
        for test in find_tests(word):
            chosen.setdefault(choose_environment(test), {})[test] = None
    if not chosen:
        sys.exit(
            f"No test is near {', '.join(words) or 'the change'}; `hatch run iso.PACKAGE:test`, or "
            "orm:test, migrations:test and jobs:test, run all of a package, and `hatch run served` "
            "its servers"
        )
    failed = False
    for environment, tests in chosen.items():
        print(f"{environment}: {' '.join(tests)}", flush=True)
        command = ["hatch", "run", f"{environment}:pytest", *tests, "-p", "no:valkey", "-q"]
        failed |= subprocess.run([*command, *options], cwd=ROOT, check=False).returncode != 0
    sys.exit(failed)


def find_tests(word: str) -> Iterable[str]:
    """Return tests for a file of tests, a folder of them, a test by its name, or a module.

    Ends the program where there is no such file.
    """
    path = (Path.cwd() / word.partition("::")[0]).resolve()
    if not path.exists() or not path.is_relative_to(ROOT):
        sys.exit(f"{word} is no file of this repository")
    place = path.relative_to(ROOT).as_posix()
    if "src" in path.parts:
        return find_near_tests(path) if path.suffix == ".py" else ()
    if path.is_dir() or path.name.startswith("test_"):
        return [place + word[len(word.partition("::")[0]) :]]
    # a helper of tests: those beside it that import it
    beside = [file for file in path.parent.rglob("test_*.py") if path.stem in read_words(file)]
    return [file.relative_to(ROOT).as_posix() for file in beside[:MOST]]


def find_near_tests(path: Path) -> list[str]:
    """Return the nearest files of tests of a module, the nearest first."""
    package = ROOT / "packages" / path.relative_to(ROOT).parts[1]
    tests = [file for file in package.rglob("test_*.py") if not file.name.endswith(SLOW)]
    near: list[str] = []
    modules, seen = [path], {path}
    # those that know the module itself come first, then those that know a module which imports it
    while modules and len(near) < ENOUGH:
        points = {file: sum(count_points(file, module) for module in modules) for file in tests}
        found = sorted((file for file in tests if points[file]), key=lambda file: -points[file])
        near += [file.relative_to(ROOT).as_posix() for file in found]
        names = {name_module(module) for module in modules}
        modules = [
            file
            for file in (package / "src").rglob("*.py")
            if file not in seen and names & read_imports(file)
        ]
        seen.update(modules)
    return list(dict.fromkeys(near))[:MOST]


def count_points(test: Path, module: Path) -> int:
    """Return how near a file of tests is to a module; 0 where it does not know it."""
    name = module.parent.name if module.stem == "__init__" else module.stem
    word = name.strip("_").removesuffix("s")
    return (
        IMPORTS * (name_module(module) in read_imports(test))
        + NAMED * (word in test.stem)
        + len(list_public_names(module) & read_words(test))
    )


def name_module(path: Path) -> str:
    """Return the name by which a module is imported."""
    parts = path.with_suffix("").parts
    return ".".join(parts[parts.index("src") + 1 :]).removesuffix(".__init__")


@cache
def read_imports(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, also those of which it imports a name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


@cache
def read_words(path: Path) -> frozenset[str]:
    """Return the names in the code of a file, and its imported modules."""
    tree = ast.parse(path.read_bytes())
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(
        words
        | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        | {part for name in read_imports(path) for part in name.split(".")}
    )


@cache
def list_public_names(path: Path) -> frozenset[str]:
    """Return what a module defines for others."""
    return frozenset(_iterate_public_names(ast.parse(path.read_bytes())))


def _iterate_public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        defines = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if defines and not node.name.startswith("_"):
            yield node.name


def choose_environment(test: str) -> str:
    """Return the environment of `hatch.toml` that a file of tests needs."""
    kind, package, *rest = test.partition("::")[0].split("/")
    if kind != "packages" or (package == "cli" and rest[1:2] == ["with_extras"]):
        return "default"
    if package in ("orm", "migrations", "jobs"):
        return package
    if package == "server":
        return "server.newest"
    if package == "http" and rest[1:2] and rest[1] in EXTRAS:
        return "extras"
    return f"iso.{package}"


EXTRAS = ("with_extras", "auth", "openapi", "_types", "_bodies", "_responses", "_json")
"""The folders of tests of http in which an extra changes something."""

if __name__ == "__main__":
    main()
