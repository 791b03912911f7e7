"""Compile a contract to one flat coroutine function.

The source has one line for each step: `v0 = await f0()`, `v1 = await f1(config=v0)`, `return await
handler(db=v1)`. At run time there is no solver, no reflection and no dictionary of values. For a
handler behind a cache it is two functions: the steps that run before the look-up, and the rest,
which takes their values from `connection.notes.early`. The source holds only names made here and
parameter names of Python functions; everything else enters as an object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import Any, cast

from treefold_http._injection.contract import Argument, Call, Contract, Input, Step
from treefold_http._responses.endpoints import Endpoint
from treefold_http._runtime.exit_callbacks import enter, enter_plain
from treefold_http._types.parameters import EMPTY
from treefold_http._types.validate import Errors
from treefold_http._wire.errors import unprocessable


def compile_call(
    handler: Callable[..., Any], contract: Contract, values: Mapping[str, Any]
) -> Endpoint:
    """Return a coroutine function that takes the connection and runs the steps and the handler.

    Args:
        values: `in_thread` and `app_value` of the application.
    """
    return _CallCompiler(values).compile(handler, contract)


def compile_split_call(
    handler: Callable[..., Any],
    contract: Contract,
    values: Mapping[str, Any],
    early: Sequence[int],
) -> tuple[Endpoint, Endpoint]:
    """Return two coroutine functions: one runs early steps, the other the rest and the handler.

    Args:
        early: the numbers of the early steps, in their order; none of them needs a later one.

    Returns:
        The first returns the values of its steps, which the second expects in
        `connection.notes.early`.
    """
    first = _CallCompiler(values).compile_early(contract, early)
    return first, _CallCompiler(values).compile(handler, contract, early)


class _CallCompiler:
    """Generates the source of one call; `names` are the objects that the source refers to."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.lines: list[str] = []
        self.collecting: set[int] = set()
        self.names: dict[str, Any] = {
            **values,
            "enter": enter,
            "enter_plain": enter_plain,
            "check": _check,
            "sent": _sent,
        }

    def compile(
        self, handler: Callable[..., Any], contract: Contract, early: Sequence[int] = ()
    ) -> Endpoint:
        if early:
            self.lines.append(f"{_tuple_of(early)} = connection.notes.early")
        for index, step in enumerate(contract.steps):
            if index not in early:
                self.step(f"v{index}", step)
        self.names["handler"] = handler
        self.check(1)
        self.lines.append(f"return {_call('handler', handler, self.joined(contract.arguments))}")
        return self.build()

    def compile_early(self, contract: Contract, early: Sequence[int]) -> Endpoint:
        for index in early:
            self.step(f"v{index}", contract.steps[index])
        self.lines.append(f"return {_tuple_of(early)}")
        return self.build()

    def build(self) -> Endpoint:
        body = "\n    ".join(self.lines)
        exec(_code(f"async def run(connection):\n    {body}\n"), self.names)  # noqa: S102 - see the top
        return self.names["run"]

    def name(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def step(self, value: str, step: Step) -> None:
        """Write the lines of a step; `value` is the name of its result."""
        if isinstance(step, Input):
            if step.call not in self.collecting:
                self.collecting.add(step.call)
                self.lines.append(f"e{step.call} = []")
            waits = "await " if step.binder.waits else ""
            bind = self.name("b", step.binder.bind)
            self.lines.append(f"{value} = {waits}{bind}(connection, e{step.call})")
        elif isinstance(step, Call):
            self.check(step.call)
            arguments, function = self.joined(step.arguments), self.name("f", step.function)
            self.lines.append(f"{value} = {_provide(function, step.function, arguments)}")
        else:
            names = self.name("p", step.provider), self.name("m", step.make)
            self.lines.append(f"{value} = await app_value({', '.join(names)})")

    def check(self, call: int) -> None:
        if call in self.collecting:
            self.lines.append(f"if e{call}: check(e{call})")

    def joined(self, arguments: tuple[Argument, ...]) -> str:
        return ", ".join(map(self.argument, arguments))

    def argument(self, argument: Argument) -> str:
        match argument.source:
            case "step":
                text = f"v{argument.of}"
            case "path":
                text = f"connection.path_params[{argument.of!r}]"
            case "background":
                text = "connection.background"
            case "default":
                text = self.name("d", argument.of)
            case _:
                text = "connection"
        if argument.name is None:
            return text
        if argument.omitted_for is EMPTY:
            return f"{argument.name}={text}"
        return f"**sent({argument.name!r}, {text}, {self.name('d', argument.omitted_for)})"


def _tuple_of(steps: Sequence[int]) -> str:
    return f"({', '.join(f'v{index}' for index in steps)},)"


def _call(name: str, function: Callable[..., Any], arguments: str) -> str:
    """The source that calls a handler: direct, awaited, or in a thread."""
    target = _target(function)
    if inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target):
        return f"{name}({arguments})"
    if inspect.iscoroutinefunction(target):
        return f"await {name}({arguments})"
    return f"await in_thread({name}{', ' if arguments else ''}{arguments})"


def _provide(name: str, function: Callable[..., Any], arguments: str) -> str:
    """The source that calls a dependency: direct, awaited, entered, or in a thread."""
    target = _target(function)
    if inspect.isasyncgenfunction(target):
        return f"await enter({name}({arguments}), connection)"
    if inspect.isgeneratorfunction(target):
        return f"await enter_plain({name}({arguments}), connection)"
    if isinstance(function, type):
        return f"{name}({arguments})"
    return _call(name, function, arguments)


def _target(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is async or plain: the callable itself, or `__call__` of an instance.

    Wrappers are not unwrapped: a plain wrapper may never call the async function inside it.
    """
    if inspect.isroutine(call) or isinstance(call, (type, partial)):
        return cast("Callable[..., Any]", call)
    return call.__call__  # an instance of a class with `__call__`


@lru_cache(maxsize=512)
def _code(source: str) -> CodeType:
    return compile(source, "<injection plan>", "exec")


def _check(errors: Errors) -> None:
    raise unprocessable("request", errors)


def _sent(name: str, value: Any, default: Any) -> dict[str, Any]:
    return {} if value is default else {name: value}
