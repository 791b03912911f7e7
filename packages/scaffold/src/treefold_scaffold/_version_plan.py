"""The content of a new version, planned before anything is written.

Reads the source version completely, so that an unreadable or invalid file is an error before
anything is written. Writing is in `_version_copy`.
"""

import ast
import os
import re
import stat
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from treefold_router import Layers, method_of, version_number
from treefold_scaffold._computed_imports import find_computed_import_lines
from treefold_scaffold._errors import ScaffoldError, SourceError
from treefold_scaffold._inherited_names import name_base_version
from treefold_scaffold._layered_tree import LayeredEntry, list_effective_entries, read_layers
from treefold_scaffold._place import find_latest_version
from treefold_scaffold._templates import EMPTY_HANDLER, EMPTY_SOCKET

_VERSION = re.compile(r"v?(0|[1-9][0-9]{0,8})")


class Action(Enum):
    """Treatment of one entry of the source version."""

    FOLDER = "folder"
    COPIED = "copy"
    REWRITTEN = "rewrite"
    EMPTIED = "empty"
    LINKED = "link"
    WRITTEN = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the new version.

    Attributes:
        path: POSIX path below the version folder.
        action: its treatment.
        mode: permission bits of the source.
        content: the new content; the target of a link, as bytes; None for an unchanged copy of
            the source.
        layer: the version folder that holds the source.
        places: number of imports and uses changed to the new version.
        computed: lines of imports whose name is computed: they may still lead to another version.
    """

    path: str
    action: Action
    mode: int = 0
    content: bytes | None = None
    layer: str = ""
    places: int = 0
    computed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPlan:
    """A version to create.

    Attributes:
        source: the version that is copied, such as `v1`.
        target: the version that is made, such as `v2`.
        mode: permission bits of the version folder.
        entries: its content, each folder before its own entries.
    """

    source: str
    target: str
    mode: int
    entries: tuple[Entry, ...]


def plan_version(
    app_dir: str | os.PathLike[str], target: str, *, source: str | None = None, empty: bool = False
) -> VersionPlan:
    """Return the plan of `version create`; nothing is written.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        target: the new version, `2` or `v2`.
        source: the version to copy; the latest when None.
        empty: take over the endpoints only, each with a body that answers 501.

    Raises:
        ScaffoldError: there is such a version already or no source, or a file of the source is
            not Python. The message names the file and the line.
        RouterError: a `version.toml` is invalid.
        OSError: a file cannot be read.

    Source: interface specification, 'Versioning'.
    """
    api = Path(app_dir, "Api")
    if not api.is_dir():
        message = f"No folder 'Api' in {os.fspath(app_dir)!r}; name the root of a project"
        raise ScaffoldError(message)
    new = version_name(target)
    old = choose_source_version(api, source)
    require_unused_version(api, new)
    folder = api / old
    layers = read_layers(api)
    entries = list_effective_entries(api, old, layers)
    found = tuple(
        _plan_empty_endpoints(api, entries)
        if empty
        else plan_copied_entries(api, entries, layers, new=new)
    )
    return VersionPlan(
        source=old, target=new, mode=stat.S_IMODE(folder.stat().st_mode), entries=found
    )


def version_name(text: str) -> str:
    """Parse a version as users type it: `2` and `v2` are both `v2`.

    Raises:
        ScaffoldError: it is neither.
    """
    if (match := _VERSION.fullmatch(text)) is None:
        raise ScaffoldError(f"Version must be a number, got {text!r}; write it like '2'")
    return f"v{match[1]}"


def choose_source_version(api: Path, wanted: str | None) -> str:
    """Return the name of the version to copy: the latest unless another one is wanted.

    Raises:
        ScaffoldError: there is no such version.
    """
    if wanted is None:
        if (latest := find_latest_version(api)) is None:
            raise ScaffoldError(
                "No version to copy in 'Api'; make the first with 'treefold create v1/health get'"
            )
        return latest
    spelled = version_number(wanted) is not None and (api / wanted).is_dir()  # `v01` is a version
    name = wanted if spelled else version_name(wanted)
    if not (api / name).is_dir():
        raise ScaffoldError(f"No version {name!r} in 'Api'; 'treefold version list' shows them")
    return name


def require_unused_version(api: Path, name: str) -> None:
    """Refuse a version whose number is taken.

    Raises:
        ScaffoldError: the message names the folder.
    """
    wanted = version_number(name)
    for entry in sorted(os.listdir(api)):
        if entry.lower() == name or version_number(entry) == wanted:
            raise ScaffoldError(f"Target 'Api/{entry}' exists; choose another number or remove it")


def _plan_empty_endpoints(api: Path, entries: Sequence[LayeredEntry]) -> Iterator[Entry]:
    kept: list[Entry] = []
    for one in entries:
        path, entry = one.path, one.entry
        parts = path.split("/")
        verb = method_of(parts[-1].removesuffix(".py")) if path.endswith(".py") else None
        if verb is None or "Services" in parts[:-1] or not entry.is_file():
            continue
        body = EMPTY_SOCKET if verb == "WEBSOCKET" else EMPTY_HANDLER
        mode = stat.S_IMODE(entry.stat().st_mode)
        kept.append(
            Entry(
                path=path,
                action=Action.EMPTIED,
                mode=mode,
                content=body.encode(),
                layer=one.layer,
            )
        )
    yield from _plan_parent_folders(api, kept)
    yield from kept


def _plan_parent_folders(api: Path, kept: Sequence[Entry]) -> Iterator[Entry]:
    paths: dict[str, str] = {}
    for entry in kept:
        parts = entry.path.split("/")
        for depth in range(1, len(parts)):
            paths.setdefault("/".join(parts[:depth]), entry.layer)
    for path, layer in sorted(paths.items()):
        mode = stat.S_IMODE(os.stat(api / layer / path).st_mode)
        yield Entry(path=path, action=Action.FOLDER, mode=mode)


def plan_copied_entries(
    api: Path, entries: Sequence[LayeredEntry], layers: Layers, *, new: str
) -> Iterator[Entry]:
    """Yield the copies of entries, with the version in their imports replaced.

    A handler that converts from the base of its version names that base in its copy.

    Args:
        api: the folder `Api/`.
        entries: entries of a version, each in its layer.
        layers: what the versions inherit.
        new: the version that they are copied to.

    Raises:
        SourceError: a file is not Python; the message names the file and the line.
    """
    sources = {
        one.path: Path(one.entry.path).read_bytes()
        for one in entries
        if one.path.endswith((".py", ".pyi")) and not one.entry.is_symlink() and one.entry.is_file()
    }
    layer_of = {one.path: one.layer for one in entries}
    trees = {
        path: parse_source(source, f"Api/{layer_of[path]}/{path}")
        for path, source in sources.items()
    }
    keep_names = any(_imports_version_elsewhere(tree, layer_of[p]) for p, tree in trees.items())
    for one in entries:
        path, entry, old = one.path, one.entry, one.layer
        if entry.is_symlink():
            target = os.fsencode(_compute_link_target(api / old, entry.path))
            yield Entry(path=path, action=Action.LINKED, content=target, layer=old)
            continue
        info = entry.stat(follow_symlinks=False)
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISDIR(info.st_mode):
            yield Entry(path=path, action=Action.FOLDER, mode=mode)
        elif not stat.S_ISREG(info.st_mode):
            message = f"'Api/{old}/{path}' is neither file, folder nor link; remove it first"
            raise SourceError(message)
        else:
            content, places = None, 0
            if path in sources:
                content, places = rewrite_version_in_source(
                    sources[path], path, old=old, new=new, keep_names=keep_names
                )
                content, named = name_base_version(content, find_base(layers, old))
                places += named
            action = Action.REWRITTEN if places else Action.COPIED
            computed = find_computed_import_lines(trees[path]) if path in trees else ()
            yield Entry(
                path=path,
                action=action,
                mode=mode,
                content=content,
                layer=old,
                places=places,
                computed=computed,
            )


def find_base(layers: Layers, version: str) -> str:
    """Return the version that a version inherits from; empty for none."""
    settings = layers.settings.get(version)
    return "" if settings is None else settings.inherits


def parse_source(source: bytes, file: str) -> ast.AST:
    """Parse a file.

    Raises:
        SourceError: it is not Python; the message names the file and the line.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a string is not an error here
            return ast.parse(source)
    except SyntaxError as error:
        message = f"{file!r}, line {error.lineno or 1}: {error.msg}; mend it first"
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"{file!r}, line 1: {error or type(error).__name__}; mend it first"
    raise SourceError(message)


def _imports_version_elsewhere(tree: ast.AST, old: str) -> bool:
    """Return True if a file imports the name `v1` from a module other than `Api`."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module != "Api"
        and any(alias.name == old for alias in node.names)
        for node in ast.walk(tree)
    )


def rewrite_version_in_source(
    source: bytes, path: str, *, old: str, new: str, keep_names: bool = False
) -> tuple[bytes, int]:
    """Replace the version in the imports of one file.

    Args:
        source: the content of the file.
        path: its POSIX path below the version folder.
        old: the version in the file.
        new: the version that replaces it.
        keep_names: see `VersionRename.keep_names`.

    Returns:
        The new content, and how many places changed.

    Raises:
        ScaffoldError: libcst cannot parse the file; the message names file and line.
    """
    if old.encode() not in source or not (b"Api" in source or b"..." in source):
        return source, 0  # avoids the slow import of libcst
    from treefold_scaffold._rewrite_imports import VersionRename, rewrite_imports

    package = ("Api", old, *path.split("/")[:-1])
    try:
        rename = VersionRename(old=old, new=new, package=package, keep_names=keep_names)
        return rewrite_imports(source, rename)
    except SourceError as error:
        raise SourceError(f"'Api/{old}/{path}', {error}") from error


def _compute_link_target(folder: Path, link: str) -> str:
    """Return the target of a copied link: in the new version if it was in the old one."""
    target = os.readlink(link)
    home = os.path.realpath(folder)
    place = os.path.realpath(os.path.dirname(link))
    meant = os.path.normpath(os.path.join(place, target))
    if meant == home or meant.startswith(home + os.sep):
        return os.path.relpath(meant, place)
    return target
