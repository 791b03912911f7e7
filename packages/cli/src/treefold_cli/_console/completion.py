"""Completion of arguments in a shell, besides commands and options.

Reads names in the tree only; an unreadable tree offers no completion.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from treefold_cli._console.project import find_project_root
from treefold_router import METHODS, Route, RouterError, RouteTable, parameter_name, version_number


def complete_urls(ctx: Any, incomplete: str) -> list[str]:
    """Offer the URLs of the project.

    Args:
        ctx: typer's context, which knows `--app-dir` where it was typed before.
        incomplete: the word as typed so far.
    """
    return _filter_by_prefix({route.template for route in _scan_routes(ctx)}, incomplete)


def complete_paths(ctx: Any, incomplete: str) -> list[str]:
    """Offer the paths of the project as `create` takes them, such as `v1/user/[id]`."""
    slash = "/" if incomplete.startswith("/") else ""
    folders = (route.file.split("/")[:-1] for route in _scan_routes(ctx))
    paths = {
        slash + "/".join(name if parameter_name(name) else name.lower() for name in names[:depth])
        for names in folders
        for depth in range(1, len(names) + 1)
    }
    return _filter_by_prefix(paths, incomplete)


def complete_versions(ctx: Any, incomplete: str) -> list[str]:
    """Offer the versions of the project."""
    try:
        names = os.listdir(os.path.join(_resolve_root_from_context(ctx), "Api"))
    except OSError:
        return []
    versions = {name for name in names if version_number(name) is not None}
    return _filter_by_prefix(versions, incomplete)


def complete_methods(incomplete: str) -> list[str]:
    """Offer the methods, in the case that the word is typed in."""
    names = {*METHODS, "SOCKET"}
    typed = incomplete.isupper()
    return _filter_by_prefix({name if typed else name.lower() for name in names}, incomplete)


def complete_choices(*choices: str) -> Callable[[str], list[str]]:
    """Return a function that offers a few words."""

    def complete(incomplete: str) -> list[str]:
        return _filter_by_prefix(choices, incomplete)

    return complete


def _resolve_root_from_context(ctx: Any) -> str | Path:
    app_dir = ctx.params.get("app_dir") or os.environ.get("TREEFOLD_APP_DIR") or os.curdir
    return find_project_root(Path.cwd()) if app_dir == os.curdir else app_dir


def _scan_routes(ctx: Any) -> Sequence[Route]:
    try:
        return RouteTable.scan(os.path.join(_resolve_root_from_context(ctx), "Api")).routes
    except RouterError:
        return ()


def _filter_by_prefix(words: Iterable[str], incomplete: str) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))
