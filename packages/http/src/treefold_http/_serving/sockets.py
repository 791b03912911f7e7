"""One WebSocket from handshake to log line: checks, origin, route, middleware, handler, close.

A socket is refused before it is accepted, with an HTTP response if the server can send one. A
handler that returns closes with 1000, one that raises with 1011.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

from treefold_http._chains.socket_chain import HandshakeAnswered
from treefold_http._extensions.calls import explain
from treefold_http._failures.problems import render_crash_problem
from treefold_http._headers.origins import parse_origin
from treefold_http._requests.log_payload import log_connection
from treefold_http._responses.files import FileResponse
from treefold_http._responses.response import NOSNIFF, Response, find_missing_fields
from treefold_http._responses.streams import StreamingResponse
from treefold_http._runtime.exit_callbacks import is_outer_cancellation
from treefold_http._serving.routing import route_socket
from treefold_http._websockets.websocket import (
    FAILED,
    LOST,
    MAX_REASON,
    NORMAL,
    REFUSED,
    WebSocket,
    WebSocketDisconnect,
)
from treefold_http._wire.asgi import Receive, Scope, Send
from treefold_http._wire.errors import Forbidden, HTTPError
from treefold_http._wire.request_guard import require_valid_head
from treefold_http._wire.request_id import assign_request_id
from treefold_logging import get_logger, request_id

if TYPE_CHECKING:
    from treefold_http._serving.host import Host

_EXPECTED = (type(None), HTTPError, WebSocketDisconnect, HandshakeAnswered)
_HTTP_SCHEME = {"ws": "http", "wss": "https"}


async def serve_socket(app: Host, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one WebSocket scope (ASGI, websocket 2.3)."""
    started = perf_counter()
    fields = dict(scope["headers"])
    identity = assign_request_id(fields, scope["headers"])
    websocket = WebSocket(scope, receive, app, identity, send)
    websocket.task = asyncio.current_task()
    token = request_id.set(identity)
    refusal: int | None = None
    app.sockets.add_socket(websocket)
    try:
        await receive()
        try:
            require_valid_head(scope, fields, scope.get("raw_path") or scope["path"])
            # first, as the origin is compared with the host and scheme that a proxy reports
            _call_middleware_adjust_hooks(app, websocket)
            check_origin(websocket)
            await route_socket(app, websocket).run(websocket)
        except BaseException as error:
            if _undo_drop_cancellation(websocket, error):
                error = WebSocketDisconnect(websocket.code or NORMAL)
            outcome = await websocket.leave(error)
            if not isinstance(outcome, WebSocketDisconnect):
                websocket.drop_background_tasks()
            if websocket.dropped:
                await websocket.notify_dropped_client()
            if is_outer_cancellation(error, identity):
                raise
        else:
            if (outcome := await websocket.leave(None)) is not None:
                websocket.drop_background_tasks()
        refusal = await _close_or_refuse_socket(websocket, outcome, send)
    finally:
        app.sockets.remove_socket(websocket)
        if websocket.work is not None:
            app.background.start_work(websocket.work)
        # no code: the task was cancelled from outside, and no close frame was seen
        status = refusal or websocket.code or LOST
        # close codes of failures are lines at ERROR, and asked about where they are written
        is_failure = websocket.error is not None or status >= 500
        if is_failure or get_logger().isEnabledFor(logging.INFO):
            log_connection(websocket, "WEBSOCKET", status, perf_counter() - started)
        with suppress(ValueError):  # a task that is closed from another context
            request_id.reset(token)


def _call_middleware_adjust_hooks(app: Host, websocket: WebSocket) -> None:
    """Call the `adjust` of middleware, which applies proxy headers, before the origin check."""
    for entry in app.project.middlewares:
        if (adjust := getattr(entry, "adjust", None)) is not None:
            adjust(websocket)


def _undo_drop_cancellation(websocket: WebSocket, error: BaseException) -> bool:
    """Return True if `drop` cancelled the task and nothing else did; undo that cancellation."""
    if not websocket.dropped or not isinstance(error, asyncio.CancelledError):
        return False
    task = websocket.task
    # any other cancellation, such as that of a stopping server, stays in the count
    return task is not None and task.uncancel() == 0


def check_origin(websocket: WebSocket) -> None:
    """Refuse a socket of a foreign origin; accept one without `Origin`, from no browser (S-70).

    Raises:
        Forbidden: for an `Origin` that is neither this site's nor allowed.
    """
    if not (origins := websocket.headers.getlist("origin")):
        return
    allowed = websocket.app.settings.ws_allowed_origins
    own = parse_origin(f"{_HTTP_SCHEME.get(websocket.scheme, websocket.scheme)}://{websocket.host}")
    # a browser sends one Origin (RFC 6454, 7.3); `null` parses to None, and so does the Host
    # `a:99999`: these two must not count as equal
    if len(origins) > 1 or (origins[0] not in allowed and (parse_origin(origins[0]) or "?") != own):
        raise Forbidden(f"A page of origin {origins[0]!r} may not open this socket")


async def _close_or_refuse_socket(
    websocket: WebSocket, error: BaseException | None, send: Send
) -> int | None:
    """Close an accepted socket, refuse another; return the HTTP status of a refusal."""
    if websocket.accepted or websocket.code is not None:
        if not isinstance(error, _EXPECTED):
            websocket.error = error
            await explain(websocket.app, error)
        if websocket.accepted:
            await websocket.close(*_choose_close_code(error))
            return None
        # The client disconnected, or the handler called `close`.
        return None if isinstance(error, WebSocketDisconnect) else Forbidden.code
    response = await _build_refusal_response(websocket, error)
    if response.background is not None:
        websocket.app.background.start_work(response.background)
    with suppress(OSError):  # the client has disconnected
        # the ASGI extension Websocket Denial Response; other servers answer a close with 403
        if "websocket.http.response" in websocket.scope.get("extensions", {}):
            common = [NOSNIFF, (b"x-request-id", websocket.id.encode())]
            common += find_missing_fields(response, websocket.answer_fields or [])
            start, body = response.messages(common, False)
            await send({**start, "type": "websocket.http.response.start"})
            await send({**body, "type": "websocket.http.response.body"})
        else:
            await send({"type": "websocket.close", "code": REFUSED})
    return response.status


def _choose_close_code(error: BaseException | None) -> tuple[int, str]:
    """The close code and the reason for an accepted socket (S-74)."""
    if error is None or isinstance(error, WebSocketDisconnect):
        return NORMAL, ""
    if isinstance(error, HTTPError) and error.status < 500:
        # the cut may fall inside a character, whose first bytes are dropped
        return REFUSED, str(error).encode("utf-8", "replace")[:MAX_REASON].decode(errors="ignore")
    return FAILED, ""


async def _build_refusal_response(websocket: WebSocket, error: BaseException | None) -> Response:
    """Return the response to a refused handshake; a socket cannot be answered with a stream."""
    if error is None or isinstance(error, WebSocketDisconnect):
        error = Forbidden("This socket was not accepted")
    if isinstance(error, HandshakeAnswered):
        response: Response = error.response
    else:
        response = await websocket.app.render(error, websocket)
    if not isinstance(response, (StreamingResponse, FileResponse)):
        return response
    kind = type(response).__qualname__
    unfit = TypeError(
        f"Before accept() an exception handler must return a body in one piece, got {kind!r};"
        " return a Response"
    )
    websocket.error = unfit
    return render_crash_problem(unfit, websocket)
