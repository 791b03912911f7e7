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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_OURS = ("treefold", "treefold_http")


@dataclass(slots=True)
class References:
    """What some functions refer to.

    Attributes:
        objects: the objects, by identity; they are kept so that no identity is used twice.
        names: the names in the code, for imports inside of functions.
        constants: numbers in the code.
    """

    objects: dict[int, Any] = field(default_factory=dict[int, Any])
    names: set[str] = field(default_factory=set[str])
    constants: set[int] = field(default_factory=set[int])

    def add(self, other: References) -> None:
        """Add other references."""
        self.objects |= other.objects
        self.names |= other.names
        self.constants |= other.constants

    def includes(self, *targets: Any) -> bool:
        """Return True if one of the objects is referred to."""
        return any(id(target) in self.objects for target in targets)


class ReferenceReader:
    """Reads references of the functions of one project; each function once.

    Args:
        root: the application root.
    """

    def __init__(self, root: Path) -> None:
        self._inside = os.path.join(os.path.realpath(root), "")
        self._direct: dict[FunctionType, tuple[References, list[FunctionType]]] = {}

    def read(self, functions: Iterable[Any]) -> References:
        """Return what functions refer to, directly or through other functions of the project.

        Args:
            functions: functions, methods, classes and objects.
        """
        found = References()
        waiting = [each for value in functions for each in _functions_of(value)]
        seen: set[FunctionType] = set()
        while waiting:
            function = waiting.pop()
            if function in seen:
                continue
            seen.add(function)
            direct, called = self._read_one(function)
            found.add(direct)
            waiting += called
        return found

    def _read_one(self, function: FunctionType) -> tuple[References, list[FunctionType]]:
        if function not in self._direct:
            direct = References()
            called: list[FunctionType] = []
            for value in _referred(function, direct):
                direct.objects[id(value)] = value
                called += (each for each in _functions_of(value) if self._is_own(each))
            self._direct[function] = direct, called
        return self._direct[function]

    def _is_own(self, function: FunctionType) -> bool:
        return os.path.realpath(function.__code__.co_filename).startswith(self._inside)


def _functions_of(value: Any) -> Iterator[FunctionType]:
    """Yield the functions that calling a value may run."""
    while isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        yield value
        inner = inspect.unwrap(value, stop=lambda each: not hasattr(each, "__wrapped__"))
        if isinstance(inner, FunctionType) and inner is not value:
            yield inner
    elif isinstance(value, type):
        yield from (each for each in vars(value).values() if isinstance(each, FunctionType))
    elif not isinstance(value, ModuleType) and type(value).__module__ != "builtins":
        yield from _functions_of(type(value))


def _referred(function: FunctionType, found: References) -> Iterator[Any]:
    for code in _nested(function.__code__):
        found.names |= set(code.co_names)
        found.constants |= {each for each in code.co_consts if type(each) is int}
        values = [function.__globals__[n] for n in code.co_names if n in function.__globals__]
        seen: set[int] = set()
        while values:
            value = values.pop()
            yield value
            if isinstance(value, ModuleType) and id(value) not in seen:
                seen.add(id(value))
                values += _attributes(value, code.co_names)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is filled later
            continue


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _nested(each)


def _attributes(module: ModuleType, names: Iterable[str]) -> Iterator[Any]:
    is_ours = module.__name__.partition(".")[0] in _OURS  # its names load at first use
    for name in names:
        value = getattr(module, name, None) if is_ours else vars(module).get(name)
        if value is not None:
            yield value


def code_names(function: Callable[..., Any]) -> set[str]:
    """Return the names of attributes and globals in the code of a function itself."""
    return {name for each in _functions_of(function) for name in each.__code__.co_names}
