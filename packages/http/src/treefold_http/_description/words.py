"""The words of a route for people: its summary and description, from the module or docstring."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, NamedTuple, cast

from treefold_http._plans.handlers import HandlerModule


class Words(NamedTuple):
    """What a document says of a route; empty texts for nothing."""

    summary: str
    description: str


def read_words(module: HandlerModule) -> Words:
    """Return the words of a handler module: its variables, else the docstring of the handler."""
    first, _, rest = _read_docstring(module.handler).partition("\n")
    summary = first.strip() if module.summary is None else module.summary
    description = rest.strip() if module.description is None else module.description
    return Words(summary, description)


def _read_docstring(handler: Any) -> str:
    while isinstance(handler, partial):
        handler = cast("partial[Any]", handler).func
    if not inspect.isroutine(handler) and not isinstance(handler, type):
        handler = type(handler).__call__
    return inspect.cleandoc(handler.__doc__ or "")
