"""What the import of modules enters into other modules of the project: a second import adds to it.

A list, dictionary or set of a module that stays, or of an object in it, that holds something else
after the import; and a class there that has a new subclass, with `__init_subclass__` or where the
project asks for `__subclasses__()`, which also returns the former one. A container
that requests change too does not count, unless it holds an object of the imported modules. A
container that is the same counts if it keeps functions or classes of the former modules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import FunctionType, ModuleType

from treefold_http._modules.containers import (
    Container,
    Contents,
    contains_objects_from,
    has_same_items,
    list_values,
    restore_container,
    snapshot_containers,
)


def holds_objects_from(
    module: ModuleType, project_modules: Collection[str], names: Collection[str]
) -> bool:
    """Return True if a container that a module leads to holds an object of some other modules."""
    return any(
        contains_objects_from(container, names)
        for container, _ in snapshot_containers(module, project_modules).values()
    )


class Registrations:
    """Compares the containers of modules that stay with those before an import.

    Args:
        modules: the modules that stay, by dotted name.
        own: the modules of the project.
        last: their contents at the end of the last reload.
    """

    def __init__(
        self,
        modules: Mapping[str, ModuleType],
        own: Collection[str],
        last: Mapping[str, Contents],
    ) -> None:
        self._before = {name: snapshot_containers(module, own) for name, module in modules.items()}
        self._last = last
        # differs from the end of the last reload, and none has run since: requests change it
        self._moving = {
            key
            for name, contents in self._before.items()
            for key, (_, copy) in contents.items()
            if name in last and key in last[name] and not has_same_items(last[name][key][1], copy)
        }

    def find_module_with_changed_containers(self, imported_modules: Collection[str]) -> str | None:
        """Return a module whose containers the import has changed, None without one.

        Args:
            imported_modules: the modules that were imported.
        """
        return next((name for name, _, _ in self._list_changed(imported_modules)), None)

    def _list_changed(
        self, imported_modules: Collection[str]
    ) -> Iterator[tuple[str, Container, Container]]:
        """Yield the containers that the import has changed: their module, themselves, a copy of
        before.
        """
        for name, contents in self._before.items():
            for key, (container, copy) in contents.items():
                if not has_same_items(container, copy) and (
                    key not in self._moving or contains_objects_from(container, imported_modules)
                ):
                    yield name, container, copy

    def find_module_that_keeps_objects(self, stale_modules: Collection[str]) -> str | None:
        """Return a module that kept a function or class of the former modules, None without one.

        A registry that takes no second function of a name, such as `found.setdefault(name, f)` or
        `if name not in found`, is the same after the import, and keeps the former function. What
        requests have put there since the last reload does not count.

        Args:
            stale_modules: the modules that are imported again.
        """
        for name, contents in self._before.items():
            for key, (_, copy) in contents.items():
                kept = {
                    id(value)
                    for value in list_values(copy)
                    if isinstance(value, (FunctionType, type)) and value.__module__ in stale_modules
                }
                if kept and name in self._last:
                    last = self._last[name].get(key)
                    kept.intersection_update(map(id, list_values(last[1]) if last else ()))
                if kept:
                    return name
        return None

    def restore_containers(self, imported_modules: Collection[str]) -> None:
        """Restore the former contents of the changed containers: running code uses them.

        Args:
            imported_modules: the modules that were imported.
        """
        for _, container, copy in self._list_changed(imported_modules):
            restore_container(container, copy)


def find_extended_class(
    imported_modules: Mapping[str, ModuleType],
    kept_modules: Collection[str],
    subclass_readers: Collection[str],
) -> tuple[str, str] | None:
    """Return an imported module and the name of a class that it extends, which counts subclasses.

    Args:
        imported_modules: the imported modules, by dotted name.
        kept_modules: the modules of the project that were not imported.
        subclass_readers: modules of the project that ask any class for its subclasses.
    """
    for name, module in imported_modules.items():
        for made in _list_own_classes(module):
            for base in made.__mro__[1:]:
                # the source does not tell which class is asked, so any base counts
                if base.__module__ in kept_modules and (
                    subclass_readers or "__init_subclass__" in vars(base)
                ):
                    return name, base.__qualname__
    return None


def _list_own_classes(module: ModuleType) -> Iterator[type]:
    values = list(vars(module).values())
    return (v for v in values if isinstance(v, type) and v.__module__ == module.__name__)
