"""`version create --overlay` and `version flatten`: to a version that inherits, and back to a copy.

    version create 2 --overlay     Api/v2/version.toml with `inherits = "v1"`, no other file
    version flatten 2              the inherited files as files of Api/v2, without `inherits`

Flattening adds files first, each the equal of what is inherited, and removes `inherits` and the
marks last: at every moment the version answers as before, so a killed run can be repeated.
"""

import contextlib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treefold_router import Layers
from treefold_scaffold._errors import ScaffoldError, SourceError
from treefold_scaffold._inherited_names import name_base_version
from treefold_scaffold._layered_tree import (
    GONE,
    VERSION_FILE,
    LayeredEntry,
    list_effective_entries,
    read_layers,
    walk_entries,
)
from treefold_scaffold._version_copy import lock_api, write_entry
from treefold_scaffold._version_plan import (
    Action,
    Entry,
    VersionPlan,
    choose_source_version,
    find_base,
    parse_source,
    plan_copied_entries,
    require_unused_version,
    version_name,
)

_INHERITS = re.compile(rb"^[ \t]*([\"']?)inherits\1[ \t]*=.*(\r?\n|\Z)", re.MULTILINE)


def plan_overlay(
    app_dir: str | os.PathLike[str], target: str, *, source: str | None = None
) -> VersionPlan:
    """Return the plan of a version that inherits another one; nothing is written.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        target: the new version, `2` or `v2`.
        source: the version to inherit; the latest when None.

    Raises:
        ScaffoldError: there is such a version already or no source, or a file of the source names
            its version in an import.
        RouterError: a `version.toml` is invalid.
        OSError: a file cannot be read.
    """
    api = require_api(app_dir)
    new = version_name(target)
    old = choose_source_version(api, source)
    require_unused_version(api, new)
    entries = list_effective_entries(api, old, read_layers(api))
    _require_inheritable(entries, old, new)
    content = f'inherits = "{old}"\n'.encode()
    entry = Entry(path=VERSION_FILE, action=Action.WRITTEN, mode=0o644, content=content)
    mode = stat.S_IMODE((api / old).stat().st_mode)
    return VersionPlan(source=old, target=new, mode=mode, entries=(entry,))


def require_api(app_dir: str | os.PathLike[str]) -> Path:
    """Return the folder `Api/` of a project.

    Raises:
        ScaffoldError: there is none.
    """
    api = Path(app_dir, "Api")
    if not api.is_dir():
        message = f"No folder 'Api' in {os.fspath(app_dir)!r}; name the root of a project"
        raise ScaffoldError(message)
    return api


def _require_inheritable(entries: Sequence[LayeredEntry], old: str, new: str) -> None:
    found = list(_find_version_names(entries))
    if not found:
        return
    (file, line), others = found[0], len(found) - 1
    more = f", and {others} more {'file' if others == 1 else 'files'}," if others else ""
    layer = file.split("/")[1]
    raise ScaffoldError(
        f"{file!r}, line {line}{more} {'import' if others else 'imports'} from {layer} by name, so"
        f" {new} cannot inherit {old}; run 'treefold version relative {layer[1:]}' first"
    )


def _find_version_names(entries: Sequence[LayeredEntry]) -> Iterator[tuple[str, int]]:
    """Yield each file that names its version in an import, and the first line that does."""
    for one in entries:
        if not one.path.endswith(".py") or one.entry.is_symlink() or not one.entry.is_file():
            continue
        lines = find_named_lines(Path(one.entry.path).read_bytes(), one.path, one.layer)
        if lines:
            yield f"Api/{one.layer}/{one.path}", lines[0]


def find_named_lines(source: bytes, path: str, version: str) -> tuple[int, ...]:
    """Return the lines of a file that name its version in an import.

    Args:
        source: its content.
        path: its POSIX path below the version folder.
        version: the version.

    Raises:
        SourceError: libcst cannot parse it; the message names file and line.
    """
    if version.encode() not in source or not (b"Api" in source or b"..." in source):
        return ()  # avoids the slow import of libcst
    from treefold_scaffold._rewrite_imports import VersionRename, find_version_lines

    package = ("Api", version, *path.split("/")[:-1])
    try:
        return find_version_lines(source, VersionRename(old=version, new=version, package=package))
    except SourceError as error:
        raise SourceError(f"'Api/{version}/{path}', {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FlattenPlan:
    """The files that a version gets in place of what it inherits.

    Attributes:
        version: its name.
        chain: the versions that it inherits from, nearest first.
        entries: what is copied into it, each folder before its own entries.
        named: its own files that convert from the base of its `version.toml`, by POSIX path below
            the version folder, with the content that names the base.
        marks: POSIX paths below the version folder of the marks to remove.
        settings: the new content of its `version.toml`; None if the file goes.
    """

    version: str
    chain: tuple[str, ...]
    entries: tuple[Entry, ...]
    named: dict[str, bytes]
    marks: tuple[str, ...]
    settings: bytes | None


def plan_flatten(app_dir: str | os.PathLike[str], version: str) -> FlattenPlan:
    """Return the plan of `version flatten`; nothing is written.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        version: the version that inherits, `2` or `v2`.

    Raises:
        ScaffoldError: there is no such version, it inherits from none, or a file that it inherits
            is not Python.
        RouterError: a `version.toml` is invalid.
        OSError: a file cannot be read.
    """
    api = require_api(app_dir)
    name, layers = choose_source_version(api, version), read_layers(api)
    if name not in layers.chains:
        raise ScaffoldError(f"Version {name!r} inherits from no version; it is a copy already")
    entries = list_effective_entries(api, name, layers)
    own = [path for path, _ in walk_entries(api / name)]
    inherited = [one for one in entries if one.layer != name and one.path not in own]
    return FlattenPlan(
        version=name,
        chain=layers.chains[name][1:],
        entries=tuple(plan_copied_entries(api, inherited, layers, new=name)),
        named=dict(_iter_named_files(api, entries, layers, name)),
        marks=tuple(
            path for path in own if path.endswith(GONE) and not (api / name / path).is_dir()
        ),
        settings=_remove_inherits(api / name / VERSION_FILE),
    )


def _iter_named_files(
    api: Path, entries: Sequence[LayeredEntry], layers: Layers, version: str
) -> Iterator[tuple[str, bytes]]:
    for one in entries:
        if one.layer == version and one.path.endswith(".py") and not one.entry.is_symlink():
            source = Path(one.entry.path).read_bytes()
            parse_source(source, f"Api/{version}/{one.path}")
            content, places = name_base_version(source, find_base(layers, version))
            if places:
                yield one.path, content


def _remove_inherits(file: Path) -> bytes | None:
    text = file.read_bytes()
    left, count = _INHERITS.subn(b"", text, count=1)
    wanted = tomllib.loads(text.decode("utf-8-sig"))
    del wanted["inherits"]
    if not wanted:
        return None
    with contextlib.suppress(tomllib.TOMLDecodeError):
        if count and tomllib.loads(left.decode("utf-8-sig")) == wanted:
            return left
    raise ScaffoldError(f"Cannot find 'inherits' in {str(file)!r}; write it on a line of its own")


def flatten_version(app_dir: str | os.PathLike[str], plan: FlattenPlan) -> None:
    """Write a plan of `plan_flatten`.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        plan: the plan.

    Raises:
        ScaffoldError: another process is making a version.
        OSError: the disk cannot be written. The version inherits as before.
    """
    api = Path(app_dir, "Api")
    folder, made = api / plan.version, list[Path]()
    with lock_api(api):
        try:
            for entry in plan.entries:
                place = folder / entry.path
                made.append(place)
                write_entry(place, entry, source=api / entry.layer / entry.path)
            for path, content in plan.named.items():  # with or without the name they do the same
                replace_content(folder / path, content)
            _replace_file(folder / VERSION_FILE, plan.settings)
        except BaseException:
            for place in reversed(made):
                with contextlib.suppress(OSError):
                    place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
            raise
        for mark in plan.marks:
            (folder / mark).unlink(missing_ok=True)
        for entry in reversed(plan.entries):
            if entry.action is Action.FOLDER:
                (folder / entry.path).chmod(entry.mode)


def _replace_file(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink()
    else:
        replace_content(file, content)


def replace_content(file: Path, content: bytes) -> None:
    """Replace the content of a file in one step; its permissions stay.

    Raises:
        OSError: the disk cannot be written. The file is as before.
    """
    draft = file.with_name(f".{file.name}.treefold")
    try:
        draft.write_bytes(content)
        draft.chmod(stat.S_IMODE(file.stat().st_mode))
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def list_heirs(layers: Layers, version: str) -> tuple[str, ...]:
    """Return the versions whose `version.toml` names a version as their base."""
    found = (name for name, one in layers.settings.items() if one.inherits == version)
    return tuple(sorted(found, key=lambda name: (len(name), name)))
