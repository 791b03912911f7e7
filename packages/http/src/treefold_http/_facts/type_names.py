"""Names of the types of a lock: `User`, `User@v2`, `OrderAnswer`.

Types of one name and one shape share a definition. Of different shapes, that of the first version
has the plain name and later ones have their version behind it, so that a new version renames none.
Where several types of a name begin in one version, each has its folder in front.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from treefold_contract import Side
from treefold_http._description.class_origin import ClassOrigin
from treefold_http._facts.named_types import NamedType, rename_in_definition

_LEVELS = 5
"""Prefixes that are tried, from none to all folders and the module."""


@dataclass(slots=True)
class _Group:
    """The types of one name and one shape.

    Attributes:
        base: the name of their classes.
        keys: of the types.
        origin: of the type that comes first in the order of modules.
        versions: the numbers of the versions that use them.
    """

    base: str
    origin: ClassOrigin
    keys: list[str] = field(default_factory=list[str])
    versions: set[int] = field(default_factory=set[int])

    @property
    def first(self) -> int:
        """The number of the first version that uses them."""
        return min(self.versions)

    @property
    def home(self) -> Hashable:
        """The module below the version: copies of a file in another version share it."""
        return tuple(self.origin.unversioned_modules)

    def build_name(self, level: int) -> str:
        """Return the name with a prefix of folders; level 0 is without one."""
        prefixes = ["", *islice(self.origin.iter_prefixes(skip_folder=False), _LEVELS)]
        # a class outside of the versions keeps its plain name as long as possible
        chosen = level if self.origin.version else max(0, level - 1)
        return prefixes[min(chosen, len(prefixes) - 1)] + self.base


def assign_type_names(
    types: Mapping[str, NamedType], versions: Mapping[str, set[int]]
) -> dict[str, str]:
    """Return the name of each type.

    Args:
        types: by key.
        versions: the numbers of the versions that use each type, by its key.
    """
    families: dict[str, list[_Group]] = {}
    for group in _group_by_shape(types, versions):
        families.setdefault(group.base, []).append(group)
    names: dict[str, str] = {}
    for groups in families.values():
        for name, group in _name_family(groups):
            names.update(dict.fromkeys(group.keys, name))
    return names


def _group_by_shape(
    types: Mapping[str, NamedType], versions: Mapping[str, set[int]]
) -> list[_Group]:
    """Return groups of types that cannot be told apart, however deep one looks."""
    colors = {key: _clean_name(named.base) for key, named in types.items()}
    while True:
        seen: dict[Hashable, str] = {}
        finer = {
            key: seen.setdefault((colors[key], *_describe(named, colors)), f"C{len(seen)}")
            for key, named in types.items()
        }
        if len(seen) == len(set(colors.values())):
            break
        colors = finer
    groups: dict[str, _Group] = {}
    for key, named in types.items():
        made = _Group(_clean_name(named.base), named.origin)
        group = groups.setdefault(colors[key], made)
        group.keys.append(key)
        group.versions |= versions[key]
        if named.origin.sort_key < group.origin.sort_key:
            group.origin = named.origin
    return sorted(groups.values(), key=lambda group: (group.origin.sort_key, group.keys))


def _describe(named: NamedType, colors: Mapping[str, str]) -> tuple[Hashable, ...]:
    sides: tuple[Side, Side] = ("request", "response")
    return tuple(
        view and repr(rename_in_definition(view, colors, side))
        for view, side in zip(named.shape, sides, strict=True)
    )


def _clean_name(name: str) -> str:
    """Return a name that a lock can hold: letters, digits and `_`."""
    clean = re.sub(r"\W+", "_", name).strip("_")
    return clean if clean and not clean[0].isdigit() else f"T{clean}"


def _name_family(groups: Sequence[_Group]) -> list[tuple[str, _Group]]:
    """Return the groups of one name with their names in the lock, of the first version first."""
    named: list[tuple[str, _Group]] = []
    taken: set[str] = set()
    level = 0
    for version in sorted({group.first for group in groups}):
        new = [group for group in groups if group.first == version]
        level = next((each for each in range(level, _LEVELS) if not _clash(new, each)), level)
        for group in new:
            name = group.build_name(level)
            chosen = f"{name}@v{version}" if name in taken else name
            numbered = (f"{name}_{number}" for number in count(2))
            if chosen in taken:
                chosen = next(each for each in numbered if each not in taken)
            taken.add(chosen)
            named.append((chosen, group))
    return named


def _clash(groups: Sequence[_Group], level: int) -> bool:
    """Return True if two groups of different modules would have one name."""
    homes: dict[str, Hashable] = {}
    return any(
        homes.setdefault(group.build_name(level), group.home) != group.home for group in groups
    )
