"""Handler modules: one file in, one checked record out.

Importing is `_modules`' business, routing is the router's; this module knows what a handler module
may define (interface, 'Handler module'; rulings, 'Routing') and says what is wrong with one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from treefold_http._middleware import check_entry
from treefold_http._modules import ModuleSpace
from treefold_http._response import check_status
from treefold_router import Route


class HandlerError(Exception):
    """A handler file that was imported and cannot serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerModule:
    """What the application uses of a handler module.

    Attributes:
        handler: called for each request.
        status_code: the status of plain return values; None keeps the table's.
        middlewares: run innermost, around this handler only.
        max_body: the most bytes of a request body; None keeps the setting.
        log_payload: whether the payload is logged.
        timeout: seconds that the handler may take; then the answer is 503.
    """

    handler: Callable[..., Any]
    status_code: int | None = None
    middlewares: Sequence[Any] = ()
    max_body: int | None = None
    log_payload: bool = True
    timeout: float | None = None


_OPTIONS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("status_code", int),
    ("middlewares", (list, tuple)),
    ("max_body", int),
    ("log_payload", bool),
    ("timeout", (int, float)),
)


def load_handler(space: ModuleSpace, route: Route) -> HandlerModule:
    """Import the file of a route, run its `init()`, and give what it defines.

    Raises:
        HandlerError: when `handler` is missing or an option has a wrong type.
        BaseException: whatever the file itself raises.
    """
    module, fresh = space.load_file(f"Api/{route.file}")
    if fresh:
        try:
            _initialise(module)
        except BaseException:
            space.forget(module)  # the next boot is to try again, not to serve it half made
            raise
    handler = getattr(module, "handler", None)
    if handler is None:
        raise HandlerError(f"{route.file} has no `handler`; define `async def handler(request)`")
    if not callable(handler):
        raise HandlerError(
            f"`handler` in {route.file} is {type(handler).__qualname__!r} and cannot be called;"
            " make it a function"
        )
    _check_numbers(module, route.file)
    options = {name: _option(module, name, kind, route.file) for name, kind in _OPTIONS}
    for entry in options["middlewares"] or ():
        check_entry(entry)
    given = {name: value for name, value in options.items() if value is not None}
    return HandlerModule(handler=handler, **given)


def _check_numbers(module: ModuleType, file: str) -> None:
    status = getattr(module, "status_code", None)
    if status is not None:
        check_status(status)
    for name in ("max_body", "timeout"):
        value = getattr(module, name, None)
        if isinstance(value, (int, float)) and not 0 <= value < math.inf:
            raise HandlerError(f"`{name}` in {file} is {value!r}; give a finite number from 0")


def _initialise(module: ModuleType) -> None:
    init = getattr(module, "init", None)
    if init is None:
        return
    if not callable(init):
        raise HandlerError(
            f"`init` is {type(init).__qualname__!r} and cannot be called; make it a function"
        )
    outcome = init()
    if inspect.iscoroutine(outcome):
        # The specification: the coroutine of an `async def init` is discarded, its body never runs.
        outcome.close()


def _option(module: ModuleType, name: str, kind: type | tuple[type, ...], file: str) -> Any:
    value = getattr(module, name, None)
    if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
        return value
    wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
    raise HandlerError(f"`{name}` in {file} is {value!r}; give {wanted}")
