"""All files of a version, whichever layer holds them: what a copy of it has.

    Api/v1/Book/Get.py          -> Book/Get.py of v1
    Api/v1/Book/shelf.json      -> Book/shelf.json of v1
    Api/v2/version.toml            inherits = "v1", no file of a copy
    Api/v2/Book/Put.py          -> Book/Put.py of v2
    Api/v2/Old.gone                removes Old/ and Old.py of v1, no file of a copy

The router decides which files replace or remove others; here every kind of file counts, data and
links too. Nothing is written.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from treefold_router import Layers, Overlay, RouteTable

VERSION_FILE = "version.toml"
GONE = ".gone"


@dataclass(frozen=True, slots=True)
class LayeredEntry:
    """One entry of a version.

    Attributes:
        layer: the version folder that holds it.
        path: POSIX path below that folder.
        entry: the entry on the disk.
    """

    layer: str
    path: str
    entry: os.DirEntry[str]


def read_layers(api: Path) -> Layers:
    """Return the layers of the versions; a project without `version.toml` is not scanned.

    Raises:
        RouterError: a `version.toml` is invalid.
    """
    return RouteTable.scan(api).layers if any(api.glob(f"v*/{VERSION_FILE}")) else Layers()


def list_effective_entries(api: Path, version: str, layers: Layers) -> list[LayeredEntry]:
    """Return the entries of a version, its own and those of its bases.

    Marks and `version.toml` are left out; links are not followed.

    Returns:
        A folder precedes its own entries.
    """
    found: dict[str, LayeredEntry] = {}
    chain = layers.chains.get(version, (version,))
    for layer in reversed(chain):
        found = _lay_over(found, api, layer)
    if len(chain) == 1:
        return list(found.values())
    return sorted(found.values(), key=lambda one: one.path.split("/"))


def _lay_over(base: Mapping[str, LayeredEntry], api: Path, layer: str) -> dict[str, LayeredEntry]:
    own = {
        path: LayeredEntry(layer, path, entry)
        for path, entry in walk_entries(api / layer)
        if path != VERSION_FILE and not _is_mark(entry)
    }
    if not base:
        return own
    gone = [path for path, entry in walk_entries(api / layer) if _is_mark(entry)]
    files = [path for path, one in own.items() if not _is_folder(one)]
    overlay = Overlay(
        [tuple(path.split("/")) for path in files], [tuple(path.split("/")) for path in gone]
    )
    taken = {"/".join(path.split("/")[:n]) for path in files for n in range(1, path.count("/") + 1)}
    kept = {
        path: one
        for path, one in base.items()
        if not _is_replaced(overlay, path, one, own_files=set(files), own_folders=taken)
    }
    # a folder whose files are all replaced or gone is no folder of the copy
    full = {
        "/".join(path.split("/")[:n])
        for path, one in kept.items()
        if not _is_folder(one)
        for n in range(1, path.count("/") + 1)
    }
    return {path: one for path, one in kept.items() if not _is_folder(one) or path in full} | own


def _is_replaced(
    overlay: Overlay, path: str, one: LayeredEntry, *, own_files: set[str], own_folders: set[str]
) -> bool:
    parts = tuple(path.split("/"))
    if any("/".join(parts[:n]) in own_files for n in range(1, len(parts))):
        return True  # a file has the name of its folder
    if _is_folder(one):
        return path in own_files or overlay.find_mark(parts, is_folder=True) is not None
    return path in own_folders or overlay.has_own(parts) or overlay.find_mark(parts) is not None


def _is_folder(one: LayeredEntry) -> bool:
    return one.entry.is_dir(follow_symlinks=False)


def _is_mark(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(GONE) and entry.name != GONE and not entry.is_dir()


def walk_entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield every entry below a folder; links are not followed, and bytecode is left out.

    Yields:
        The POSIX path below the folder, and the entry; a folder precedes its own entries.
    """
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(folder / below) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            path = f"{below}{entry.name}"
            if entry.name == "__pycache__" or entry.name.endswith((".pyc", ".pyo")):
                continue
            yield path, entry
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{path}/")
