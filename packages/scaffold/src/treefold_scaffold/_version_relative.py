"""`version relative`: imports of a version by its name become relative ones.

All files are read and rewritten in memory first; then each that changes is replaced in one step.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from treefold_scaffold._errors import SourceError
from treefold_scaffold._layered_tree import walk_entries
from treefold_scaffold._version_overlay import find_named_lines, replace_content, require_api
from treefold_scaffold._version_plan import choose_source_version, parse_source


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeFile:
    """A file that names its version.

    Attributes:
        path: POSIX path below the application root.
        content: its new content.
        places: number of imports that change.
        left: lines that still name the version, because they have no relative form.
    """

    path: str
    content: bytes
    places: int
    left: tuple[int, ...]


def plan_relative(app_dir: str | os.PathLike[str], version: str) -> tuple[RelativeFile, ...]:
    """Return the files of a version that name it, rewritten; nothing is written.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        version: the version, `1` or `v1`.

    Raises:
        ScaffoldError: there is no such version, or a file of it is not Python.
        OSError: a file cannot be read.
    """
    api = require_api(app_dir)
    name = choose_source_version(api, version)
    found: list[RelativeFile] = []
    for path, entry in walk_entries(api / name):
        if path.endswith(".py") and not entry.is_symlink() and entry.is_file():
            shown, source = f"Api/{name}/{path}", Path(entry.path).read_bytes()
            parse_source(source, shown)
            if find_named_lines(source, path, name):
                found.append(_make_relative(source, shown))
    return tuple(sorted(found, key=lambda one: one.path.split("/")))


def _make_relative(source: bytes, shown: str) -> RelativeFile:
    from treefold_scaffold._relative_imports import make_imports_relative

    _, version, *folders, _ = shown.split("/")
    try:
        content, places, left = make_imports_relative(source, version, folders)
    except SourceError as error:
        raise SourceError(f"{shown!r}, {error}") from error
    return RelativeFile(path=shown, content=content, places=places, left=left)


def write_relative(app_dir: str | os.PathLike[str], files: tuple[RelativeFile, ...]) -> None:
    """Write the files of `plan_relative` that change.

    Raises:
        OSError: a file cannot be written; it is as before, and those before it are changed.
    """
    for one in files:
        if one.places:
            replace_content(Path(app_dir, one.path), one.content)
