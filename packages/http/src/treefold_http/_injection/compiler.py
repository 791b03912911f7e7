"""Compile a contract to one flat coroutine function.

The source has one line for each step: `v0 = await f0()`, `v1 = await f1(config=v0)`, `return await
handler(db=v1)`. At run time there is no solver, no reflection and no dictionary of values. For a
handler behind a cache it is two functions: the steps that run before the look-up, and the rest,
which takes their values from `connection.notes.early`. The source holds only names made here and
parameter names of Python functions; everything else enters as an object.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import Any, cast

from treefold_http._injection.contract import Argument, Call, Contract, Input, Step
from treefold_http._responses.endpoints import Endpoint
from treefold_http._runtime.exit_callbacks import enter_async_generator, enter_sync_generator
from treefold_http._types.parameters import EMPTY
from treefold_http._types.validate import Errors
from treefold_http._wire.aliases import AnyCallable
from treefold_http._wire.errors import build_unprocessable_error


def compile_call(handler: AnyCallable, contract: Contract, values: Mapping[str, Any]) -> Endpoint:
    """Return a coroutine function that takes the connection and runs the steps and the handler.

    Args:
        values: `in_thread` and `app_value` of the application.
    """
    return _CallCompiler(values).compile(handler, contract)


def compile_split_call(
    handler: AnyCallable,
    contract: Contract,
    values: Mapping[str, Any],
    steps_before_cache: Sequence[int],
) -> tuple[Endpoint, Endpoint]:
    """Return two coroutine functions: one runs early steps, the other the rest and the handler.

    Args:
        steps_before_cache: the numbers of the early steps, in their order; none of them needs a
            later one.

    Returns:
        The first returns the values of its steps, which the second expects in
        `connection.notes.early`.
    """
    first = _CallCompiler(values).compile_steps_before_cache(contract, steps_before_cache)
    return first, _CallCompiler(values).compile(handler, contract, steps_before_cache)


class _CallCompiler:
    """Generates the source of one call; `names` are the objects that the source refers to."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.lines: list[str] = []
        self.collecting: set[int] = set()
        self.names: dict[str, Any] = {
            **values,
            "enter": enter_async_generator,
            "enter_sync_generator": enter_sync_generator,
            "check": _raise_errors,
            "sent": _build_optional_keyword,
        }

    def compile(
        self,
        handler: AnyCallable,
        contract: Contract,
        steps_before_cache: Sequence[int] = (),
    ) -> Endpoint:
        if steps_before_cache:
            self.lines.append(f"{_format_step_tuple(steps_before_cache)} = connection.notes.early")
        for index, step in enumerate(contract.steps):
            # the early steps have run already, before the look-up
            if index not in steps_before_cache:
                self.write_step(f"v{index}", step)
        self.names["handler"] = handler
        self.write_error_check(1)
        arguments = self.format_arguments(contract.arguments)
        self.lines.append(f"return {_format_call('handler', handler, arguments)}")
        return self.build_endpoint()

    def compile_steps_before_cache(
        self, contract: Contract, steps_before_cache: Sequence[int]
    ) -> Endpoint:
        for index in steps_before_cache:
            self.write_step(f"v{index}", contract.steps[index])
        self.lines.append(f"return {_format_step_tuple(steps_before_cache)}")
        return self.build_endpoint()

    def build_endpoint(self) -> Endpoint:
        body = "\n    ".join(self.lines)
        exec(_compile_source(f"async def run(connection):\n    {body}\n"), self.names)  # noqa: S102 - see the top
        return self.names["run"]

    def bind_unique_name(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def write_step(self, result_name: str, step: Step) -> None:
        """Write the lines of a step; `result_name` is the name of its result."""
        if isinstance(step, Input):
            if step.call not in self.collecting:
                self.collecting.add(step.call)
                self.lines.append(f"e{step.call} = []")
            waits = "await " if step.binder.waits else ""
            bind = self.bind_unique_name("b", step.binder.bind)
            self.lines.append(f"{result_name} = {waits}{bind}(connection, e{step.call})")
        elif isinstance(step, Call):
            # the inputs of this call are all read by now, so that their errors are sent together
            self.write_error_check(step.call)
            arguments = self.format_arguments(step.arguments)
            function = self.bind_unique_name("f", step.function)
            call = _format_dependency_call(function, step.function, arguments)
            self.lines.append(f"{result_name} = {call}")
        else:
            names = self.bind_unique_name("p", step.provider), self.bind_unique_name("m", step.make)
            self.lines.append(f"{result_name} = await app_value({', '.join(names)})")

    def write_error_check(self, call_number: int) -> None:
        if call_number in self.collecting:
            self.lines.append(f"if e{call_number}: check(e{call_number})")

    def format_arguments(self, arguments: tuple[Argument, ...]) -> str:
        return ", ".join(map(self.format_argument, arguments))

    def format_argument(self, argument: Argument) -> str:
        match argument.source:
            case "step":
                text = f"v{argument.of}"
            case "path":
                text = f"connection.path_params[{argument.of!r}]"
            case "background":
                text = "connection.background"
            case "default":
                text = self.bind_unique_name("d", argument.of)
            case _:
                text = "connection"
        if argument.name is None:
            return text
        if argument.omitted_for is EMPTY:
            return f"{argument.name}={text}"
        # the class calls its `default_factory` only where the argument is missing
        return (
            f"**sent({argument.name!r}, {text}, {self.bind_unique_name('d', argument.omitted_for)})"
        )


def _format_step_tuple(steps: Sequence[int]) -> str:
    return f"({', '.join(f'v{index}' for index in steps)},)"


def _format_call(name: str, function: AnyCallable, arguments: str) -> str:
    """The source that calls a handler: direct, awaited, or in a thread."""
    target = _find_called_function(function)
    if inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target):
        return f"{name}({arguments})"
    if inspect.iscoroutinefunction(target):
        return f"await {name}({arguments})"
    # `in_thread` also awaits a result: a plain wrapper may return a coroutine
    return f"await in_thread({name}{', ' if arguments else ''}{arguments})"


def _format_dependency_call(name: str, function: AnyCallable, arguments: str) -> str:
    """The source that calls a dependency: direct, awaited, entered, or in a thread."""
    target = _find_called_function(function)
    if inspect.isasyncgenfunction(target):
        return f"await enter({name}({arguments}), connection)"
    if inspect.isgeneratorfunction(target):
        return f"await enter_sync_generator({name}({arguments}), connection)"
    if isinstance(function, type):
        return f"{name}({arguments})"
    return _format_call(name, function, arguments)


def _find_called_function(call: AnyCallable) -> AnyCallable:
    """The function that is async or plain: the callable itself, or `__call__` of an instance.

    Wrappers are not unwrapped: a plain wrapper may never call the async function inside it.
    """
    if inspect.isroutine(call) or isinstance(call, (type, partial)):
        return cast("AnyCallable", call)
    return call.__call__  # an instance of a class with `__call__`


# calls of one shape have one source: the names in it are numbered, not those of the project
@lru_cache(maxsize=512)
def _compile_source(source: str) -> CodeType:
    return compile(source, "<injection plan>", "exec")


def _raise_errors(errors: Errors) -> None:
    raise build_unprocessable_error("request", errors)


def _build_optional_keyword(name: str, value: Any, default: Any) -> dict[str, Any]:
    return {} if value is default else {name: value}
