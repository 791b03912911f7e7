"""The 503 of an overloaded process, with as little work as possible.

A server calls it instead of the application for requests above its limit (D-07, R-26). No route,
middleware or handler runs; the request is logged.
"""

from __future__ import annotations

from time import perf_counter

from treefold_http._failures.problems import PROBLEM_TYPE
from treefold_http._json.json import dumps
from treefold_http._responses.response import NOSNIFF, make_unchecked_response
from treefold_http._runtime.server_lines import mask_target
from treefold_http._wire.asgi import Receive, Scope, Send
from treefold_http._wire.request_id import assign_request_id
from treefold_logging import log_request

_RETRY_AFTER = b"1"


async def refuse_overload(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer an HTTP request with 503 and `Retry-After` (ASGI 3.0; D-07)."""
    started = perf_counter()
    headers = scope["headers"]
    identity = assign_request_id(dict(headers), headers)
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
    response = make_unchecked_response(body, PROBLEM_TYPE, 503)
    response.raw_headers += [(b"retry-after", _RETRY_AFTER), (b"connection", b"close")]
    common = [NOSNIFF, (b"x-request-id", identity.encode())]
    for message in response.messages(common, scope["method"] == "HEAD"):
        await send(message)
    target = mask_target(raw_path, scope["query_string"], scope.get("root_path", ""))
    log_request(scope["method"], target, 503, perf_counter() - started, request_id=identity)
