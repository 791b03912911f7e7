"""One WebSocket from handshake to log line: gate, origin, route, middleware, handler, close.

Whatever refuses a socket does so before it is accepted, as an HTTP answer where the server can send
one. A handler that returns closes with 1000, one that raises with 1011 (rulings, 'WebSocket').
"""

from __future__ import annotations

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
from treefold_http._guard import check_request
from treefold_http._identity import request_identity
from treefold_http._problems import crash, problem
from treefold_http._teardown import leave_all, must_go_on
from treefold_http._types import Receive, Scope, Send
from treefold_http._websocket import (
    FAILED,
    NORMAL,
    REFUSED,
    RESTART,
    WebSocket,
    WebSocketDisconnect,
)
from treefold_logging import log_request, request_id, request_target
from treefold_router import Found, MalformedPath, NotFound as NoRoute

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._plan import Plan

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_HTTP_SCHEME = {"ws": "http", "wss": "https"}


class OpenSockets:
    """The sockets that are being served; the shutdown closes them."""

    def __init__(self) -> None:
        self._open: set[WebSocket] = set()

    def add(self, websocket: WebSocket) -> None:
        """Count a socket as open."""
        self._open.add(websocket)

    def discard(self, websocket: WebSocket) -> None:
        """Forget a socket whose handler has ended."""
        self._open.discard(websocket)

    async def close_all(self) -> None:
        """Close every accepted socket with 1012, service restart (RFC 6455, 7.4)."""
        for websocket in list(self._open):
            if websocket.accepted:
                await websocket.close(RESTART, "The server is restarting")


async def serve_socket(app: Application, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one WebSocket scope (ASGI, websocket 2.3)."""
    started = perf_counter()
    fields = dict(scope["headers"])
    identity = request_identity(fields, scope["headers"])
    websocket = WebSocket(scope, receive, app, identity, send)
    token = request_id.set(identity)
    refusal: int | None = None
    app.sockets.add(websocket)
    try:
        await receive()
        try:
            check_request(scope, fields)
            check_origin(websocket)
            plan = find_plan(app, websocket)
            await plan.run(websocket)
            await _finish(websocket, None)
        except WebSocketDisconnect:
            await _finish(websocket, None)
        except BaseException as error:
            await _finish(websocket, error)
            if must_go_on(error):
                raise
            refusal = await _answer(websocket, error, send)
    finally:
        app.sockets.discard(websocket)
        _log(websocket, refusal, perf_counter() - started)
        request_id.reset(token)


def check_origin(websocket: WebSocket) -> None:
    """Let pass what comes from this site, from an allowed origin, or from no browser (S-70).

    Raises:
        Forbidden: for any other `Origin`.
    """
    origins = websocket.headers.getlist("origin")
    if not origins:
        return
    allowed = websocket.app.settings.ws_allowed_origins
    own = _parts(f"{_HTTP_SCHEME.get(websocket.scheme, websocket.scheme)}://{websocket.host}")
    if len(origins) > 1 or (origins[0] not in allowed and (_parts(origins[0]) or "?") != own):
        raise Forbidden(f"A page of origin {origins[0]!r} may not open this socket")


def _parts(origin: str) -> tuple[str, str, int] | None:
    """An origin as scheme, host and port; None where it is none."""
    try:
        parsed = urlsplit(origin)
        port = parsed.port or _PORTS.get(parsed.scheme, 0)
    except ValueError:
        return None
    if not parsed.hostname or parsed.path or parsed.query or parsed.username is not None:
        return None
    return parsed.scheme, parsed.hostname, port


def find_plan(app: Application, websocket: WebSocket) -> Plan:
    """Find what serves the socket's path.

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
        websocket.path_params = outcome.params
        plan = websocket.plan = site.plans[outcome.route]
        return plan
    if isinstance(outcome, MalformedPath):
        raise BadRequest(outcome.reason)
    if isinstance(outcome, NoRoute):
        raise NotFound("There is nothing at this path")
    raise MethodNotAllowed("This path takes no WebSocket", headers={"Allow": outcome.allow})


async def _finish(websocket: WebSocket, error: BaseException | None) -> None:
    leaves, websocket.leaves = websocket.leaves, None
    outcome = await leave_all(leaves, error) if leaves else error
    if outcome is not None and not isinstance(outcome, (HTTPError, WebSocketDisconnect)):
        websocket.error = outcome
    if error is None and websocket.accepted:
        await websocket.close(NORMAL if outcome is None else FAILED)
    if websocket.work is not None:
        websocket.app.background.start(websocket.work)


async def _answer(websocket: WebSocket, error: BaseException, send: Send) -> int | None:
    """Close what was accepted, refuse what was not; give the HTTP status of a refusal."""
    known = isinstance(error, HTTPError) and error.status < 500
    if websocket.accepted:
        await websocket.close(REFUSED if known else FAILED, str(error)[:40] if known else "")
        return None
    response = (
        problem(error, websocket) if isinstance(error, HTTPError) else crash(error, websocket)
    )
    if "websocket.http.response" in websocket.scope.get("extensions", {}):
        start, body = response.messages([(b"x-request-id", websocket.id.encode())], head=False)
        await send({**start, "type": "websocket.http.response.start"})
        await send({**body, "type": "websocket.http.response.body"})
    else:
        await send({"type": "websocket.close", "code": REFUSED})
    return response.status


def _log(websocket: WebSocket, refusal: int | None, seconds: float) -> None:
    plan = websocket.plan
    log_request(
        "WEBSOCKET",
        request_target(
            websocket.raw_path,
            websocket.scope["query_string"],
            masked_segments=plan.masked_in(websocket.raw_path) if plan else (),
        ),
        refusal if refusal is not None else websocket.code or NORMAL,
        seconds,
        request_id=websocket.id,
        error=websocket.error,
    )
