"""Versions that inherit: which files each of them has, its own and those of its bases.

    Api/v1/User/Get.py                 GET /v1/user       and GET /v2/user
    Api/v1/User/[id]/Get.py            GET /v1/user/{id}
    Api/v1/User/[id]/Delete.py         DELETE /v1/user/{id}
    Api/v2/version.toml                inherits = "v1"
    Api/v2/User/[id]/Get.py            GET /v2/user/{id}
    Api/v2/User/[id]/Delete.gone       no DELETE /v2/user/{id}

The rule is that of a copy: v2 has the files that a copy of v1 would have after the files of v2 were
written over it and those with a mark `.gone` were removed. A file of the base is an entry of v2
under the name that it would have in the copy. Names and paths only; `_version_file` reads settings.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefold_router._classify import OPT_OUT, Endpoint, classify_entry
from treefold_router._naming import is_version_name, method_of, parameter_name, segment_of
from treefold_router._scan import GONE, VERSION_FILE, Entry, Listing
from treefold_router._types import RouterError

if TYPE_CHECKING:
    from treefold_router._version_file import VersionFile

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InheritedEntry(Entry):
    """A file of a base version as an entry of a version that inherits it.

    Args:
        parts: names from below `Api/` as they would be in a copy: the inheriting version first.
        layer: the version folder that holds the file.
    """

    layer: str = ""

    @property
    def file(self) -> str:
        """Path of the file below `Api/` with forward slashes."""
        return "/".join((self.layer, *self.parts[1:]))


@dataclass(frozen=True, slots=True)
class HiddenEntry:
    """A file of a base version that a mark removes from an inheriting version.

    Args:
        entry: the file, as an entry of the inheriting version.
        mark: path of the mark below `Api/`.
    """

    entry: InheritedEntry
    mark: str


class Overlay:
    """Which paths of a base the files and marks of one version replace or remove.

    A method file is replaced at its place: `user/GET.py` replaces `User/Get.py`. Every other file
    is replaced by the same path only, as in Python. A mark `X.gone` removes the folder, the method
    file and the module X.

    Args:
        own: paths of the version's own files, as names from below the version folder.
        gone: paths of its marks in the same form.
    """

    def __init__(self, own: Iterable[Parts], gone: Iterable[Parts]) -> None:
        self._keys: dict[Parts, Parts] = {}
        self._own = {self.identify_file(path) for path in own}
        self._gone_files: dict[tuple[Parts, str], Parts] = {}
        self._gone_folders: dict[Parts, Parts] = {}
        for mark in sorted(gone):
            name = mark[-1].removesuffix(GONE)
            for ending in (".py", ".pyi"):
                key = self.identify_file((*mark[:-1], f"{name}{ending}"))
                self._gone_files.setdefault(key, mark)
            self._gone_folders.setdefault(self._identify_folder((*mark[:-1], name)), mark)

    def find_mark(self, path: Parts, *, is_folder: bool = False) -> Parts | None:
        """Return the mark that removes a path of the base; None if it stays or is replaced."""
        if not self._gone_folders:
            return None
        folders = self._identify_folder(path if is_folder else path[:-1])
        for depth in range(1, len(folders) + 1):
            if (mark := self._gone_folders.get(folders[:depth])) is not None:
                return mark
        return None if is_folder else self._gone_files.get(self.identify_file(path))

    def has_own(self, path: Parts) -> bool:
        """Return True if a file of the version replaces a path of the base."""
        return self.identify_file(path) in self._own

    def identify_file(self, path: Parts) -> tuple[Parts, str]:
        """Return a key that is the same for files of which one replaces the other."""
        folders, name = path[:-1], path[-1]
        if name.endswith(".py") and (method := method_of(name[:-3])) is not None:
            place = self._identify_folder(folders)
            if OPT_OUT.isdisjoint(place):
                return place, method
        return path, ""

    def _identify_folder(self, folders: Parts) -> Parts:
        """Return the place of a folder: names in lower case, brackets whatever their names.

        Below a folder without routes, names are compared as they are.
        """
        if (known := self._keys.get(folders)) is not None:
            return known
        if not folders:
            return ()
        above, name = self._identify_folder(folders[:-1]), folders[-1]
        if name in OPT_OUT or not OPT_OUT.isdisjoint(above):
            key = name
        else:
            key = "/" if parameter_name(name) else segment_of(name)
        self._keys[folders] = (*above, key)
        return self._keys[folders]


@dataclass(frozen=True)
class Layers:
    """The settings of versions, and the files of those that inherit.

    Attributes:
        settings: by version, the content of its `version.toml`.
        chains: by version that inherits, its layers from itself to the last base.
        inherited: by version that inherits, the files of its bases that it has.
        hidden: by version that inherits, the files of its bases that marks remove.
        own: by version that inherits, its own files.
        marks: `*.gone` files below version folders.
    """

    settings: Mapping[str, "VersionFile"] = field(default_factory=dict[str, Any])
    chains: Mapping[str, Parts] = field(default_factory=dict[str, Parts])
    inherited: Mapping[str, Sequence[InheritedEntry]] = field(
        default_factory=dict[str, Sequence[InheritedEntry]]
    )
    hidden: Mapping[str, Sequence[HiddenEntry]] = field(
        default_factory=dict[str, Sequence[HiddenEntry]]
    )
    own: Mapping[str, Sequence[Entry]] = field(default_factory=dict[str, Sequence[Entry]])
    marks: Sequence[Entry] = ()

    def is_served(self, version: str) -> bool:
        """Return False for a version that is only a base (`serve = false`)."""
        settings = self.settings.get(version)
        return settings is None or settings.serve

    @cached_property
    def unserved(self) -> frozenset[str]:
        """The versions that are only a base."""
        return frozenset(version for version in self.settings if not self.is_served(version))

    def list_heirs(self, version: str) -> Parts:
        """Return the versions that inherit from a version, directly or not, sorted by name."""
        return tuple(sorted(v for v, chain in self.chains.items() if version in chain[1:]))

    def list_hidden_routes(self, version: str) -> Parts:
        """Return the method files of its bases that marks remove from a version."""
        hidden = self.hidden.get(version, ())
        found = (classify_entry(one.entry) for one in hidden)
        return tuple(sorted({one.file for one in found if isinstance(one, Endpoint)}))

    @cached_property
    def files(self) -> Mapping[str, str]:
        """By path below `Api/` as in a copy, the path of each inherited `.py` file."""
        entries = (entry for found in self.inherited.values() for entry in found)
        return {"/".join(entry.parts): entry.file for entry in entries if not entry.defect}

    @cached_property
    def folders(self) -> Mapping[str, Parts]:
        """By path below `Api/` as in a copy, the folders that its files are in, nearest first.

        Of versions that inherit; folders without a `.py` file below them are left out.
        """
        found: dict[Parts, set[str]] = {}
        for version in self.chains:
            for entry in (*self.own[version], *self.inherited[version]):
                layer = entry.layer if isinstance(entry, InheritedEntry) else version
                for depth in range(1, len(entry.parts)):
                    found.setdefault(entry.parts[:depth], set()).add(layer)
        return {
            "/".join(parts): tuple(
                "/".join((layer, *parts[1:])) for layer in self.chains[parts[0]] if layer in layers
            )
            for parts, layers in found.items()
        }

    def list_packages(self) -> frozenset[str]:
        """The folders that have an inherited `__init__.py`, as in a copy."""
        files = (file for file in self.files if file.endswith("/__init__.py"))
        return frozenset(file.rpartition("/")[0] for file in files)

    def list_entries(self, listing: Listing) -> Iterable[Entry]:
        """Return the entries that are routes or may be: those of all versions that are served."""
        if not self.settings:
            return listing.entries
        return self._yield_served_entries(listing)

    def _yield_served_entries(self, listing: Listing) -> Iterator[Entry]:
        unserved = self.unserved
        yield from (entry for entry in listing.entries if entry.parts[0] not in unserved)
        for version, entries in self.inherited.items():
            if version not in unserved:
                yield from entries

    def list_unserved_entries(self, listing: Listing) -> Iterator[Entry]:
        """Yield the entries of versions that are only a base."""
        for version in self.unserved:
            yield from (entry for entry in listing.entries if entry.parts[0] == version)
            yield from self.inherited.get(version, ())


NO_LAYERS = Layers()


def resolve_layers(root: Path, listing: Listing) -> Layers:
    """Read the settings of all versions, and find the files of those that inherit.

    Args:
        root: the listed folder.
        listing: its entries.

    Raises:
        RouterError: a `version.toml` is invalid, names a base that does not exist, or versions
            inherit from each other.
    """
    from treefold_router._version_file import read_version_file  # most trees have no such file

    marks = [mark for mark in listing.marks if is_version_name(mark.parts[0])]
    settings: dict[str, VersionFile] = {}
    for mark in sorted(marks, key=lambda mark: mark.parts):
        if len(mark.parts) == 2 and mark.parts[1] == VERSION_FILE:
            if mark.defect:
                raise RouterError(f"Api/{mark.file} cannot be used: {mark.defect}")
            settings[mark.parts[0]] = read_version_file(root, mark.parts[0])
    gone = [mark for mark in marks if _is_gone_mark(mark)]
    if not settings:
        return Layers(marks=gone) if gone else NO_LAYERS
    chains = {version: _follow_bases(root, version, settings) for version in settings}
    chains = {version: chain for version, chain in chains.items() if len(chain) > 1}
    return _merge_layers(listing, settings, chains, gone)


def _is_gone_mark(mark: Entry) -> bool:
    name = mark.parts[-1]
    return len(mark.parts) > 1 and name.endswith(GONE) and name != GONE and not mark.defect


def _follow_bases(root: Path, version: str, settings: Mapping[str, "VersionFile"]) -> Parts:
    chain = [version]
    while (found := settings.get(chain[-1])) is not None and found.inherits:
        base = found.inherits
        if base in chain:
            circle = " -> ".join((*chain[chain.index(base) :], base))
            raise RouterError(
                f"Versions inherit from each other: {circle}; remove 'inherits' from one"
                f" {VERSION_FILE}"
            )
        if not os.path.isdir(root / base):
            names = sorted(entry.name for entry in os.scandir(root) if is_version_name(entry.name))
            known = ", ".join(repr(name) for name in names if name != chain[-1]) or "no other"
            raise RouterError(
                f"'inherits' in Api/{chain[-1]}/{VERSION_FILE} must name a version folder, got"
                f" {base!r}; there is {known}"
            )
        chain.append(base)
    return tuple(chain)


def _merge_layers(
    listing: Listing,
    settings: Mapping[str, "VersionFile"],
    chains: Mapping[str, Parts],
    gone: Sequence[Entry],
) -> Layers:
    own: dict[str, list[Entry]] = {name: [] for chain in chains.values() for name in chain}
    for entry in listing.entries:
        if not entry.is_folder and entry.parts[0] in own:
            own[entry.parts[0]].append(entry)
    inherited: dict[str, list[InheritedEntry]] = {}
    hidden: dict[str, list[HiddenEntry]] = {}
    # bases first: a chain is longer than that of its base
    for version, chain in sorted(chains.items(), key=lambda item: (len(item[1]), item[0])):
        overlay = Overlay(
            (entry.parts[1:] for entry in own[version]),
            (mark.parts[1:] for mark in gone if mark.parts[0] == version),
        )
        base = chain[1]
        inherited[version], hidden[version] = [], []
        for former in (*own[base], *inherited.get(base, ())):
            entry = _inherit_entry(former, version)
            if overlay.has_own(path := entry.parts[1:]):
                continue
            if (mark := overlay.find_mark(path)) is not None:
                hidden[version].append(HiddenEntry(entry, "/".join((version, *mark))))
            else:
                inherited[version].append(entry)
        hidden[version] += [
            HiddenEntry(_inherit_entry(one.entry, version), one.mark)
            for one in hidden.get(base, ())
            if not overlay.has_own(one.entry.parts[1:])
        ]
    heirs = {version: own[version] for version in chains}
    return Layers(settings, chains, inherited, hidden, heirs, gone)


def _inherit_entry(entry: Entry, version: str) -> InheritedEntry:
    layer = entry.layer if isinstance(entry, InheritedEntry) else entry.parts[0]
    return InheritedEntry((version, *entry.parts[1:]), entry.defect, layer=layer)
