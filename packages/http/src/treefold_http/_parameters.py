"""Signatures: what a callable asks for, read once when its call is planned."""

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
    """Give the parameters of a callable, without `*args` and `**kwargs`.

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
    """Resolve one annotation; those that nobody needs may name what is not imported.

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
    """Whether there is nothing in it to resolve: no text, no None in the place of a type.

    Said of what is common, because `typing.get_type_hints` takes 50 us to find nothing to do.
    """
    if isinstance(annotation, type):
        return True
    if isinstance(annotation, (types.GenericAlias, types.UnionType)):
        return not is_alias(annotation) and all(map(_is_plain, annotation.__args__))
    return typing.get_origin(annotation) is Annotated and _is_plain(annotation.__origin__)


def unaliased(annotation: Any, inside: tuple[Any, ...] = ()) -> Any:
    """Give what `type` statements name, also in options and in the items of lists.

    Args:
        inside: the names that are being replaced already; one that holds itself stays.
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
    """Whether it is a name that a `type` statement gave, also with arguments: `Page[Item]`."""
    alias = typing.get_origin(annotation) or annotation
    return type(alias).__name__ == "TypeAliasType"  # of typing or typing_extensions


def named(annotation: Any) -> Any:
    """Give what a `type` statement names, with the arguments of `Page[Item]` in their places."""
    alias = typing.get_origin(annotation) or annotation
    given = dict(zip(alias.__type_params__, typing.get_args(annotation), strict=False))
    value = alias.__value__
    if isinstance(value, typing.TypeVar):
        return given.get(value, value)
    wanted = getattr(value, "__parameters__", ()) if given else ()
    return value[tuple(given.get(each, each) for each in wanted)] if wanted else value


def split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Give the type and the metadata of an annotation; no metadata where it is not `Annotated`."""
    if typing.get_origin(annotation) is Annotated:
        first, *markers = typing.get_args(annotation)
        return first, tuple(markers)
    return annotation, ()


def options_of(annotation: Any) -> tuple[Any, ...]:
    """Give the types of a union, or the one type that it is."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def label(function: Callable[..., Any]) -> str:
    """Give a function's name for a message."""
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"


def shown(annotation: Any) -> str:
    """Give an annotation's name for a message."""
    return getattr(annotation, "__name__", None) or str(annotation)


def _globals(call: Any) -> dict[str, Any]:
    """The names that annotations of a callable may use: those of the module that defines it."""
    call = inspect.unwrap(call)
    while isinstance(call, partial):
        call = inspect.unwrap(cast("partial[Any]", call).func)
    if isinstance(call, type):
        call = call.__init__
    elif not inspect.isroutine(call):
        call = call.__call__
    return getattr(inspect.unwrap(call), "__globals__", {})
