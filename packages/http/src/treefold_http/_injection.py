"""Parameters of a handler, planned at boot and compiled to one flat function per route.

`plan_call` walks a signature and its dependencies once, writes a coroutine with one line per
step and compiles it: `v0 = await f0()`, `v1 = await f1(config=v0)`, `return await handler(db=v1)`.
At run time there is no solver, no reflection and no dictionary of values. The source holds only
names made here and parameter names of Python functions; everything else enters as an object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, Literal, TypeAlias, cast

from treefold_http._background import BackgroundTasks
from treefold_http._connection import Connection
from treefold_http._dependencies import Dependency
from treefold_http._errors import UnprocessableEntity
from treefold_http._parameters import (
    InjectionError,
    annotation_of,
    label,
    parameters_of,
    split,
)
from treefold_http._providers import Provider, Providers
from treefold_http._request import Request
from treefold_http._select import Taken, check_bodies, lifted, select
from treefold_http._sources import EMPTY, Binder, Errors
from treefold_http._teardown import enter, enter_plain
from treefold_http._types import Endpoint
from treefold_http._websocket import WebSocket

Kind: TypeAlias = Literal["request", "websocket", "nothing"]
"""The connection of a call: a request, a socket, or none in a scope of the application."""

_FACTORY = "<factory>"
"""The repr of a `default_factory` in the signatures of dataclasses, structs and models."""
_GATHERING = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_CONNECTIONS: Mapping[Any, Kind] = {Request: "request", WebSocket: "websocket"}


def is_direct(handler: Callable[..., Any], name: str = "request") -> bool:
    """Return True if the only parameter is `name`, without a default (interface)."""
    if not isinstance(handler, FunctionType) or hasattr(handler, "__wrapped__"):
        parameters = list(inspect.signature(handler).parameters.values())
        return [(p.name, p.default) for p in parameters] == [(name, EMPTY)]
    code = handler.__code__  # a signature object would cost 10 us a file at boot
    alone = code.co_argcount == 1 and not code.co_kwonlyargcount
    gathers = code.co_flags & _GATHERING
    return alone and not gathers and code.co_varnames[0] == name and not handler.__defaults__


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """The context in which calls are planned; one for each application.

    Attributes:
        in_thread: runs a plain function in a worker thread.
        overrides: replacements of dependencies and providers.
        providers: values by type and name.
    """

    in_thread: Callable[..., Any]
    overrides: Mapping[Any, Callable[..., Any]]
    providers: Providers


def plan_call(
    handler: Callable[..., Any],
    injection: Injection,
    *,
    path_parameters: tuple[str, ...] = (),
    kind: Kind = "request",
    inside: tuple[Callable[..., Any], ...] = (),
) -> Endpoint:
    """Compile the call of a function, with all dependencies of its parameters.

    Args:
        handler: a handler, or any function for `Scope.call`.
        path_parameters: the names in `path_params` on this route.
        kind: the connection of the call.
        inside: the dependencies that are being planned already, to detect circles.

        Returns:
            A coroutine function that takes the connection and returns the handler's result.

    Raises:
        InjectionError: for a parameter that nothing can provide, or dependencies in a circle.
    """
    return Writer(injection, kind, path_parameters, inside).compile(handler)


class Writer:
    """Generates the source of one call; `names` are the objects that the source refers to."""

    def __init__(
        self,
        injection: Injection,
        kind: Kind,
        path_parameters: tuple[str, ...],
        inside: tuple[Callable[..., Any], ...],
    ) -> None:
        self.injection = injection
        self.kind: Kind = kind
        self.path_parameters = path_parameters
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "in_thread": injection.in_thread,
            "app_value": injection.providers.value,
            "enter": enter,
            "enter_plain": enter_plain,
            "check": _check,
            "sent": _sent,
        }
        self.values: dict[Callable[..., Any], str] = {}
        self.taken: list[Taken] = []
        self.open = list(inside)

    def compile(self, handler: Callable[..., Any]) -> Endpoint:
        arguments = self.arguments(handler)
        self.names["handler"] = handler
        self.lines.append(f"return {_call('handler', handler, arguments)}")
        body = "\n    ".join(self.lines)
        source = f"async def run(connection):\n    {body}\n"
        exec(_code(source), self.names)  # noqa: S102 - see the top of the module
        return self.names["run"]

    def name(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def arguments(self, function: Callable[..., Any]) -> str:
        """Generate the steps for the parameters of a function; return its argument list."""
        given: list[str] = []
        errors = self.name("e", None)  # one list per function, because their steps nest
        start = len(self.lines)
        bound: list[tuple[str, Binder]] = []
        for parameter in parameters_of(function):
            positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
            source = self.source(parameter, function)
            if source is None and not positional:
                continue
            if source is None:
                value = self.name("d", parameter.default)
            elif isinstance(source, Binder):
                bound.append((parameter.name, source))
                value = f"v{len(self.lines)}"
                waits = "await " if source.waits else ""
                bind = self.name("b", source.bind)
                self.lines.append(f"{value} = {waits}{bind}(connection, {errors})")
            else:
                value = source
            given.append(value if positional else self.named(parameter, value, function))
        if bound:
            self.taken += [(function, name, binder) for name, binder in bound]
            check_bodies(self.taken)
            self.lines.insert(start, f"{errors} = []")
            self.lines.append(f"if {errors}: check({errors})")
        return ", ".join(given)

    def named(self, parameter: inspect.Parameter, value: str, function: Callable[..., Any]) -> str:
        """Return the source of one argument.

        A parameter with a `default_factory` is left out of the call if the request has no value.
        """
        if not (isinstance(function, type) and repr(parameter.default) == _FACTORY):
            return f"{parameter.name}={value}"
        default = self.name("d", parameter.default)
        return f"**sent({parameter.name!r}, {value}, {default})"

    def source(
        self, parameter: inspect.Parameter, function: Callable[..., Any]
    ) -> str | Binder | None:
        """Return the source text of a parameter's value, or its binder; None for its own default.

        The order is that of the rulings: dependency, connection, path, provider, explicit source,
        body model, query.
        """
        name, default = parameter.name, parameter.default
        if name in ("request", "websocket"):
            return self.connection(name, function)
        if isinstance(default, Dependency) and default.call is not None:
            return self.dependency(default.call, function, cached=default.use_cache)
        whole = lifted(annotation_of(parameter, function), name, function)
        annotation, markers = split(whole)
        marker = next((m for m in (default, *markers) if isinstance(m, Dependency)), None)
        if marker is not None:
            return self.dependency(marker.call or annotation, function, cached=marker.use_cache)
        if annotation is Connection:  # a dependency for requests and sockets alike
            return self.connection("request" if self.kind == "nothing" else self.kind, function)
        if isinstance(annotation, type) and annotation in _CONNECTIONS:
            return self.connection(_CONNECTIONS[annotation], function)
        if name == "background" or annotation is BackgroundTasks:
            return "connection.background"
        if name in self.path_parameters and annotation in (EMPTY, str, Any) and not markers:
            return f"connection.path_params[{name!r}]"
        if name not in self.path_parameters:
            provider = self.injection.providers.find(annotation, name)
            if provider is not None:
                return self.provided(provider, annotation, function)
        return self.bound(parameter, annotation, markers, function)

    def bound(
        self,
        parameter: inspect.Parameter,
        annotation: Any,
        markers: tuple[Any, ...],
        function: Callable[..., Any],
    ) -> Binder | None:
        """Return the binder of a parameter that the client sends."""
        return select(
            parameter,
            annotation,
            markers,
            in_path=parameter.name in self.path_parameters,
            function=function,
            kind=self.kind,
        )

    def connection(self, wanted: str, function: Callable[..., Any]) -> str:
        if wanted != self.kind:
            raise InjectionError(
                f"{label(function)} asks for the {wanted}, and there is none here;"
                f" this call has {_HAS[self.kind]}"
            )
        return "connection"

    def provided(self, provider: Provider, key: Any, user: Callable[..., Any]) -> str:
        """Return the source text of a provider's value; with scope `app`, a value made once."""
        overrides = self.injection.overrides
        replacement = overrides.get(provider.factory) or (
            overrides.get(key) if isinstance(key, (type, str)) else None
        )
        if replacement is not None or provider.scope == "request":
            return self.dependency(replacement or provider.factory, user, cached=True)
        self.refuse_circle(provider.factory)
        make = plan_call(
            _returning(provider.factory), self.injection, kind="nothing", inside=tuple(self.open)
        )
        names = self.name("p", provider), self.name("m", make)
        value = f"v{len(self.lines)}"
        self.lines.append(f"{value} = await app_value({', '.join(names)})")
        return value

    def dependency(self, call: Any, user: Callable[..., Any], *, cached: bool) -> str:
        if not callable(call) or call is EMPTY:
            raise InjectionError(
                f"Depends() in {label(user)} has nothing to call; give it a function or a class"
            )
        call = self.injection.overrides.get(call, call)
        self.refuse_circle(call)
        if cached and call in self.values:
            return self.values[call]
        self.open.append(call)
        arguments = self.arguments(call)
        self.open.pop()
        function = self.name("f", call)
        value = f"v{len(self.lines)}"
        self.lines.append(f"{value} = {_provide(function, call, arguments)}")
        if cached:
            self.values[call] = value
        return value

    def refuse_circle(self, call: Callable[..., Any]) -> None:
        if call in self.open:
            circle = " -> ".join(label(f) for f in [*self.open[self.open.index(call) :], call])
            raise InjectionError(f"Dependencies run in a circle: {circle}; break it at one of them")


def _returning(factory: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that depends on the factory, so that a generator factory is entered."""

    async def give(value: Any = Dependency(factory)) -> Any:  # noqa: B008 - a marker
        return value

    return give


_HAS: Mapping[Kind, str] = {
    "request": "a request",
    "websocket": "a WebSocket",
    "nothing": "no connection",
}


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
    raise UnprocessableEntity("The request is not valid; `errors` says where", errors=errors)


def _sent(name: str, value: Any, default: Any) -> dict[str, Any]:
    return {} if value is default else {name: value}
