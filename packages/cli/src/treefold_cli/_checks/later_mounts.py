"""Mounts that only run code makes, such as a startup hook, as far as the sources tell.

Reads sources; imports and runs nothing. Mounts made while boot files are read are known without it.
"""

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._checks.sources import parse_source, project_files

if TYPE_CHECKING:
    from treefold_http import Application

_APPLICATIONS = ("app", "application")
"""What the application is called: other objects have a method `mount` too."""


@dataclass(frozen=True, slots=True)
class LaterMount:
    """One call of `mount` in a function.

    Attributes:
        prefix: the path it mounts at, such as `/static`; None if it is computed.
        place: file and line, such as `hooks.py:12`.
    """

    prefix: str | None
    place: str


def find_project_mount_calls(root: Path) -> Iterator[LaterMount]:
    """Yield the calls of a method `mount` in the functions of a project, outside of its tests."""
    for file in project_files(root):
        name = os.fspath(file.relative_to(root))
        is_test = name.startswith(("Tests", "Api")) or file.match("test_*.py")
        if file.suffix != ".py" or is_test:
            continue
        source = file.read_bytes()
        if b".mount(" in source:
            yield from _find_mount_calls(source, name)


def describe_unserved_prefixes(app: "Application") -> list[str]:
    """Return the errors of `under` prefixes that no route, and no known later mount, serves.

    A mount at a computed path may serve any of them: then none is an error.

    Args:
        app: a booted application, whose startup hooks have not run.
    """
    if not app.project.unserved:
        return []
    from treefold_http.extensions import describe_uncovered, find_unserved

    later = [mount.prefix for mount in find_project_mount_calls(app.root)]
    if None in later:
        return []
    unserved = find_unserved(app, app.project, filter(None, later))
    entries = app.project.boot_files.middlewares
    return [describe_uncovered(app, app.table, entries, each) for each in unserved]


def _find_mount_calls(source: bytes, name: str) -> Iterator[LaterMount]:
    tree = parse_source(source)
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id=receiver) | ast.Attribute(attr=receiver), attr="mount"
                ),
                args=[path, _],
            ) if receiver.lower() in _APPLICATIONS:
                text = path.value if isinstance(path, ast.Constant) else None
                prefix = "/" + text.strip("/") if isinstance(text, str) else None
                yield LaterMount(prefix, f"{name}:{node.lineno}")
            case _:
                pass
