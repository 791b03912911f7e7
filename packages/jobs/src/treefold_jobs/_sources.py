"""Does a project use jobs: one of its modules imports them. The tree is the only declaration."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

MODULES = frozenset({"treefold.jobs", "treefold_jobs", "treefold_orm.jobs"})
_PARENTS = frozenset(name.partition(".")[0] for name in MODULES)
_PASSED_OVER = frozenset({"Tests", "tests", "migrations", "node_modules", "__pycache__"})


def uses_jobs(root: Path) -> bool:
    """Return True if a module below the root of a project imports jobs, by any of their names."""
    return any(map(_imports_jobs, _find_python_files(str(root))))


def _find_python_files(folder: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    # a virtual environment: the modules of treefold in it import jobs, whatever the project does
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.name.endswith(".py") and entry.is_file():
            yield entry.path
        elif entry.name not in _PASSED_OVER and entry.is_dir(follow_symlinks=False):
            # a link to a folder above would lead around in circles, hence follow_symlinks=False
            yield from _find_python_files(entry.path)


def _imports_jobs(path: str) -> bool:
    try:
        source = Path(path).read_bytes()
        # two searches settle most modules, and cost a fraction of parsing them
        if b"jobs" not in source or b"treefold" not in source:
            return False
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return False  # the boot reports it
    return any(map(_is_jobs_import, ast.walk(tree)))


def _is_jobs_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name in MODULES for alias in node.names)
    if isinstance(node, ast.ImportFrom) and not node.level:
        has_name = any(alias.name == "jobs" for alias in node.names)
        return node.module in MODULES or (node.module in _PARENTS and has_name)
    return False
