"""The containers that the globals of a module lead to: what another module may enter itself into.

    Services/events.py           handlers = {"created": []}
    Api/v1/User/Post.py          handlers["created"].append(send_mail)

A list, dictionary or set counts, and those in it and in objects of the project's classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import ModuleType
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
    elif depth and read_module_name(value if isinstance(value, type) else type(value)) in own:
        # A slotted object has no dictionary: its containers are not seen.
        values = [v for k, v in list(getattr(value, "__dict__", {}).items()) if k[:2] != "__"]
    else:
        return
    for each in values:
        _collect_containers(each, own, found, depth - 1)


def read_module_name(value: Any) -> Any:
    """Return the name of the module that defines a value."""
    return getattr(value, "__module__", None)


def has_same_items(one: Container, other: Container) -> bool:
    """Return True if two containers hold the same objects, by identity."""
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


def list_values(container: Container) -> list[Any]:
    """Return the values of a container."""
    return list(container.values() if isinstance(container, dict) else container)


def contains_objects_from(container: Container, fresh: Collection[str]) -> bool:
    """Return True if a value of a container is defined in one of some modules."""
    return any(
        read_module_name(v if hasattr(v, "__name__") else type(v)) in fresh
        for v in list_values(container)
    )


def restore_container(container: Container, former: Container) -> None:
    """Restore the former contents of a container, which running code uses."""
    if isinstance(container, list):
        container[:] = cast("list[Any]", former)
    elif isinstance(container, dict):
        items = cast("dict[Any, Any]", former)
        # no `clear()` first: requests in other threads would find it empty for a moment
        for key in container.keys() - items.keys():
            del container[key]
        container.update(items)
    else:
        container &= cast("set[Any]", former)
        container |= cast("set[Any]", former)
