"""Signatures: the parameters of a callable, read once when its call is planned."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, cast

from treefold_http._wire.aliases import AnyCallable

EMPTY = inspect.Parameter.empty


class InjectionError(Exception):
    """A parameter that nothing can provide; the file counts as broken at boot."""


def list_parameters(function: AnyCallable) -> list[inspect.Parameter]:
    """Return the parameters of a callable, without `*args` and `**kwargs`.

    Raises:
        InjectionError: when it has no readable signature.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InjectionError(
            f"The parameters of {format_callable(function)} cannot be read: {error}; wrap it in a "
            "function"
        ) from error
    gathered = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in signature.parameters.values() if p.kind not in gathered]


def format_callable(function: AnyCallable) -> str:
    """Return the name of a function for a message."""
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"


def format_annotation(annotation: Any) -> str:
    """Return the name of an annotation for a message."""
    return getattr(annotation, "__name__", None) or str(annotation)


def find_module_globals(function: Any) -> dict[str, Any]:
    """Return the globals of the module that defines a callable, to resolve its annotations."""
    function = inspect.unwrap(function)
    while isinstance(function, partial):
        function = inspect.unwrap(cast("partial[Any]", function).func)
    if isinstance(function, type):
        function = function.__init__
    elif not inspect.isroutine(function):
        function = function.__call__
    return getattr(inspect.unwrap(function), "__globals__", {})
