"""Which names of `treefold.auth` the sources of a project use; read, never imported."""

import ast
from collections.abc import Iterator
from pathlib import Path

_PACKAGES = ("treefold", "treefold_http")
_FOLDERS = ("Api", "Middleware", "Models", "Services", "Utils")


def find_used_auth_names(root: Path) -> dict[str, str]:
    """Return each name that is used, with the file and line of the first use."""
    found: dict[str, str] = {}
    for path in _find_source_files(root):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # `check` reports this file
        for name, line in _find_auth_names(tree):
            found.setdefault(name, f"{path.relative_to(root).as_posix()}:{line}")
    return found


def _find_source_files(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob("*.py"))
    for folder in _FOLDERS:
        yield from sorted((root / folder).rglob("*.py"))


def _find_auth_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                if node.module in [f"{package}.auth" for package in _PACKAGES]:
                    yield alias.name, node.lineno
                elif node.module in _PACKAGES and alias.name == "auth":
                    modules.add(alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in [f"{package}.auth" for package in _PACKAGES]:
                    modules.add(alias.asname or alias.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
            yield node.attr, node.lineno
