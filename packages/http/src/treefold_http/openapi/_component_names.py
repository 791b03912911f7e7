"""Names of components: the class name, prefixed with a folder where another class has it.

A class outside of `Api` takes its name before one of a handler, then the order is that of the
versions and modules. The order of routes has no influence, so that a route added later never
renames the models of a module that comes before it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from treefold_http._description.class_origin import ClassOrigin
from treefold_http._description.names import TakenNames, choose_free_name, fold_name


class Node(NamedTuple):
    """A schema that is to be named.

    Attributes:
        name: the name of its class.
        home: where that is defined.
        late: True for a schema of input, which leaves the plain name to that of output.
    """

    name: str
    home: ClassOrigin
    late: bool


@dataclass(slots=True)
class _Family:
    """The schemas of one class; `outputs` and `inputs` are groups of equal schemas."""

    base: str
    home: ClassOrigin
    outputs: list[int] = field(default_factory=list[int])
    inputs: list[int] = field(default_factory=list[int])
    name: str = ""


def assign_schema_names(nodes: Sequence[Node], groups: Sequence[int]) -> dict[int, str]:
    """Return a unique name for each group of equal schemas.

    Args:
        groups: the group of each node.
    """
    families: dict[Hashable, _Family] = {}
    for node, group in zip(nodes, groups, strict=True):
        family = families.setdefault((node.home.key, node.name), _Family(node.name, node.home))
        known = family.inputs if node.late else family.outputs
        if group not in known:
            known.append(group)
    naming = _Naming({node.name for node in nodes})
    for family in sorted(families.values(), key=lambda each: each.home.sort_key):
        naming.assign_class_schema_names(family)
    return naming.names


class _Naming:
    """Assigns names, one class after the other."""

    def __init__(self, classes: set[str]) -> None:
        self.names: dict[int, str] = {}
        self._taken = TakenNames(classes)
        self._used = TakenNames()
        self._named: dict[str, list[_Family]] = {}

    def assign_class_schema_names(self, family: _Family) -> None:
        shared = next((self.names[group] for group in family.outputs if group in self.names), None)
        outputs = [group for group in family.outputs if group not in self.names]
        others = {*self.names, *family.outputs}
        inputs = [group for group in family.inputs if group not in others]
        if not outputs and not inputs:
            return
        family.name = shared or self._choose_name(family)
        self._named.setdefault(fold_name(family.base), []).append(family)
        own = [] if shared else [family.name]
        for group in outputs:
            self.names[group] = own.pop() if own else self._claim_free_name(family.name)
        name = f"{family.name}Input"
        wanted = [name, f"{name}_{family.home.version}"] if family.home.version else [name]
        for group in inputs:
            self.names[group] = own.pop() if own else self._claim_free_name(name, *wanted)

    def _choose_name(self, family: _Family) -> str:
        if family.base in self._used:
            return self._claim_free_name(family.base, *self._iter_candidates(family))
        self._used.add(family.base)
        return family.base

    def _claim_free_name(self, name: str, *wanted: str) -> str:
        found = choose_free_name(name, self._taken, *wanted)
        self._taken.add(found)
        self._used.add(found)
        return found

    def _iter_candidates(self, family: _Family) -> Iterator[str]:
        home = family.home
        same = self._named.get(fold_name(family.base), [])
        for other in same:
            has_same_modules = home.unversioned_modules == other.home.unversioned_modules
            if home.version != other.home.version and has_same_modules:
                yield f"{other.name}_{home.version}"
        beside = any(
            other.home.version == home.version and other.home.prefix_folders == home.prefix_folders
            for other in same
        )
        names = [f"{prefix}{family.base}" for prefix in home.iter_prefixes(skip_folder=beside)]
        yield from names
        if home.version:
            yield from (f"{name}_{home.version}" for name in names)
