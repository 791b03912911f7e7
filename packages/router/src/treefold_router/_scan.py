"""The walk over `Api/`: the entries on the disk, as data.

The only module that walks the disk. It lists `.py` files, the two kinds of file that describe
versions, and the defects of entries; it opens no file, imports nothing, and does not know which
names are routes.
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

GONE = ".gone"
"""The ending of an empty file that removes what a version would inherit under its name."""
VERSION_FILE = "version.toml"
"""The name of the file in a version folder that has its settings."""

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

    @property
    def file(self) -> str:
        """Path below `Api/` with forward slashes."""
        return "/".join(self.parts)


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything a walk found, in no particular order.

    Args:
        entries: `.py` files, sound or not, and folders that could not be entered.
        clashes: groups of sibling paths that a case-insensitive disk cannot tell apart.
        has_links: True if a symbolic link is among them, or leads to some of them.
        marks: `version.toml` of each version folder, and `*.gone` files.
    """

    entries: tuple[Entry, ...]
    clashes: tuple[tuple[str, ...], ...] = ()
    has_links: bool = False
    marks: tuple[Entry, ...] = ()

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
    try:
        os.scandir(root).close()
    except OSError as error:
        raise _make_root_error(root, error) from error
    return _list_folders([_Folder(os.fspath(root), (), False)], os.path.realpath(root))


def list_changes(root: Path, former: Listing, changed: Iterable[str]) -> Listing:
    """List the folders of changed paths again; all others are as in a former listing.

    Of `v1/New/Deep/Get.py` the folder `v1`, if there was no `New` before, and all below `New`.

    Args:
        root: the folder of the former listing.
        changed: paths below it, with forward slashes, of files that are new, different or gone.

    Raises:
        RouterError: as `list_tree`.
    """
    # behind a link, one change is a change of several entries
    if former.has_links:
        return list_tree(root)
    again = _find_folders_to_list(root, former, changed)
    if again is None:
        return list_tree(root)
    real_root = os.path.realpath(root)
    direct, below = _Findings(), list[_Folder]()
    for parts, names in again.items():
        folder = _Folder(os.path.join(root, *parts), parts, False)
        found = direct.inspect_children(folder, real_root)
        below += [each for each in found if each.parts[-1] in names]
    nested = _list_folders(below, real_root)
    if direct.has_links or nested.has_links:
        return list_tree(root)
    listed = {(*parts, name) for parts, names in again.items() for name in names}
    depths = sorted({len(parts) for parts in listed})

    def is_below_listed(parts: tuple[str, ...]) -> bool:
        return any(parts[:depth] in listed for depth in depths)

    def is_as_before(entry: Entry) -> bool:
        if entry.is_folder:  # it could not be listed, and nothing says that it can be now
            still_there = os.path.isdir(os.path.join(root, *entry.parts))
            return still_there and not is_below_listed(entry.parts)
        return entry.parts[:-1] not in again and not is_below_listed(entry.parts)

    clashes = [(group, tuple(group[0].split("/"))) for group in former.clashes]
    return Listing(
        (*filter(is_as_before, former.entries), *direct.entries, *nested.entries),
        (
            *(g for g, at in clashes if at[:-1] not in again and not is_below_listed(at)),
            *direct.clashes,
            *nested.clashes,
        ),
        marks=(*filter(is_as_before, former.marks), *direct.marks, *nested.marks),
    )


def _find_folders_to_list(
    root: Path, former: Listing, changed: Iterable[str]
) -> dict[tuple[str, ...], set[str]] | None:
    """Return the folders to list, and which of their children to list below; None for all."""
    paths = [tuple(path.split("/")) for path in changed]
    above = {parts[:depth] for parts in paths for depth in range(1, len(parts))}
    depths = sorted({len(parts) for parts in above})
    listed = (*former.entries, *former.marks)
    known = {entry.parts[:depth] for entry in listed for depth in depths} & above
    found: dict[tuple[str, ...], set[str]] = {}
    for parts in paths:
        folder = parts[:-1]
        places = [os.path.join(root, *parts[:depth]) for depth in range(1, len(parts))]
        if any(map(os.path.islink, places)):
            return None
        while folder and not (folder in known and os.path.isdir(os.path.join(root, *folder))):
            folder = folder[:-1]
        if not folder and not os.path.isdir(root):
            return None  # which is the error of listing all
        found.setdefault(folder, set()).add(parts[len(folder)])
    return found


def _list_folders(pending: list[_Folder], real_root: str) -> Listing:
    """List folders and all that is below them."""
    found = _Findings()
    # A list instead of recursion: a tree may be deeper than the interpreter's stack.
    while pending:
        pending += found.inspect_children(pending.pop(), real_root)
    return Listing(tuple(found.entries), tuple(found.clashes), found.has_links, tuple(found.marks))


class _Findings:
    """What a walk has found up to now; attributes as those of `Listing`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.clashes: list[tuple[str, ...]] = []
        self.has_links = False
        self.marks: list[Entry] = []

    def inspect_children(self, folder: _Folder, real_root: str) -> list[_Folder]:
        """Note the children of a folder; return those that are folders to look into."""
        try:
            with os.scandir(folder.path) as listing:
                children = list(listing)
        except OSError as error:
            if folder.parts:  # the root has just been listed
                defect = _describe_read_error(error)
                self.entries.append(Entry(folder.parts, defect, is_folder=True))
            return []
        folders: list[_Folder] = []
        names: list[str] = []
        for child in children:
            if (seen := _inspect_child(child, folder, real_root)) is None:
                continue
            names.append(child.name)
            self.has_links = self.has_links or child.is_symlink()
            if isinstance(seen, _Folder):
                folders.append(seen)
            elif seen.is_folder or seen.parts[-1].endswith(".py"):
                self.entries.append(seen)
            else:
                self.marks.append(seen)
        if len(names) > 1:
            self.clashes.extend(_group_case_clashes(folder.parts, names))
        return folders


def _inspect_child(child: os.DirEntry[str], folder: _Folder, root: str) -> _Folder | Entry | None:
    parts = (*folder.parts, child.name)
    if child.is_symlink():
        return _inspect_link(child, folder, root)
    if child.is_dir(follow_symlinks=False):
        return _Folder(child.path, parts, folder.is_linked)
    if not _is_listed_name(parts):
        return None
    is_regular = child.is_file(follow_symlinks=False)
    return Entry(parts, _find_read_defect(child.path) if is_regular else NOT_REGULAR)


def _inspect_link(link: os.DirEntry[str], folder: _Folder, root: str) -> _Folder | Entry | None:
    parts = (*folder.parts, link.name)
    is_listed = _is_listed_name(parts)
    try:
        target = os.path.realpath(link.path, strict=True)
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        # Editors leave dangling links as locks beside any file; only listed names matter here.
        return Entry(parts, LEADS_NOWHERE) if is_listed else None
    except OSError as error:
        defect = LOOPS if error.errno == errno.ELOOP else _describe_read_error(error)
        return Entry(parts, defect, is_folder=not is_listed)
    if stat.S_ISDIR(mode):
        defect = _find_link_defect(target, folder, root)
        linked = _Folder(link.path, parts, True)
        return Entry(parts, defect, is_folder=True) if defect else linked
    if not is_listed:
        return None
    if not _is_inside(target, root):
        return Entry(parts, LEADS_OUT)
    return Entry(parts, _find_read_defect(target) if stat.S_ISREG(mode) else NOT_REGULAR)


def _is_listed_name(parts: tuple[str, ...]) -> bool:
    name = parts[-1]
    if name.endswith((".py", GONE)):
        return True
    return name == VERSION_FILE and len(parts) == 2


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
