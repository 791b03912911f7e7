"""Which objects the code of a project refers to: functions that a handler calls, errors it raises.

Reads compiled code of functions that are imported already: a name stands for the object that it
has in the module of the function, so that an alias is found and a namesake is not. Functions of the
project are followed; those of libraries are not.

    from treefold.auth import averify_password as check     # Services/accounts.py
    async def is_right(user, password): return await check(password, user.hash)

    async def handler(...): await is_right(...)              # refers to averify_password
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias, cast

_OURS = ("treefold", "treefold_http")
_HOOKS = frozenset(
    {"__init__", "__call__", "__enter__", "__aenter__", "before", "after", "http", "websocket"}
)
"""Methods that run without being named where an object is used."""
_Step: TypeAlias = tuple[FunctionType, type | None]
"""A function to read, and the class that it was found in."""


@dataclass(slots=True)
class References:
    """What some functions refer to.

    Attributes:
        objects: the objects, by identity; they are kept so that no identity is used twice.
        names: the names in the code.
        constants: numbers in the code.
    """

    objects: dict[int, Any] = field(default_factory=dict[int, Any])
    names: set[str] = field(default_factory=set[str])
    constants: set[int] = field(default_factory=set[int])

    def merge_references(self, other: References) -> None:
        """Add other references."""
        self.objects |= other.objects
        self.names |= other.names
        self.constants |= other.constants

    def includes_any(self, *targets: Any) -> bool:
        """Return True if one of the objects is referred to."""
        return any(id(target) in self.objects for target in targets)


class ReferenceReader:
    """Reads references of the functions of one project; each function once.

    Args:
        root: the application root.
    """

    def __init__(self, root: Path) -> None:
        # with a separator at its end, or `/srv/shop2` would be inside of `/srv/shop`
        self._inside = os.path.join(os.path.realpath(root), "")
        self._direct: dict[_Step, tuple[References, list[_Step]]] = {}

    def read(self, functions: Iterable[Any]) -> References:
        """Return what functions refer to, directly or through other functions of the project.

        Args:
            functions: functions, methods, classes and objects. Of a class, its hooks are read, and
                the methods that the code of these functions names.
        """
        functions = list(functions)
        names = {name for each in functions for name in collect_code_names(each)}
        found = References()
        waiting = [step for each in functions for step in _yield_functions_run_by(each, names)]
        seen: set[_Step] = set()
        while waiting:
            step = waiting.pop()
            if step not in seen:
                seen.add(step)
                direct, called = self._read_direct_references(step)
                found.merge_references(direct)
                waiting += called
        return found

    def _read_direct_references(self, step: _Step) -> tuple[References, list[_Step]]:
        if step not in self._direct:
            function, owner = step
            direct = References()
            called: list[_Step] = []
            for value in _collect_names_yield_objects(function, direct):
                direct.objects[id(value)] = value
                called += _yield_functions_run_by(value, direct.names)
            if owner is not None:
                called += _find_hooks_and_methods(owner, direct.names)
            own = [each for each in called if self._is_project_function(each[0])]
            self._direct[step] = (direct, own)
        return self._direct[step]

    def _is_project_function(self, function: FunctionType) -> bool:
        return os.path.realpath(function.__code__.co_filename).startswith(self._inside)


def _yield_functions_run_by(value: Any, method_names: Collection[str]) -> Iterator[_Step]:
    """Yield the functions that using a value may run, with the class of methods."""
    while isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, MethodType):
        yield value.__func__, type(value.__self__)
    elif isinstance(value, FunctionType):
        yield value, None
        inner = inspect.unwrap(value)
        if isinstance(inner, FunctionType) and inner is not value:
            yield inner, None
    elif isinstance(value, type):
        yield from _find_hooks_and_methods(value, method_names)
    elif not isinstance(value, ModuleType) and type(value).__module__ != "builtins":
        yield from _find_hooks_and_methods(cast("type[object]", type(value)), method_names)


def _find_hooks_and_methods(owner: type, names: Collection[str]) -> Iterator[_Step]:
    for each in owner.__mro__[:-1]:
        for name, member in vars(each).items():
            if name in _HOOKS or name in names:
                # of a property its getter, of a class method or a static method the function inside
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    yield function, owner


def _collect_names_yield_objects(function: FunctionType, found: References) -> Iterator[Any]:
    for code in _walk_code(function.__code__):
        found.names |= set(code.co_names)
        found.constants |= {each for each in code.co_consts if type(each) is int}
        values = [function.__globals__[n] for n in code.co_names if n in function.__globals__]
        # The name of a module that the function itself imports; another use of it does no harm.
        values += [sys.modules[name] for name in code.co_names if name in sys.modules]
        seen: set[int] = set()
        while values:
            value = values.pop()
            yield value
            if isinstance(value, ModuleType) and id(value) not in seen:
                seen.add(id(value))
                values += _read_attributes(value, code.co_names)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is filled later
            continue


def _walk_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _walk_code(each)


def _read_attributes(module: ModuleType, names: Iterable[str]) -> Iterator[Any]:
    is_ours = module.__name__.partition(".")[0] in _OURS  # its names load at first use
    for name in names:
        # `getattr` could run the `__getattr__` of a library, which may import or warn
        value = getattr(module, name, None) if is_ours else vars(module).get(name)
        if value is not None:
            yield value


def collect_code_names(value: Any) -> set[str]:
    """Return the names of attributes and globals in the code of a function itself."""
    functions = [function for function, _ in _yield_functions_run_by(value, ())]
    return {n for each in functions for code in _walk_code(each.__code__) for n in code.co_names}
