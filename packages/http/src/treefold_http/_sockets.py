"""One WebSocket from handshake to log line: checks, origin, route, middleware, handler, close.

A socket is refused before it is accepted, with an HTTP response if the server can send one. A
handler that returns closes with 1000, one that raises with 1011 (rulings, 'WebSocket').
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from treefold_http._connection import below_root
from treefold_http._errors import (
    BadRequest,
    Forbidden,
    HTTPError,
    MethodNotAllowed,
    NotFound,
)
from treefold_http._exposure import expose
from treefold_http._guard import check_request
from treefold_http._identity import request_identity
from treefold_http._problems import crash, problem
from treefold_http._response import Response, missing_in
from treefold_http._teardown import leave_all, must_go_on
from treefold_http._types import Receive, Scope, Send
from treefold_http._websocket import (
    FAILED,
    LAST_WORD,
    LOST,
    MAX_REASON,
    NORMAL,
    REFUSED,
    RESTART,
    WebSocket,
    WebSocketDisconnect,
)
from treefold_http.extensions import explain
from treefold_logging import get_logger, log_request, request_id, request_target
from treefold_router import Found, MalformedPath, NotFound as NoRoute

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._plan import Plan

_NOSNIFF = (b"x-content-type-options", b"nosniff")

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_HTTP_SCHEME = {"ws": "http", "wss": "https"}


class OpenSockets:
    """The open sockets of an application; the shutdown closes them."""

    def __init__(self) -> None:
        self._open: set[WebSocket] = set()

    def add(self, websocket: WebSocket) -> None:
        """Register an open socket."""
        self._open.add(websocket)

    def discard(self, websocket: WebSocket) -> None:
        """Remove a socket whose handler has ended."""
        self._open.discard(websocket)

    async def close_all(self) -> None:
        """Close every accepted socket with 1012, service restart (RFC 6455, 7.4)."""
        accepted = [websocket for websocket in self._open if websocket.accepted]
        # Concurrently: a lost peer may block its send, and a send may fail.
        await asyncio.gather(
            *(_close(websocket) for websocket in accepted),
            return_exceptions=True,
        )


async def _close(websocket: WebSocket) -> None:
    async with asyncio.timeout(LAST_WORD):
        await websocket.close(RESTART, "The server is restarting")


async def serve_socket(app: Application, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one WebSocket scope (ASGI, websocket 2.3)."""
    started = perf_counter()
    fields = dict(scope["headers"])
    identity = request_identity(fields, scope["headers"])
    websocket = WebSocket(scope, receive, app, identity, send)
    websocket.task = asyncio.current_task()
    token = request_id.set(identity)
    refusal: int | None = None
    app.sockets.add(websocket)
    try:
        await receive()
        try:
            check_request(scope, fields, scope.get("raw_path") or scope["path"])
            _adjust(app, websocket)
            check_origin(websocket)
            await find_plan(app, websocket).run(websocket)
        except BaseException as error:
            if _was_dropped(websocket, error):
                error = WebSocketDisconnect(websocket.code or NORMAL)
            outcome = await _leave(websocket, error)
            if websocket.dropped:
                await websocket.say_dropped()
            if must_go_on(error):
                raise
        else:
            outcome = await _leave(websocket, None)
        refusal = await _end(websocket, outcome, send)
    finally:
        app.sockets.discard(websocket)
        if websocket.error is not None:
            expose(scope, websocket.error)
        if websocket.work is not None:
            app.background.start(websocket.work)
        _log(websocket, refusal, perf_counter() - started)
        request_id.reset(token)


def _adjust(app: Application, websocket: WebSocket) -> None:
    """Call the `adjust` of middleware, which applies proxy headers, before the origin check."""
    for entry in app.site.middlewares:
        if (adjust := getattr(entry, "adjust", None)) is not None:
            adjust(websocket)


def _was_dropped(websocket: WebSocket, error: BaseException) -> bool:
    """Return True if `drop` cancelled the task and nothing else did; undo that cancellation."""
    if not websocket.dropped or not isinstance(error, asyncio.CancelledError):
        return False
    task = websocket.task
    return task is not None and task.uncancel() == 0


def check_origin(websocket: WebSocket) -> None:
    """Refuse a socket of a foreign origin; accept one without `Origin`, from no browser (S-70).

    Raises:
        Forbidden: for an `Origin` that is neither this site's nor allowed.
    """
    origins = websocket.headers.getlist("origin")
    if not origins:
        return
    allowed = websocket.app.settings.ws_allowed_origins
    own = _parts(f"{_HTTP_SCHEME.get(websocket.scheme, websocket.scheme)}://{websocket.host}")
    if len(origins) > 1 or (origins[0] not in allowed and (_parts(origins[0]) or "?") != own):
        raise Forbidden(f"A page of origin {origins[0]!r} may not open this socket")


def _parts(origin: str) -> tuple[str, str, int] | None:
    """An origin as scheme, host and port; None for an invalid origin."""
    try:
        parsed = urlsplit(origin)
        port = parsed.port or _PORTS.get(parsed.scheme, 0)
    except ValueError:
        return None
    if not parsed.hostname or parsed.username is not None:
        return None
    if parsed.path or parsed.query or parsed.fragment:
        return None
    return parsed.scheme, parsed.hostname, port


def find_plan(app: Application, websocket: WebSocket) -> Plan:
    """Return the plan of the socket's path.

    Raises:
        HTTPError: 400, 404 or 405, as for HTTP.
    """
    site = app.site
    scope = websocket.scope
    path = scope.get("raw_path") or scope["path"]
    if scope.get("root_path"):
        path = below_root(path, scope["root_path"])
    outcome = site.table.resolve_socket(path)
    if isinstance(outcome, NoRoute) and outcome.unversioned and site.default_version:
        outcome = site.table.resolve_socket(path, version=site.default_version)
        if isinstance(outcome, Found):
            masked = site.plans[outcome.route].masked_in(websocket.raw_path)
            shown = request_target(websocket.raw_path, b"", masked_segments=masked)
            get_logger().info(
                "no version in WEBSOCKET %s -> served %s", shown, site.default_version
            )
    if isinstance(outcome, Found):
        websocket.path_params = outcome.params
        plan = websocket.plan = site.plans[outcome.route]
        return plan
    if isinstance(outcome, MalformedPath):
        raise BadRequest(outcome.reason)
    if isinstance(outcome, NoRoute):
        raise NotFound("There is nothing at this path")
    raise MethodNotAllowed("This path takes no WebSocket", headers={"Allow": outcome.allow})


async def _leave(websocket: WebSocket, error: BaseException | None) -> BaseException | None:
    leaves, websocket.leaves = websocket.leaves, None
    return await leave_all(leaves, error) if leaves else error


async def _end(websocket: WebSocket, error: BaseException | None, send: Send) -> int | None:
    """Close an accepted socket, refuse another; return the HTTP status of a refusal."""
    if error is not None and not isinstance(error, (HTTPError, WebSocketDisconnect)):
        websocket.error = error
        await explain(websocket.app, error)
    if websocket.accepted:
        await websocket.close(*_closing(error))
        return None
    if websocket.code is not None:  # the client disconnected, or the handler called `close`
        return None if isinstance(error, WebSocketDisconnect) else Forbidden.code
    response = _refusal(websocket, error)
    with suppress(OSError):  # the client has disconnected
        if "websocket.http.response" in websocket.scope.get("extensions", {}):
            common = [_NOSNIFF, (b"x-request-id", websocket.id.encode())]
            common += missing_in(response, websocket.answer_fields or [])
            start, body = response.messages(common, False)
            await send({**start, "type": "websocket.http.response.start"})
            await send({**body, "type": "websocket.http.response.body"})
        else:
            await send({"type": "websocket.close", "code": REFUSED})
    return response.status


def _closing(error: BaseException | None) -> tuple[int, str]:
    """The close code and the reason for an accepted socket (S-74)."""
    if error is None or isinstance(error, WebSocketDisconnect):
        return NORMAL, ""
    if isinstance(error, HTTPError) and error.status < 500:
        return REFUSED, str(error).encode("utf-8", "replace")[:MAX_REASON].decode(errors="ignore")
    return FAILED, ""


def _refusal(websocket: WebSocket, error: BaseException | None) -> Response:
    if error is None or isinstance(error, WebSocketDisconnect):
        error = Forbidden("This socket was not accepted")
    if isinstance(error, HTTPError):
        try:
            return problem(error, websocket)
        except Exception as unfit:  # its `errors` have no JSON form
            error = websocket.error = unfit
    return crash(error, websocket)


def _log(websocket: WebSocket, refusal: int | None, seconds: float) -> None:
    log_request(
        "WEBSOCKET",
        request_target(
            websocket.raw_path,
            websocket.scope["query_string"],
            masked_segments=websocket.app.masked_in(websocket),
        ),
        refusal or websocket.code or LOST,
        seconds,
        request_id=websocket.id,
        error=websocket.error,
    )
