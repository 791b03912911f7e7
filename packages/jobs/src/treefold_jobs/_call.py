"""A call that can be kept: the name of a function, and arguments that are JSON.

Both are checked where the job is enqueued, so that a mistake is an error of the request that made
it, not of a worker later. Nothing here knows a database.
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, cast

from treefold_jobs._delivery import AT_ONCE, Delivery

JSON = "text, numbers, booleans, None, lists, and dicts with text as keys"
WAY_OUT = "pass the key of a row, or text, and read the object in the job"
OPTIONS = frozenset(("at", "delay", "unique"))
"""Of `later`; the keyword arguments of `enqueue` are those of the function."""
MAX_DEPTH = 100
"""Levels of an argument: no call needs as many, and a list that holds itself has no end."""

_type: Callable[[Any], Any] = type  # typed for any argument, for the type checker


@dataclass(frozen=True, slots=True)
class Call:
    """A function by its name, as `Services.mail:send`, and its arguments.

    Attributes:
        request_id: the id of the request that enqueued it; empty outside of one.
        delivery: its options; those of a job that was read from the queue are not known.
    """

    function: str
    args: list[Any]
    kwargs: dict[str, Any]
    request_id: str = ""
    delivery: Delivery = AT_ONCE

    @property
    def unique_name(self) -> str:
        """The name that no other waiting job may have; empty without one."""
        return f"{self.function} {self.delivery.unique}" if self.delivery.unique else ""

    def to_json(self) -> str:
        """Return the call as text, without the request."""
        return json.dumps({"function": self.function, "args": self.args, "kwargs": self.kwargs})

    @classmethod
    def from_json(cls, text: str | bytes, request_id: str = "") -> Call:
        """Return the call that `to_json` has written.

        Raises:
            ValueError: the text is something else.
        """
        read = json.loads(text)
        try:
            return cls(read["function"], read["args"], read["kwargs"], request_id)
        except (TypeError, KeyError):
            raise ValueError("The payload is not one that enqueue() has written") from None

    def copy(self) -> Call:
        """Return the call with arguments that share nothing with those of this one."""
        read = Call.from_json(self.to_json())
        return replace(read, request_id=self.request_id, delivery=self.delivery)

    def resolve(self) -> Callable[..., Any]:
        """Import the function.

        Raises:
            ImportError: there is no such module, or no such function in it.
        """
        module, _, name = self.function.partition(":")
        found = getattr(importlib.import_module(module), name, None)
        if not isinstance(found, FunctionType):
            raise ImportError(f"Module {module!r} has no function {name!r}")
        return found


def build_checked_call(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Call:
    """Return the checked call of a function.

    Raises:
        TypeError: the function cannot be imported by name, does not take these arguments, or one of
            them is not JSON.
    """
    name = require_importable_name(fn)
    try:
        bound = inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as error:
        hint = ""
        if "missing" in str(error):
            hint = "; give a parameter that is injected a default, as in x: X = Depends()"
        elif "unexpected keyword" in str(error) and OPTIONS & kwargs.keys():
            option = min(OPTIONS & kwargs.keys())
            hint = f"; options are bound before: later(fn, {option}=...)(...)"
        failure = TypeError(f"{name} cannot be called with these arguments: {error}{hint}")
    else:
        for parameter, value in bound.arguments.items():
            _require_json_argument(name, parameter, value, bound.signature.parameters[parameter])
        return Call(name, list(args), dict(kwargs))
    raise failure


def require_importable_name(fn: Callable[..., Any]) -> str:
    """Return the name by which a worker imports a function, as `Services.mail:send`.

    Raises:
        TypeError: it has none.
    """
    shown: str = getattr(fn, "__qualname__", None) or repr(fn)
    if not isinstance(fn, FunctionType):
        raise TypeError(f"A job must be a function of a module, got {_describe_kind(fn)} {shown!r}")
    module, name = fn.__module__, fn.__qualname__
    if "<lambda>" in name:
        raise TypeError("A job must be a function of a module, got a lambda; give it a name there")
    if "<locals>" in name:
        raise TypeError(
            f"A job must be a function of a module, got {name!r}, which is nested; move it to the"
            " top level"
        )
    if "." in name:
        raise TypeError(f"A job must be a function of a module, got the method {name!r}")
    if module == "__main__":
        raise TypeError(
            f"A worker cannot import {name!r} from '__main__'; put it into a module, such as"
            " Services/jobs.py"
        )
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"A job must be a function that returns, got the generator {name!r}")
    found = getattr(sys.modules.get(module), name, None)
    # by name: a request that began before a reload holds the former object of the function
    if (getattr(found, "__module__", ""), getattr(found, "__qualname__", "")) != (module, name):
        raise TypeError(f"A worker finds no function {name!r} in {module!r}; define it there")
    return f"{module}:{name}"


def _describe_kind(fn: Any) -> str:
    if inspect.ismethod(fn):
        return "the method"
    return "the class" if isinstance(fn, type) else type(fn).__name__


def _require_json_argument(
    function: str, name: str, value: Any, parameter: inspect.Parameter
) -> None:
    if parameter.kind is parameter.VAR_POSITIONAL:
        # *args arrive as a tuple, whatever the caller has given
        value = list(value)
    if found := _describe_non_json_part(value, name, 0):
        raise TypeError(
            f"Arguments of a job are JSON ({JSON}), got {found} of {function}; {WAY_OUT}"
        )


def _describe_non_json_part(value: Any, path: str, depth: int) -> str:
    """Return the first part of a value that is not JSON, by type and place: values may be secret.

    Types are compared exactly: a tuple would arrive as a list, and an enum as text.
    """
    kind = _type(value)
    if value is None or kind in {str, bool, int}:
        return ""
    if kind is float:
        # json.dumps() writes NaN and Infinity, which are no JSON
        return "" if math.isfinite(value) else f"{value!r} in {path!r}"
    # ends at a list that holds itself, too
    if depth == MAX_DEPTH:
        return f"more than {MAX_DEPTH} levels in {path.partition('[')[0]!r}"
    if kind is list:
        items = enumerate(cast("list[Any]", value))
        return _first_nonempty(
            _describe_non_json_part(item, f"{path}[{n}]", depth + 1) for n, item in items
        )
    if kind is dict:
        pairs = cast("dict[Any, Any]", value)
        # json.dumps() turns {1: 2} into {"1": 2}, and the job would get another dictionary
        if wrong := next((key for key in pairs if type(key) is not str), None):
            return f"a key of type {type(wrong).__name__} in {path!r}"
        found = (
            _describe_non_json_part(item, f"{path}[{key!r}]", depth + 1)
            for key, item in pairs.items()
        )
        return _first_nonempty(found)
    return f"{kind.__name__} in {path!r}"


def _first_nonempty(found: Iterator[str]) -> str:
    return next(filter(None, found), "")
