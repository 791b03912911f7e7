"""The shapes everything else speaks: ASGI callables and the handler side of a request.

Only aliases live here. A module that needs a class of the package imports it from its home, not
from here, so that this file can be imported by all of them.
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
"""Header fields as they travel: lower-case names and values, both latin-1 bytes, repeats kept."""

Endpoint: TypeAlias = "Callable[[Request], Awaitable[Any]]"
"""What a route runs: takes the request, gives anything that coercion understands."""

CallNext: TypeAlias = "Callable[[Request], Awaitable[Response]]"
"""The rest of a middleware chain: never raises, always gives a response."""
