"""Resolve the parameters of a handler to its contract, once, at boot.

The walk over a signature and its dependencies is here; `compiler` turns the steps into a coroutine,
and the documents read the inputs. What cannot be resolved is an error of the file at boot.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, Literal, TypeAlias

from treefold_http._extensions.calls import find_parameter_function
from treefold_http._injection.compiler import compile_call, compile_split_call
from treefold_http._injection.contract import OPAQUE, Argument, Call, Contract, Input, Shared, Step
from treefold_http._injection.dependencies import Dependency, Depends
from treefold_http._injection.early_steps import find_steps_before_cache
from treefold_http._injection.extension_inputs import build_extension_input
from treefold_http._injection.inherited import (
    BaseHandler,
    build_inherited_dependency,
    is_inherited,
)
from treefold_http._injection.markers import find_marker
from treefold_http._injection.providers import Provider, Providers
from treefold_http._injection.resolve_source import resolve_source
from treefold_http._injection.secured import (
    Security,
    build_scope_checks,
    merge_security_requirements,
    read_security,
)
from treefold_http._injection.single_body import Taken, refuse_multiple_bodies
from treefold_http._requests.connection import Connection
from treefold_http._requests.request import Request
from treefold_http._responses.endpoints import Endpoint
from treefold_http._runtime.background import BackgroundTasks
from treefold_http._types.parameters import EMPTY, InjectionError, format_callable, list_parameters
from treefold_http._types.read import parse_annotation, resolve_annotation
from treefold_http._types.tree import ForeignType
from treefold_http._websockets.websocket import WebSocket
from treefold_http._wire.aliases import AnyCallable

Kind: TypeAlias = Literal["request", "websocket", "nothing"]
"""The connection of a call: a request, a socket, or none in a scope of the application."""

Bases: TypeAlias = Mapping[str, BaseHandler]
NO_BASES: Bases = {}

_FACTORY = "<factory>"
"""The repr of a `default_factory` in the signatures of dataclasses, structs and models."""
FUNCTION_MARK = "__treefold_parameters__"
"""The attribute of a step that names the function of an extension which it calls."""
_GATHERING = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_CONNECTIONS: Mapping[Any, Kind] = {Request: "request", WebSocket: "websocket"}


def has_only_parameter(handler: AnyCallable, name: str = "request") -> bool:
    """Return True if the only parameter is `name`, without a default."""
    # `inspect.signature` follows `__wrapped__`, and the code of a wrapper says (*args, **kwargs)
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
        extensions: those that may know types of parameters and results; filled by the boot.
    """

    in_thread: AnyCallable
    overrides: Mapping[Any, AnyCallable]
    providers: Providers
    extensions: list[Any] = field(default_factory=list[Any])

    def find_call_values(self) -> Mapping[str, AnyCallable]:
        """Return what compiled calls use, by name."""
        make = self.providers.get_or_make_app_value
        return {"in_thread": self.in_thread, "app_value": make}


def plan_call(
    handler: AnyCallable,
    injection: Injection,
    *,
    path_parameters: tuple[str, ...] = (),
    kind: Kind = "request",
    ancestors: tuple[AnyCallable, ...] = (),
    bases: Bases = NO_BASES,
) -> tuple[Endpoint, Contract]:
    """Resolve the parameters of a function and compile its call.

    Args:
        handler: a handler, or any function for `Scope.call`.
        path_parameters: the names in `path_params` on this route.
        kind: the connection of the call.
        ancestors: the dependencies that are being planned already, to detect circles.
        bases: by parameter, the handler of a base version that it calls.

    Returns:
        A coroutine function that takes the connection and returns the handler's result, and the
        contract that it was made from.

    Raises:
        InjectionError: for a parameter that nothing can provide, or dependencies in a circle.
    """
    contract = _Resolver(injection, kind, path_parameters, ancestors).resolve(handler, bases)
    return compile_call(handler, contract, injection.find_call_values()), contract


def plan_call_behind_cache(
    handler: AnyCallable,
    injection: Injection,
    *,
    path_parameters: tuple[str, ...] = (),
    bases: Bases = NO_BASES,
) -> tuple[Endpoint | None, Endpoint, Contract]:
    """Resolve the parameters of a handler behind a cache, as `plan_call`.

    Returns:
        The dependencies that run before the look-up, None if there are none; the rest with the
        handler; and the contract.

    Raises:
        InjectionError: as `plan_call`.
    """
    contract = _Resolver(injection, "request", path_parameters, ()).resolve(handler, bases)
    values = injection.find_call_values()
    if not (early := find_steps_before_cache(contract)):
        return None, compile_call(handler, contract, values), contract
    return *compile_split_call(handler, contract, values, early), contract


def build_connection_only_contract(handler: AnyCallable) -> Contract:
    """Return the contract of a handler that takes the connection alone."""
    security = merge_security_requirements(read_security(handler))
    return replace(OPAQUE, security=security) if security else OPAQUE


class _Resolver:
    """Resolves one handler; `steps` are added as parameters are resolved."""

    def __init__(
        self,
        injection: Injection,
        kind: Kind,
        path_parameters: tuple[str, ...],
        inside: tuple[AnyCallable, ...],
    ) -> None:
        self.injection = injection
        self.kind: Kind = kind
        self.path_names: Mapping[str, str] = {name: name for name in path_parameters}
        self.steps: list[Step] = []
        self.values: dict[AnyCallable, Argument] = {}
        self.taken: list[Taken] = []
        self.security: list[Security] = []
        self.calls = 1
        self.ancestors = list(inside)

    def resolve(self, handler: AnyCallable, bases: Bases) -> Contract:
        arguments = self.resolve_arguments(handler, self.calls, bases)
        self.add_scope_checks(handler)
        inputs: dict[tuple[str, str], Input] = {}
        steps = [step for step in self.steps if isinstance(step, Input)]
        for sent in (each for step in steps for each in step.members or (step,)):
            # two functions may take one value: it is required if one of them requires it
            known = inputs.get((sent.place, sent.name), sent)
            if known.is_required:
                sent = replace(sent, default=EMPTY)
            inputs[sent.place, sent.name] = sent
        for step in steps:
            if step.binder.others is not None:
                places = ("form", "file") if step.place == "form" else (step.place,)
                step.binder.others.update(name for place, name in inputs if place in places)
        return Contract(
            inputs=tuple(inputs.values()),
            steps=tuple(self.steps),
            arguments=arguments,
            security=merge_security_requirements([*self.security, *read_security(handler)]),
        )

    def add_step(self, step: Step) -> Argument:
        self.steps.append(step)
        return Argument("step", len(self.steps) - 1)

    def resolve_arguments(
        self,
        function: AnyCallable,
        call_number: int,
        bases: Bases = NO_BASES,
        given: Collection[str] = (),
    ) -> tuple[Argument, ...]:
        """Add the steps for the parameters of a function; return its arguments.

        Args:
            bases: the handlers of base versions that its parameters call.
            given: the parameters that its caller gives.
        """
        made: list[Argument] = []
        found: list[Taken] = []
        for parameter in list_parameters(function):
            if parameter.name in given:
                continue
            positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
            if (base := bases.get(parameter.name)) is not None:
                argument = self.resolve_base(base)
            else:
                argument = self.resolve_argument(parameter, function, call_number)
            if isinstance(argument, Input):
                found.append((function, parameter.name, argument))
                argument = self.add_step(argument)
            # the default of a positional-only parameter is passed, as those after it would shift
            if argument is None and not positional:
                continue
            argument = argument or Argument("default", parameter.default)
            if not positional:
                omitted_for = _find_factory_default(parameter, function)
                argument = argument._replace(name=parameter.name, omitted_for=omitted_for)
            made.append(argument)
        if found:
            self.taken += found
            refuse_multiple_bodies(self.taken)
        return tuple(made)

    def resolve_argument(
        self, parameter: inspect.Parameter, function: AnyCallable, call_number: int
    ) -> Argument | Input | None:
        """Return the argument for a parameter, or its input; None for its own default.

        The first that applies: dependency, connection, path, provider, explicit source, body model,
        query. A provider thus hides no value of the path, and the query is what remains.
        """
        name, default = parameter.name, parameter.default
        if name in ("request", "websocket"):
            return self.resolve_connection_argument(name, function)
        if default is Depends:
            raise InjectionError(
                f"Depends of parameter {name!r} of {format_callable(function)} must be called;"
                f" write {name}: ... = Depends(function)"
            )
        # before the annotation is resolved, which may name what only a type checker imports
        if isinstance(default, Dependency) and default.call is not None:
            return self.resolve_dependency(default.call, function, cached=default.use_cache)
        annotation = resolve_annotation(parameter, function)
        if is_inherited(annotation, {}):
            raise InjectionError(
                f"{name!r} of {format_callable(function)} is an Inherited, which only a handler of"
                " a route can take"
            )
        node = parse_annotation(annotation)
        marker = find_marker(node, name, function)
        if isinstance(default, Dependency):
            marker = default
        kind = node.bare_annotation
        means_type = False
        if isinstance(marker, Dependency):
            # `Depends()` alone: a new object of the type would have fields that the client sends
            means_type = marker.call is None and self.has_value_of(kind)
            if not means_type:
                call = marker.call or kind
                return self.resolve_dependency(call, function, cached=marker.use_cache)
            marker = None
        if kind is Connection:  # a dependency for requests and sockets alike
            kind = "request" if self.kind == "nothing" else self.kind
            return self.resolve_connection_argument(kind, function)
        if isinstance(kind, type) and kind in _CONNECTIONS:
            return self.resolve_connection_argument(_CONNECTIONS[kind], function)
        if name == "background" or kind is BackgroundTasks:
            return Argument("background")
        in_path = name in self.path_names and not means_type
        if in_path and kind in (EMPTY, str, Any) and not node.markers:
            return Argument("path", self.path_names[name])
        # a provider would hide what the client asks for in the path
        provider = None if in_path else self.injection.providers.find_for_parameter(kind, name)
        if provider is not None:
            return self.resolve_provider(provider, kind, function)
        # extensions are not asked about each `str`, and the query is that of a connection
        if isinstance(node, ForeignType) and isinstance(kind, type) and self.kind != "nothing":
            made = find_parameter_function(self.injection.extensions, kind)
            if made is not None:
                return self.resolve_extension_parameters(made)
        if in_path:
            parameter = parameter.replace(name=self.path_names[name])
        sent = resolve_source(
            parameter, node, marker, in_path=in_path, function=function, kind=self.kind
        )
        return replace(sent, call=call_number) if sent is not None and call_number > 1 else sent

    def has_value_of(self, kind: Any) -> bool:
        """Return True if a parameter of this type needs no marker."""
        if kind in (Connection, BackgroundTasks, *_CONNECTIONS):
            return True
        found = self.injection.providers.find_for_parameter(kind, "")
        # the factory itself may ask for an instance that the class makes
        return found is not None and found.factory not in self.ancestors

    def resolve_connection_argument(self, wanted_kind: str, function: AnyCallable) -> Argument:
        if wanted_kind != self.kind:
            raise InjectionError(
                f"{format_callable(function)} needs the {wanted_kind}, but this call has "
                f"{_HAS[self.kind]}"
            )
        return Argument("connection")

    def resolve_provider(self, provider: Provider, key: Any, user: AnyCallable) -> Argument:
        """Return a provider's value; with scope `app`, a value made once."""
        overrides = self.injection.overrides
        replacement = overrides.get(provider.factory) or (
            overrides.get(key) if isinstance(key, (type, str)) else None
        )
        if replacement is not None or provider.scope == "request":
            return self.resolve_dependency(replacement or provider.factory, user, cached=True)
        self.refuse_cycle(provider.factory)
        # without a connection: the value outlives the request that asks first
        make, _ = plan_call(
            _make_factory_dependency(provider.factory),
            self.injection,
            kind="nothing",
            # a circle may lead through a value of the application, whose plan is a call of its own
            ancestors=tuple(self.ancestors),
        )
        return self.add_step(Shared(provider, make))

    def resolve_dependency(self, call: Any, user: AnyCallable, *, cached: bool) -> Argument:
        if not callable(call) or call is EMPTY:
            message = f"Depends() in {format_callable(user)} must name a function or a class"
            raise InjectionError(message)
        replacement = self.injection.overrides.get(call, call)
        # a credential calls a replacement without parameters itself, and identifies the caller; a
        # function that runs without a connection has no caller
        is_credential = self.kind != "nothing" and hasattr(call, "identify_replacement")
        if not is_credential or list_parameters(replacement):
            call = replacement
        self.refuse_cycle(call)
        # one value for a request, however many dependencies need it
        if cached and call in self.values:
            return self.values[call]
        self.security += read_security(call)
        self.ancestors.append(call)
        self.calls += 1
        number = self.calls
        arguments = self.resolve_arguments(call, number)
        # a diamond is no circle: only what is being resolved counts
        self.ancestors.pop()
        value = self.add_step(Call(call, arguments, number))
        self.add_scope_checks(call)
        if cached:
            self.values[call] = value
        return value

    def resolve_base(self, base: BaseHandler) -> Argument:
        """Return the object that calls the handler of a base version with these arguments."""
        handler, names, values = base.handler, self.path_names, self.values
        self.path_names = {own: names[other] for own, other in base.path_names.items()}
        if any(own != other for own, other in self.path_names.items()):
            self.values = {}  # a dependency reads the path by other names there
        self.calls += 1
        number = self.calls
        arguments = self.resolve_arguments(handler, number, base.bases, base.given)
        self.security += read_security(handler)
        self.add_scope_checks(handler)
        self.path_names, self.values = names, values
        prepared = (Argument("connection"), *arguments)
        return self.add_step(Call(build_inherited_dependency(base), prepared, number))

    def add_scope_checks(self, function: AnyCallable) -> None:
        """Add the step that checks the scopes which a function is marked with, if it has any."""
        # without a connection there is no caller whose scopes could be checked
        for check in build_scope_checks(function) if self.kind != "nothing" else ():
            self.calls += 1
            self.add_step(Call(check, (Argument("connection"),), self.calls))

    def resolve_extension_parameters(self, function: AnyCallable) -> Argument:
        """Return the value of a function of an extension, made once of names of the query."""
        if (known := self.values.get(function)) is not None:
            return known

        async def call_with_values(values: Mapping[str, object]) -> object:
            return function(**values)

        setattr(call_with_values, FUNCTION_MARK, function)
        # a call of its own: its errors are sent before another function gets the value
        self.calls += 1
        number = self.calls
        arguments = (self.add_step(build_extension_input(function, number)),)
        value = self.values[function] = self.add_step(Call(call_with_values, arguments, number))
        return value

    def refuse_cycle(self, call: AnyCallable) -> None:
        if call in self.ancestors:
            circle = [*self.ancestors[self.ancestors.index(call) :], call]
            raise InjectionError(
                f"Dependencies form a cycle: {' -> '.join(map(format_callable, circle))}; break"
                " it at one of them"
            )


def _find_factory_default(parameter: inspect.Parameter, function: AnyCallable) -> Any:
    """The default of a parameter with a `default_factory`, which only the class can make."""
    made = isinstance(function, type) and repr(parameter.default) == _FACTORY
    return parameter.default if made else EMPTY


def _make_factory_dependency(factory: AnyCallable) -> AnyCallable:
    """Return a function that depends on the factory, so that a generator factory is entered."""

    async def return_value(value: Any = Dependency(factory)) -> Any:  # noqa: B008 - a marker
        return value

    return return_value


_HAS = {"request": "a request", "websocket": "a WebSocket", "nothing": "no connection"}
