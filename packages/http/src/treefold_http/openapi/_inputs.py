"""Inputs of a handler: its parameters and those of its dependencies, as the injection plans them.

The walk is that of `_injection`, with the same order and the same errors. Only its last step
differs: it records the source of a value instead of reading it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from treefold_http._injection import Injection, Kind, Writer
from treefold_http._models import is_model
from treefold_http._parameters import EMPTY
from treefold_http._providers import Provider
from treefold_http._select import constrained, explicit_source, is_text, is_upload
from treefold_http._sources import Binder, Body, Cookie, File, Form, Header, Query, Source, name_in

Place: TypeAlias = Literal["path", "query", "header", "cookie", "json", "form", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One value that a client sends.

    Attributes:
        place: its source, such as `query` or `header`.
        name: its name in that source; for a body, the name of the parameter.
        annotation: its type, with its metadata.
        required: True if it must be sent.
        default: the value used when it is not sent.
    """

    place: Place
    name: str
    annotation: Any
    required: bool
    default: Any = None

    @property
    def can_fail(self) -> bool:
        """True if a value of the client can be invalid or missing."""
        return self.required or self.annotation not in (str, EMPTY, Any)


@dataclass(frozen=True, slots=True)
class Taken:
    """All inputs of one handler.

    Attributes:
        inputs: the inputs, one for each place and name.
        functions: its dependencies.
    """

    inputs: tuple[Input, ...] = ()
    functions: tuple[Callable[..., Any], ...] = ()


@dataclass(slots=True)
class _Found:
    inputs: dict[tuple[str, str], Input] = field(default_factory=dict[tuple[str, str], Input])
    functions: list[Callable[..., Any]] = field(default_factory=list[Callable[..., Any]])

    def add(self, found: Input) -> None:
        known = self.inputs.get((found.place, found.name))
        if known is not None:
            found = replace(known, required=known.required or found.required)
        self.inputs[found.place, found.name] = found


def taken_by(
    handler: Callable[..., Any],
    injection: Injection,
    *,
    path_parameters: tuple[str, ...],
    kind: Kind,
) -> Taken:
    """Collect the inputs of a handler.

    Raises:
        InjectionError: for a parameter without a source; such a handler is not served.
    """
    reader = _Reader(injection, kind, path_parameters, ())
    reader.arguments(handler)
    found = reader.found
    return Taken(tuple(found.inputs.values()), tuple(found.functions))


class _Reader(Writer):
    """Walks parameters as the compiler of injection plans does, and discards the generated code."""

    def __init__(
        self,
        injection: Injection,
        kind: Kind,
        path_parameters: tuple[str, ...],
        inside: tuple[Callable[..., Any], ...],
    ) -> None:
        super().__init__(injection, kind, path_parameters, inside)
        self.found = _Found()

    def dependency(self, call: Any, user: Callable[..., Any], *, cached: bool) -> str:
        self.found.functions.append(self.injection.overrides.get(call, call))
        return super().dependency(call, user, cached=cached)

    def provided(self, provider: Provider, key: Any, user: Callable[..., Any]) -> str:
        if provider.scope == "app":  # made once, outside of any request
            return "None"
        return super().provided(provider, key, user)

    def bound(
        self,
        parameter: inspect.Parameter,
        annotation: Any,
        markers: tuple[Any, ...],
        function: Callable[..., Any],
    ) -> Binder | None:
        source = None if self._in_path(parameter) else explicit_source(parameter, markers, function)
        checked = constrained(annotation, markers)
        whole = _with_words(checked, markers)
        place = "path" if self._in_path(parameter) else _place(checked, source)
        if place is not None:
            required = place == "path" or parameter.default is EMPTY
            self.found.add(
                Input(
                    place=place,
                    name=parameter.name
                    if place in ("path", "json")
                    else name_in(source or Query(), parameter),
                    annotation=whole,
                    required=required,
                    default=None if required else parameter.default,
                )
            )
        return None

    def _in_path(self, parameter: inspect.Parameter) -> bool:
        return parameter.name in self.path_parameters


_PLACES: dict[type[Source], Place] = {
    Query: "query",
    Header: "header",
    Cookie: "cookie",
    Body: "json",
    Form: "form",
    File: "file",
}


def _place(annotation: Any, source: Source | None) -> Place | None:
    if source is not None:
        return _PLACES[type(source)]
    if annotation is EMPTY:
        return None
    if is_upload(annotation) is not None:
        return "file"
    if is_model(annotation):
        return "json"
    return "query" if is_text(annotation) else None


def _with_words(annotation: Any, markers: tuple[Any, ...]) -> Any:
    """Return the annotation with its documentation metadata, such as `Doc`."""
    words = [marker for marker in markers if hasattr(marker, "documentation")]
    return Annotated[annotation, *words] if words else annotation
