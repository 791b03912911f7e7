"""Signatures: the parameters of a callable, read once when its call is planned."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, cast

EMPTY = inspect.Parameter.empty


class InjectionError(Exception):
    """A parameter that nothing can provide; the file counts as broken at boot."""


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a callable, without `*args` and `**kwargs`.

    Raises:
        InjectionError: when it has no readable signature.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InjectionError(
            f"The parameters of {label(function)} cannot be read: {error}; wrap it in a function"
        ) from error
    gathered = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in signature.parameters.values() if p.kind not in gathered]


def annotation_of(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """Resolve the annotation of one parameter; unused annotations may have unresolvable names.

    Raises:
        InjectionError: when a name in it is unknown.
    """
    if _is_plain(parameter.annotation):
        return parameter.annotation
    holder = type("holder", (), {"__annotations__": {parameter.name: parameter.annotation}})
    try:
        hints = typing.get_type_hints(holder, _globals(function), include_extras=True)
        return unaliased(hints[parameter.name])
    except Exception as error:
        raise InjectionError(
            f"The annotation {parameter.annotation!r} of {parameter.name!r} in {label(function)}"
            f" cannot be resolved: {error}; import the names that it uses"
        ) from error


def _is_plain(annotation: Any) -> bool:
    """Return True if an annotation needs no resolution: no text in it, and no None as a type.

    A shortcut for common annotations, because `typing.get_type_hints` takes 50 us for them.
    """
    if isinstance(annotation, type):
        return True
    if isinstance(annotation, (types.GenericAlias, types.UnionType)):
        return not is_alias(annotation) and all(map(_is_plain, annotation.__args__))
    return typing.get_origin(annotation) is Annotated and _is_plain(annotation.__origin__)


def unaliased(annotation: Any, inside: tuple[Any, ...] = ()) -> Any:
    """Replace names of `type` statements by their types, also in unions and lists.

    Args:
        inside: the names that are being replaced already; a recursive name stays.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if is_alias(annotation):
        alias = origin or annotation
        return annotation if alias in inside else unaliased(named(annotation), (*inside, alias))
    if origin is Annotated:
        return Annotated[unaliased(arguments[0], inside), *annotation.__metadata__]
    if origin is list and arguments:
        return list[unaliased(arguments[0], inside)]
    if origin in (typing.Union, types.UnionType):
        options = tuple(unaliased(each, inside) for each in arguments)
        return typing.Union[options]  # noqa: UP007 - made of a tuple
    return annotation


def is_alias(annotation: Any) -> bool:
    """Return True for the name of a `type` statement, also with arguments: `Page[Item]`."""
    alias = typing.get_origin(annotation) or annotation
    return type(alias).__name__ == "TypeAliasType"  # of typing or typing_extensions


def named(annotation: Any) -> Any:
    """Return the type that a `type` statement names, with arguments (`Page[Item]`) inserted."""
    alias = typing.get_origin(annotation) or annotation
    given = dict(zip(alias.__type_params__, typing.get_args(annotation), strict=False))
    value = alias.__value__
    if isinstance(value, typing.TypeVar):
        return given.get(value, value)
    wanted = getattr(value, "__parameters__", ()) if given else ()
    return value[tuple(given.get(each, each) for each in wanted)] if wanted else value


def split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type and the metadata of an annotation; no metadata if it is not `Annotated`."""
    if typing.get_origin(annotation) is Annotated:
        first, *markers = typing.get_args(annotation)
        return first, tuple(markers)
    return annotation, ()


def options_of(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation itself as the only one."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def label(function: Callable[..., Any]) -> str:
    """Return the name of a function for a message."""
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"


def shown(annotation: Any) -> str:
    """Return the name of an annotation for a message."""
    return getattr(annotation, "__name__", None) or str(annotation)


def _globals(call: Any) -> dict[str, Any]:
    """The globals of the module that defines a callable, to resolve its annotations."""
    call = inspect.unwrap(call)
    while isinstance(call, partial):
        call = inspect.unwrap(cast("partial[Any]", call).func)
    if isinstance(call, type):
        call = call.__init__
    elif not inspect.isroutine(call):
        call = call.__call__
    return getattr(inspect.unwrap(call), "__globals__", {})
