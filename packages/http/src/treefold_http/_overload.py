"""The 503 of an overloaded process, with as little work as possible.

A server calls it instead of the application for requests above its limit (D-07, R-26). No route,
middleware or handler runs; the request is logged.
"""

from __future__ import annotations

from time import perf_counter

from treefold_http._identity import request_identity
from treefold_http._json import dumps
from treefold_http._problems import PROBLEM_TYPE
from treefold_http._types import Receive, Scope, Send
from treefold_logging import log_request, request_target

_RETRY_AFTER = b"1"


async def refuse_overload(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer an HTTP request with 503 and `Retry-After` (ASGI 3.0; D-07)."""
    started = perf_counter()
    headers = scope["headers"]
    identity = request_identity(dict(headers), headers)
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    body = dumps(
        {
            "type": "about:blank",
            "title": "Service Unavailable",
            "status": 503,
            "detail": "The server has too much to do; try again",
            "instance": raw_path.decode("ascii", "backslashreplace"),
            "request_id": identity,
        }
    )
    fields = [
        PROBLEM_TYPE,
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", _RETRY_AFTER),
        (b"connection", b"close"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", identity.encode()),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": fields})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
    target = request_target(raw_path, scope["query_string"])
    log_request(scope["method"], target, 503, perf_counter() - started, request_id=identity)
