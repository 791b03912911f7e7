"""Find the files of a project that a running server depends on, and detect their changes.

Compares two snapshots of the disk, so the result does not depend on which events a system reports.
Temporary files of editors, bytecode, databases and logs are ignored. No file is opened.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from typing import TypeAlias

Snapshot: TypeAlias = Mapping[str, tuple[int, int, int]]
"""Path below the root to modification time, size and inode."""

_CODE = (".py", ".so", ".pyd")
_ROOT_FILES = frozenset(
    {"pyproject.toml", "treefold.toml", ".env", ".env.local", ".env.dev", ".env.development"}
)
_IGNORED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", ".git"})
_NANOSECONDS = 1_000_000_000


def take_snapshot(root: str, include: Sequence[str] = ()) -> Snapshot:
    """Return every file below `root` that a running server depends on.

    Links to folders are followed, except to a folder that contains the link.

    Args:
        root: the folder.
        include: patterns of files to return besides code and settings, such as `*.html`.
    """
    return _scan_folders([(root, "", frozenset())], include)


def _scan_folders(
    pending: list[tuple[str, str, frozenset[int]]], include: Sequence[str]
) -> dict[str, tuple[int, int, int]]:
    """Return the files in folders: their paths, those below the root, the inodes above them."""
    found: dict[str, tuple[int, int, int]] = {}
    while pending:
        folder, prefix, above = pending.pop()
        for entry in _list_folder(folder):
            try:
                if _is_watched_name(entry.name, prefix, include):
                    at = entry.stat()
                    found[prefix + entry.name] = (at.st_mtime_ns, at.st_size, at.st_ino)
                elif _may_hold_code(entry.name, prefix) and entry.is_dir():
                    inode = entry.stat().st_ino
                    if inode not in above and _is_project_folder(entry, top=not prefix):
                        pending.append((entry.path, f"{prefix}{entry.name}/", above | {inode}))
            except OSError:
                continue  # a dangling link, or removed during the scan
    return found


def refresh_snapshot_paths(
    root: str, known: Snapshot, touched: Iterable[str], include: Sequence[str] = ()
) -> Snapshot | None:
    """Return a snapshot with the current state of some paths, and of no others.

    Args:
        root: the folder of the snapshot.
        known: the snapshot before.
        touched: paths below the root, or in it, that the system reported.
        include: as in `take_snapshot`.

    Returns:
        The snapshot; None if something new is at the root, or behind a link: only a scan finds out
        whether it belongs to the project.
    """
    now = dict(known)
    folders: set[str] = set()
    for name in sorted(touched):
        path = os.path.join(root, name)
        try:
            at = os.stat(path)
        except OSError:
            _remove_below(now, name)
            continue
        if name in known and stat.S_ISREG(at.st_mode):
            now[name] = (at.st_mtime_ns, at.st_size, at.st_ino)
            continue
        if not (
            stat.S_ISDIR(at.st_mode) or _is_watched_name(*_split_name_and_folder(name), include)
        ):
            continue
        folders = folders or _collect_folders(known)
        # of a new file in a new folder: that folder, in one that was scanned before
        while (above := os.path.dirname(name)) and above not in folders:
            name = above
        if not above or os.path.islink(os.path.join(root, name)):
            return None
        _rescan_place(root, name, now, include)
    return now


def _collect_folders(known: Snapshot) -> set[str]:
    """Return the folders that a scan has looked into, as far as files below them tell."""
    folders = {os.path.dirname(name) for name in known}
    for folder in list(folders):
        while folder and (folder := os.path.dirname(folder)):
            folders.add(folder)
    return folders


def _remove_below(now: dict[str, tuple[int, int, int]], name: str) -> None:
    if now.pop(name, None) is None:
        for gone in [one for one in now if one.startswith(f"{name}/")]:
            del now[gone]


def _rescan_place(
    root: str, name: str, now: dict[str, tuple[int, int, int]], include: Sequence[str]
) -> None:
    """Take a file, or a folder with all below it, whose own folder belongs to the project."""
    path, (leaf, prefix) = os.path.join(root, name), _split_name_and_folder(name)
    if _is_watched_name(leaf, prefix, include):
        at = os.stat(path)
        now[name] = (at.st_mtime_ns, at.st_size, at.st_ino)
    elif _may_hold_code(leaf, prefix) and leaf not in _IGNORED_FOLDERS:
        _remove_below(now, name)
        parts = name.split("/")
        places = [os.path.join(root, *parts[: depth + 1]) for depth in range(len(parts))]
        above = frozenset(os.stat(place).st_ino for place in places)
        now |= _scan_folders([(path, f"{name}/", above)], include)


def find_changed_files(before: Snapshot, now: Snapshot, touched: Iterable[str] = ()) -> set[str]:
    """Return the files that were added, changed or removed.

    Args:
        before: the earlier snapshot.
        now: the later snapshot.
        touched: files that the system reported as written; such a file counts as changed if its
            modification time is in whole seconds, which may hide a second save.
    """
    differing = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    hidden = {name for name in touched if name in now and now[name][0] % _NANOSECONDS == 0}
    return differing | hidden


def find_top_folders(root: str) -> frozenset[tuple[str, int]]:
    """Return the top-level folders that may hold code of the project, with their inodes."""
    with os.scandir(root) as listing:
        folders = [
            e
            for e in listing
            if "." not in e.name and e.is_dir() and _is_project_folder(e, top=True)
        ]
        return frozenset((entry.path, entry.stat().st_ino) for entry in folders)


def needs_scan(path: str, include: Sequence[str] = ()) -> bool:
    """Return True if an event at a path requires a scan: code, settings or possibly a folder."""
    name = os.path.basename(path)
    if os.path.basename(os.path.dirname(path)) in _IGNORED_FOLDERS or name in _IGNORED_FOLDERS:
        return False
    if _is_watched_name(name, "") or _describes_version(name):
        return True
    return "." not in name or is_included(path, include)


def is_included(path: str, include: Sequence[str]) -> bool:
    """Return True if a path or its name fits a pattern such as `*.html` or `Templates/*`."""
    name = os.path.basename(path)
    return any(
        fnmatch(name, one) or fnmatch(path, one) or fnmatch(path, f"*/{one}") for one in include
    )


def is_code_or_settings_file(name: str) -> bool:
    """Return True for the name of a module or of a settings file."""
    return _is_watched_name(*_split_name_and_folder(name), ())


def _split_name_and_folder(path: str) -> tuple[str, str]:
    folder, slash, name = path.rpartition("/")
    return name, folder + slash


def _describes_version(name: str) -> bool:
    """Return True for the settings of a version, and for a mark of what it does not inherit."""
    return name == "version.toml" or (name.endswith(".gone") and not name.startswith("."))


def _list_folder(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except OSError:
        return []  # removed during the scan; the next scan reports it


def _may_hold_code(folder: str, prefix: str) -> bool:
    """No package has a dot in its name; in `Api/`, such a folder is a segment of a URL."""
    return "." not in folder or prefix.startswith("Api/")


def _is_watched_name(name: str, prefix: str, include: Sequence[str] = ()) -> bool:
    if not prefix and name in _ROOT_FILES:
        return True
    if name.endswith(_CODE) and not name.startswith("."):
        return True
    if prefix.startswith("Api/") and _describes_version(name):
        return True
    return is_included(prefix + name, include)


def _is_project_folder(entry: os.DirEntry[str], *, top: bool) -> bool:
    if entry.name in _IGNORED_FOLDERS:
        return False
    # A virtual environment may have any name; this file identifies it. It lies at the root.
    return not (top and os.path.exists(os.path.join(entry.path, "pyvenv.cfg")))
