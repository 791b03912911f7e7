"""Names of components: the class name, prefixed with a folder where another class has it.

A class outside of `Api` takes its name before one of a handler, then the order is that of the
versions and modules. The order of routes has no influence, so that a route added later never
renames the models of a module that comes before it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from treefold_http.openapi._names import TakenNames, choose_free_name, fold_name, to_pascal_case
from treefold_router import parameter_name, version_number

_LOCAL = "Services"


class ClassOrigin:
    """Where a class is defined.

    Args:
        definition: the class, or any other object whose `__module__` says it; None for schemas of
            the framework.
    """

    def __init__(self, definition: Any) -> None:
        self.key: Hashable = id(definition)
        self.modules: Sequence[str] = str(getattr(definition, "__module__", None) or "").split(".")
        self.is_own = definition is None
        self.version = ""
        if self.modules[0] == "Api" and len(self.modules) > 2:
            self.version = self.modules[1]

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Sorts homes: the framework, shared modules, then versions, each by its folders."""
        place = 0 if self.is_own else 2 if self.version else 1
        return place, version_number(self.version) or 0, self.modules[:-1], self.modules

    @property
    def unversioned_modules(self) -> Sequence[str]:
        """The modules below the version."""
        return self.modules[2:] if self.version else self.modules

    @cached_property
    def prefix_folders(self) -> list[str]:
        """The folders that a name may have as its prefix, in PascalCase."""
        shown = self.unversioned_modules[:-1] if self.version else self.unversioned_modules
        fixed = (each for each in shown if parameter_name(each) is None)
        return [to_pascal_case(each) for each in fixed if each != _LOCAL]

    def iter_prefixes(self, *, skip_folder: bool) -> Iterator[str]:
        """Yield prefixes for a class name, the shortest first.

        Args:
            skip_folder: True if the last folder alone does not tell it from another class.
        """
        stem = to_pascal_case(self.unversioned_modules[-1].capitalize()) if self.version else ""
        for shown in (self.prefix_folders[-1:], self.prefix_folders):
            if shown and not skip_folder:
                yield "".join(shown)
            if stem:
                yield "".join([*shown, stem])


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
