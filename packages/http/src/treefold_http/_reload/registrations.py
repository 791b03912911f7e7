"""What the import of modules enters into other modules of the project: a second import adds to it.

A list, dictionary or set of a module that stays, or of an object in it, that holds something else
after the import; and a class there that has a new subclass, with `__init_subclass__` or where the
project asks for `__subclasses__()`, which also returns the former one. A container
that requests change too does not count, unless it holds an object of the imported modules. A
container that is the same counts if it keeps functions or classes of the former modules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, TypeAlias, cast

Container: TypeAlias = "list[Any] | dict[Any, Any] | set[Any]"
Contents: TypeAlias = dict[int, tuple[Container, Container]]
"""By identity, the containers of a module with copies of them."""

_CONTAINERS = (list, dict, set)
_DEPTH = 3
"""Levels below a global that are searched: `{"events": {"created": [handler]}}` has three."""
_LONGEST = 1000
"""Most elements of a container that are searched for further containers."""


def snapshot_containers(module: ModuleType, project_modules: Collection[str]) -> Contents:
    """Return the containers that the globals of a module lead to, with shallow copies.

    Args:
        module: the module.
        project_modules: the modules of the project: only objects of their classes are looked into.
    """
    found: Contents = {}
    for name, value in list(vars(module).items()):
        # `__builtins__` and `__path__` are containers that the code of the module has not made
        if not name.startswith("__"):
            _collect_containers(value, project_modules, found, _DEPTH)
    return found


def _collect_containers(value: Any, own: Collection[str], found: Contents, depth: int) -> None:
    if isinstance(value, _CONTAINERS):
        container = cast("Container", value)
        if id(container) in found:
            return
        # the container itself is kept too: the id of one that was freed may return for another
        found[id(container)] = (container, container.copy())
        inner: Iterable[Any] = container.values() if isinstance(container, dict) else container
        values = list(inner)[:_LONGEST] if depth else []
    elif depth and _read_module_name(value if isinstance(value, type) else type(value)) in own:
        # A slotted object has no dictionary: its containers are not seen.
        values = [v for k, v in list(getattr(value, "__dict__", {}).items()) if k[:2] != "__"]
    else:
        return
    for each in values:
        _collect_containers(each, own, found, depth - 1)


def _read_module_name(value: Any) -> Any:
    return getattr(value, "__module__", None)


def holds_objects_from(
    module: ModuleType, project_modules: Collection[str], names: Collection[str]
) -> bool:
    """Return True if a container that a module leads to holds an object of some other modules."""
    return any(
        _contains_objects_from(container, names)
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
            if name in last and key in last[name] and not _has_same_items(last[name][key][1], copy)
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
                if not _has_same_items(container, copy) and (
                    key not in self._moving or _contains_objects_from(container, imported_modules)
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
                    for value in _list_values(copy)
                    if isinstance(value, (FunctionType, type)) and value.__module__ in stale_modules
                }
                if kept and name in self._last:
                    last = self._last[name].get(key)
                    kept.intersection_update(map(id, _list_values(last[1]) if last else ()))
                if kept:
                    return name
        return None

    def restore_containers(self, imported_modules: Collection[str]) -> None:
        """Restore the former contents of the changed containers: running code uses them.

        Args:
            imported_modules: the modules that were imported.
        """
        for _, container, copy in self._list_changed(imported_modules):
            if isinstance(container, list):
                container[:] = cast("list[Any]", copy)
            elif isinstance(container, dict):
                former = cast("dict[Any, Any]", copy)
                # no `clear()` first: requests in other threads would find it empty for a moment
                for key in container.keys() - former.keys():
                    del container[key]
                container.update(former)
            else:
                container &= cast("set[Any]", copy)
                container |= cast("set[Any]", copy)


def _has_same_items(one: Container, other: Container) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, dict):
        table = cast("dict[Any, Any]", other)
        # by identity: an equal object of the new module is another one, and `==` may run any code
        return all(key in table and table[key] is value for key, value in list(one.items()))
    if isinstance(one, set):
        return one == other
    # not strict: a request in another thread may append after the comparison of the lengths
    return all(a is b for a, b in zip(one, other, strict=False))


def _list_values(container: Container) -> list[Any]:
    return list(container.values() if isinstance(container, dict) else container)


def _contains_objects_from(container: Container, fresh: Collection[str]) -> bool:
    return any(
        _read_module_name(v if hasattr(v, "__name__") else type(v)) in fresh
        for v in _list_values(container)
    )


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
