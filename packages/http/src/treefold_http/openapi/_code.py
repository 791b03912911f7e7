"""Read the bytecode of a function: the errors that it raises, the form of body that it reads.

`raise NotFound(...)` and `await request.json()` stand in the bytecode as plainly as in the source,
and so does the model in `websocket.iter_json(Move)`. Only literal values are used; a computed
status is not guessed.
"""

from __future__ import annotations

import builtins
import dis
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

from treefold_http._errors import HTTPError
from treefold_http._events import EventStream
from treefold_http._parameters import EMPTY


class Reading(NamedTuple):
    """Result of reading a function.

    Attributes:
        statuses: statuses of the errors that it raises.
        calls: methods of the connection that it uses, such as `json`.
        events: True if it creates an event stream.
        models: the types that messages are parsed into; EMPTY for any JSON.
    """

    statuses: frozenset[int] = frozenset()
    calls: frozenset[str] = frozenset()
    events: bool = False
    models: tuple[Any, ...] = ()


_NOTHING = Reading()
_READERS = frozenset({"json", "form", "files", "parts", "body", "stream"}) | {
    f"{verb}_{kind}" for verb in ("receive", "iter", "send") for kind in ("text", "bytes", "json")
}
_TYPED = ("receive_json", "iter_json")
_ENDS = ("STORE_", "POP_TOP", "RETURN_", "CHECK_EXC_MATCH")


def read_code(function: Callable[..., Any]) -> Reading:
    """Read the code of a handler or a dependency."""
    plain = _function(function)
    if plain is None:
        return _NOTHING
    code = plain.__code__
    names = code.co_names
    known = {name: plain.__globals__.get(name) for name in names}
    errors = {name: kind for name, kind in known.items() if _is_a(kind, HTTPError)}
    calls = _READERS.intersection(names)
    events = any(_is_a(kind, EventStream) for kind in known.values())
    called = tuple(_called(code, plain.__globals__)) if calls else ()
    return Reading(
        frozenset(_raised(code, errors) if errors else ()),
        frozenset(name for name, _ in called),
        events,
        tuple(model for name, model in called if name in _TYPED),
    )


def _function(function: Any) -> FunctionType | None:
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    function = getattr(function, "__func__", function)
    return function if isinstance(function, FunctionType) else None


def _is_a(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _raised(code: CodeType, errors: dict[str, Any]) -> Iterator[int]:
    """Yield the status of each `raise`, from the last error name before it in the bytecode."""
    status: int | None = None
    computed = False
    for step in dis.get_instructions(code):
        name = step.opname
        if name in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in errors:
            kind: Any = errors[step.argval]
            status, computed = getattr(kind, "code", None), kind is HTTPError
        elif computed and name.startswith("LOAD_"):
            computed = False
            number = _number(step.argval)
            status = number if name in ("LOAD_CONST", "LOAD_SMALL_INT") else None
        elif name == "RAISE_VARARGS" and step.arg:
            if status is not None:
                yield status
            status = None
        elif name.startswith(_ENDS):
            status = None


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 400 <= value <= 599 else None


def _called(code: CodeType, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The readers that are looked up on a parameter, and the model that each is given."""
    parameters = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    loaded: str | None = None
    steps = list(dis.get_instructions(code))
    for place, step in enumerate(steps):
        looks_up = step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if looks_up and step.argval in _READERS and loaded in parameters:
            yield step.argval, _argument(steps[place + 1 :], names)
        loaded = None
        if step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
            value: Any = step.argval
            loaded = cast("str", value[-1] if isinstance(value, tuple) else value)


def _argument(steps: Iterable[dis.Instruction], names: Mapping[str, Any]) -> Any:
    """The one argument of the call that comes next: names of types, with `|` or in brackets."""
    stack: list[Any] = []
    try:
        for step in steps:
            name, value = step.opname, step.argval
            if name == "LOAD_GLOBAL":
                stack.append(names[value] if value in names else vars(builtins)[value])
            elif name in ("LOAD_ATTR", "LOAD_METHOD"):
                stack.append(getattr(stack.pop(), value))
            elif name == "BUILD_TUPLE":
                stack[-value:] = [tuple(stack[-value:])]
            elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]"):
                stack[-2:] = [stack[-2][stack[-1]]]
            elif name == "BINARY_OP" and step.argrepr == "|":
                stack[-2:] = [stack[-2] | stack[-1]]
            elif name.startswith("CALL"):
                return stack[0] if len(stack) == 1 else EMPTY
            elif name not in _NO_VALUES and not (name == "LOAD_CONST" and value == ("model",)):
                return EMPTY
    except (KeyError, IndexError, AttributeError, TypeError):
        pass  # a name that is not there yet, or no type
    return EMPTY


_NO_VALUES = ("PRECALL", "KW_NAMES", "PUSH_NULL", "CACHE")
