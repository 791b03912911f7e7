"""Type aliases of the handler side: the endpoint of a route, and the rest of a middleware chain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from treefold_http._requests.request import Request
from treefold_http._responses.response import Response

Endpoint: TypeAlias = Callable[[Request], Awaitable[Any]]
"""The endpoint of a route: takes the request, returns any value that coercion accepts."""

CallNext: TypeAlias = Callable[[Request], Awaitable[Response]]
"""The rest of a middleware chain: never raises, always returns a response."""
