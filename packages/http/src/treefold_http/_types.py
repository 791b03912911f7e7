"""Type aliases: ASGI callables and the handler side of a request.

Only aliases live here. A module that needs a class of the package imports it from its own module,
not from here, so that every module can import this one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from treefold_http._request import Request
    from treefold_http._response import Response

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
"""Header fields as in ASGI: lower-case names and values, both latin-1 bytes, repeats kept."""

Endpoint: TypeAlias = "Callable[[Request], Awaitable[Any]]"
"""The endpoint of a route: takes the request, returns any value that coercion accepts."""

CallNext: TypeAlias = "Callable[[Request], Awaitable[Response]]"
"""The rest of a middleware chain: never raises, always returns a response."""
