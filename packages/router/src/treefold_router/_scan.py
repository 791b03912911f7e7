"""The walk over `Api/`: the entries on the disk, as data.

The only module that touches the file system. It lists `.py` files and the defects of entries; it
opens no file, imports nothing, and does not know which names are routes.
Symbolic links are followed inside the tree only and one at a time, so every walk ends.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from treefold_router._types import RouterError

LEADS_OUT = "symbolic link leads out of the tree"
LEADS_NOWHERE = "symbolic link leads nowhere"
LOOPS = "symbolic link loops"
NESTED_LINK = "symbolic link inside a linked folder"
NOT_REGULAR = "not a regular file"

_HAS_EFFECTIVE_IDS = os.access in os.supports_effective_ids


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the tree that may matter to routing.

    Args:
        parts: names from below `Api/` down to the entry.
        defect: the defect that makes it unreadable or invalid; empty if there is none.
        is_folder: it is a folder that was not entered, or a link that seems to be one.
    """

    parts: tuple[str, ...]
    defect: str = ""
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything a walk found, in no particular order.

    Args:
        entries: `.py` files, sound or not, and folders that could not be entered.
        clashes: groups of sibling paths that a case-insensitive disk cannot tell apart.
    """

    entries: tuple[Entry, ...]
    clashes: tuple[tuple[str, ...], ...] = ()

    def list_packages(self) -> frozenset[str]:
        """The folders that hold an `__init__.py`, with forward slashes."""
        found = [entry.parts for entry in self.entries if entry.parts[-1] == "__init__.py"]
        return frozenset("/".join(parts[:-1]) for parts in found)


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    parts: tuple[str, ...]
    is_linked: bool


def list_tree(root: Path) -> Listing:
    """List the tree below a folder.

    Raises:
        RouterError: the folder is missing, is no folder or cannot be read.
    """
    entries: list[Entry] = []
    clashes: list[tuple[str, ...]] = []
    real_root = os.path.realpath(root)
    # A list instead of recursion: a tree may be deeper than the interpreter's stack.
    pending = [_Folder(os.fspath(root), (), False)]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder.path) as listing:
                children = list(listing)
        except OSError as error:
            if not folder.parts:
                raise _make_root_error(root, error) from error
            entries.append(Entry(folder.parts, _describe_read_error(error), is_folder=True))
            continue
        names: list[str] = []
        for child in children:
            if (seen := _inspect_child(child, folder, real_root)) is None:
                continue
            names.append(child.name)
            if isinstance(seen, _Folder):
                pending.append(seen)
            else:
                entries.append(seen)
        if len(names) > 1:
            clashes.extend(_group_case_clashes(folder.parts, names))
    return Listing(tuple(entries), tuple(clashes))


def _inspect_child(child: os.DirEntry[str], folder: _Folder, root: str) -> _Folder | Entry | None:
    parts = (*folder.parts, child.name)
    if child.is_symlink():
        return _inspect_link(child, folder, root)
    if child.is_dir(follow_symlinks=False):
        return _Folder(child.path, parts, folder.is_linked)
    if not child.name.endswith(".py"):
        return None
    is_regular = child.is_file(follow_symlinks=False)
    return Entry(parts, _find_read_defect(child.path) if is_regular else NOT_REGULAR)


def _inspect_link(link: os.DirEntry[str], folder: _Folder, root: str) -> _Folder | Entry | None:
    parts = (*folder.parts, link.name)
    is_python = link.name.endswith(".py")
    try:
        target = os.path.realpath(link.path, strict=True)
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        # Editors leave dangling links as locks beside any file; only Python names matter here.
        return Entry(parts, LEADS_NOWHERE) if is_python else None
    except OSError as error:
        defect = LOOPS if error.errno == errno.ELOOP else _describe_read_error(error)
        return Entry(parts, defect, is_folder=not is_python)
    if stat.S_ISDIR(mode):
        defect = _find_link_defect(target, folder, root)
        linked = _Folder(link.path, parts, True)
        return Entry(parts, defect, is_folder=True) if defect else linked
    if not is_python:
        return None
    if not _is_inside(target, root):
        return Entry(parts, LEADS_OUT)
    return Entry(parts, _find_read_defect(target) if stat.S_ISREG(mode) else NOT_REGULAR)


def _find_link_defect(target: str, folder: _Folder, root: str) -> str:
    if not _is_inside(target, root):
        return LEADS_OUT
    if _is_inside(os.path.realpath(folder.path), target):
        return LOOPS
    # Folders that link to each other have factorially many paths, none of them a loop.
    return NESTED_LINK if folder.is_linked else ""


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _find_read_defect(path: str) -> str:
    readable = os.access(path, os.R_OK, effective_ids=_HAS_EFFECTIVE_IDS)
    return "" if readable else "cannot be read (Permission denied)"


def _describe_read_error(error: OSError) -> str:
    return f"cannot be read ({error.strerror})"


def _make_root_error(root: Path, error: OSError) -> RouterError:
    if isinstance(error, FileNotFoundError):
        why = "does not exist, create it with a version folder such as 'v1' inside"
    elif isinstance(error, NotADirectoryError):
        why = "is not a folder, pass the folder that holds the version folders"
    else:
        why = f"cannot be read ({error.strerror}), check its permissions"
    return RouterError(f"Route folder {os.fspath(root)!r} {why}")


def _group_case_clashes(folder: tuple[str, ...], names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.casefold(), []).append(name)
    for group in groups.values():
        if len(group) > 1:
            yield tuple("/".join((*folder, name)) for name in sorted(group))
