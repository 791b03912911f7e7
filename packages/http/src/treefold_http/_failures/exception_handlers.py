"""Exception handlers by type: their responses replace the problem documents."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from treefold_http._wire.errors import ClientDisconnect, HTTPError

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._runtime.runtime import Runtime

ExceptionHandler: TypeAlias = "Callable[[Any, Any], Any]"
_Run: TypeAlias = "Callable[[Runtime, Connection, BaseException], Awaitable[Any]]"


class ExceptionHandlers:
    """The exception handlers of an application; the first in the MRO of an exception is called.

    Errors of the framework are answers, not failures: a handler for `Exception` never gets one.
    """

    def __init__(self) -> None:
        self._by_type: dict[type[BaseException], _Run] = {}

    def make_decorator(
        self, kind: type[BaseException]
    ) -> Callable[[ExceptionHandler], ExceptionHandler]:
        """Return a decorator that registers a handler for an exception type.

        Raises:
            TypeError: when `kind` is no exception type.
        """
        given = cast("object", kind)
        if not (isinstance(given, type) and issubclass(given, BaseException)):
            raise TypeError(
                f"An exception handler must be for an exception class such as ValueError,"
                f" got {kind!r}"
            )

        def register_handler(handler: ExceptionHandler) -> ExceptionHandler:
            self._by_type[kind] = _make_runner(handler)
            return handler

        return register_handler

    def find_handler_runner(self, error: BaseException) -> _Run | None:
        """Return a function that runs the handler of an exception; None if there is no handler."""
        if not self._by_type:
            return None
        kinds: Iterable[type[Any]] = type(error).__mro__
        # a handler for Exception is meant for crashes, and would answer each 404 and 422
        if isinstance(error, _ANSWERS):
            kinds = (kind for kind in kinds if kind not in _CATCH_ALL)
        return next((self._by_type[kind] for kind in kinds if kind in self._by_type), None)


_ANSWERS = (HTTPError, ClientDisconnect)
_CATCH_ALL = (Exception, BaseException)


def _make_runner(handler: ExceptionHandler) -> _Run:
    if inspect.iscoroutinefunction(handler):
        return lambda app, request, error: handler(request, error)
    return lambda app, request, error: app.run_in_thread(handler, request, error)
