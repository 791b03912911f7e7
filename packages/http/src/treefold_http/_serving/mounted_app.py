"""An ASGI application below a prefix: `app.mount("/legacy", asgi_app)`.

It gets the scope, `root_path` included, as a server would give it. Its responses become responses
of this framework, so that the middleware sees status and header; long ones are streams. Its
lifespan is in `mounted_lifespan`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, unquote_to_bytes

from treefold_http._project.coverage import require_covering_prefixes
from treefold_http._project.masked_paths import count_root_segments, split_path
from treefold_http._responses.response import Response
from treefold_http._responses.streams import StreamingResponse
from treefold_http._serving.mounted_lifespan import MountedLifespan
from treefold_http._websockets.websocket import WebSocketDisconnect
from treefold_http._wire.asgi import ASGIApp, Message, Scope
from treefold_http._wire.errors import ClientDisconnect
from treefold_http._wire.path_segments import decode_segments
from treefold_http._wire.root_path import below_root
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._plans.mounts import Mountable
    from treefold_http._plans.runtime import ProjectRuntime
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request
    from treefold_http._serving.host import Host
    from treefold_http._websockets.websocket import WebSocket


class MountedApp:
    """The target of a mount that is an ASGI application.

    Args:
        prefix: the mount, such as `/legacy`.
        app: the application (ASGI 3).

    Attributes:
        parts: the segments of the mount.
        name: the application in words, for messages.
        app: the argument.
        lifespan: its startup and shutdown.
    """

    def __init__(self, prefix: str, app: ASGIApp) -> None:
        self.parts = [part for part in prefix.split("/") if part]
        self.prefix = "/" + "/".join(self.parts)
        self.name: str = getattr(app, "__name__", type(app).__name__)
        self.lifespan = MountedLifespan(self.prefix, app)
        self.app = app

    def check(self, root: Path) -> None:
        """Accept every application root."""

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        """Return the response that the application begins; the rest follows as it is sent.

        Raises:
            Exception: what the application raises before its response.
            RuntimeError: when it returns without a response.
        """
        exchange = _Exchange(self, request)
        scope = self._make_scope(request)
        served = self.app(scope, exchange.receive_for_app, exchange.queue_app_message)
        exchange.task = asyncio.ensure_future(served)
        return await exchange.await_and_build_response()

    async def serve_socket(self, websocket: WebSocket) -> None:
        """Serve a socket, inside the middleware of the project.

        Raises:
            WebSocketDisconnect: when the client has left.
            Exception: what the application raises.
        """
        connected = False

        async def replay_connect_then_receive() -> Message:
            nonlocal connected
            # routing has consumed the connect message, which ASGI sends first
            if not connected:
                connected = True
                return {"type": "websocket.connect"}
            return await websocket.relay_receive()

        try:
            scope = self._make_scope(websocket)
            await self.app(scope, replay_connect_then_receive, websocket.relay_send)
        except Exception as error:
            # Frameworks raise a class of their own, of this name, when the client has left.
            if websocket.code is not None and type(error).__name__ == "WebSocketDisconnect":
                raise WebSocketDisconnect(websocket.code) from None
            raise

    def _make_scope(self, connection: Connection) -> Scope:
        scope = connection.scope
        raw_path = connection.raw_path
        # `raw_path` is optional in ASGI
        if not scope.get("raw_path"):
            raw_path = quote(scope["path"]).encode()
        raw_path = below_root(raw_path, connection.root_path)
        # Middleware was chosen by these segments: the application must not see any other path.
        sent = [part for part in raw_path.split(b"/") if part][len(self.parts) :]
        decoded = decode_segments(raw_path)[len(self.parts) :]
        root, end = connection.root_path + self.prefix, raw_path.endswith(b"/")
        return {
            **scope,
            "root_path": root,
            # `path` includes `root_path`, as a server sends it
            "path": "/".join([root, *decoded]) + "/" * end,
            "raw_path": b"/".join([quote(root).encode(), *sent]) + b"/" * end,
            # each request gets a shallow copy (ASGI, lifespan state)
            "state": self.lifespan.state.copy(),
            "extensions": {},  # those of the server pass the middleware by
        }


class _Exchange:
    """One request on its way through a mounted application, which runs in a task.

    Attributes:
        task: the running application.
        ended: True once it has sent its whole response.
    """

    task: asyncio.Future[None]

    def __init__(self, mounted: MountedApp, request: Request) -> None:
        self.ended = False
        self._mounted = mounted
        self._request = request
        self._start: Message | None = None
        # of one: the application waits in `send` until the client has taken its last chunk
        self._sent: asyncio.Queue[Message] = asyncio.Queue(1)
        reader = request.reader
        reader.asked = True  # the log must not read it beside the application
        reader.limit = sys.maxsize  # the application has limits of its own
        self._kept = reader.buffered_body

    async def receive_for_app(self) -> Message:
        reader = self._request.reader
        if self._kept is not None:  # read by middleware
            body, self._kept = self._kept, None
            return {"type": "http.request", "body": body, "more_body": False}
        if not reader.complete:
            # a client that left inside its body falls through to http.disconnect
            with suppress(ClientDisconnect):
                chunk = await reader.read_next_chunk()
                return {"type": "http.request", "body": chunk, "more_body": not reader.complete}
        else:
            await reader.wait_for_disconnect()
        return {"type": "http.disconnect"}

    async def queue_app_message(self, message: Message) -> None:
        await self._sent.put(message)

    async def await_and_build_response(self) -> Response:
        """Return the response, whole where the application has sent it at once."""
        try:
            start = await self.wait_for_app_message()
        # cancelled as well: the task of the application would run on alone
        except BaseException:
            await self.cancel_or_detach_app()
            raise
        if start is None:
            raise RuntimeError(f"The application at {self._mounted.prefix} sent no response")
        status = cast("int", start["status"])
        fields = [(bytes(k).lower(), bytes(v)) for k, v in start.get("headers", ())]
        await asyncio.sleep(0)  # most applications send a whole body next
        # a whole response computes Content-Length, which would be 0 for the empty body of HEAD
        if self._request.method != "HEAD" and not self._sent.empty():
            first = self._sent.get_nowait()
            self._update_ended_flag(first)
            if self.ended:
                response = Response(first.get("body", b""), status)
                response.raw_headers[:] = fields
                await self.cancel_or_detach_app()
                return response
            chunks = _Chunks(self, first)
        else:
            chunks = _Chunks(self, None)
        response = StreamingResponse(chunks, status)
        response.raw_headers[:] = fields
        return response

    async def wait_for_app_message(self) -> Message | None:
        """Return the next message; None if the application has returned without one.

        Raises:
            Exception: what the application raises.
        """
        if self._sent.empty():
            coming = asyncio.ensure_future(self._sent.get())
            try:
                await asyncio.wait({coming, self.task}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0)  # a message that was put together with the end
                if not coming.done():
                    self.task.result()
                    return None
                message = coming.result()
            finally:
                coming.cancel()
        else:
            message = self._sent.get_nowait()
        self._update_ended_flag(message)
        return message

    def _update_ended_flag(self, message: Message) -> None:
        is_body = message["type"] == "http.response.body"
        self.ended = is_body and not message.get("more_body", False)

    async def cancel_or_detach_app(self) -> None:
        """Cancel an unfinished response; let work after a finished one run on.

        An exception of the application after its response is that of the request.
        """
        if self.ended:
            if not self.task.done():
                await asyncio.sleep(0)
            if not self.task.done():
                # such as the background tasks of Starlette, which run after the last message
                self._request.app.background.start_work(self._await_app_task)
            elif not self.task.cancelled():
                self._request.error = self.task.exception()
            return
        self.task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self.task

    async def _await_app_task(self) -> None:
        await self.task


class _Chunks(AsyncIterator[bytes]):
    """The body of a response, as the application sends it."""

    def __init__(self, exchange: _Exchange, first: Message | None) -> None:
        self._exchange = exchange
        self._first = first

    async def __anext__(self) -> bytes:
        message, self._first = self._first, None
        if message is None:
            if self._exchange.ended:
                raise StopAsyncIteration
            message = await self._exchange.wait_for_app_message()
        if message is None:
            raise RuntimeError("The mounted application ended before its response")
        return message.get("body", b"")

    async def aclose(self) -> None:
        await self._exchange.cancel_or_detach_app()


def wrap_mount_target(prefix: str, target: Mountable | ASGIApp, *, is_started: bool) -> Mountable:
    """Return the target of a mount; an ASGI application is wrapped.

    Raises:
        RuntimeError: for an application once its lifespan cannot begin any more.
        TypeError: for a target of another kind.
    """
    if hasattr(target, "check") and hasattr(target, "response"):
        return cast("Mountable", target)
    # `app.mount("/x", FastAPI)` lacks its parentheses, and a class is callable too
    if not callable(target) or isinstance(target, type):
        raise TypeError(
            f"A mount must be a StaticFiles or an ASGI application, got {target!r}; pass an"
            " application such as FastAPI()"
        )
    if is_started:
        raise RuntimeError(
            f"An ASGI application must be mounted before the startup ends, got {prefix!r} after"
            " it; call mount in a startup hook, or in setup of an extension"
        )
    return MountedApp(prefix, target)


def check_mount_middleware(app: Host) -> None:
    """Check the middleware of the mounts, once the startup hooks have made the last of them.

    Sockets that an entry covers and cannot guard are refused; a warning names the entry. Whether an
    application serves sockets is not known before one is asked for.

    Raises:
        BootError: for an `under` whose prefix covers nothing.
    """
    project = app.project
    require_covering_prefixes(app, project.table, project.unserved)
    for mounted in list_mounted_apps(app):
        try:
            project.outside.require_socket_guards(mounted.prefix)
        except TypeError as error:
            get_logger().warning("sockets below %s are refused: %s", mounted.prefix, error)


def list_mounted_apps(app: ProjectRuntime) -> list[MountedApp]:
    """Return the mounted ASGI applications, in the order of their mounts."""
    return [target for target in app.mounts.mount_targets if isinstance(target, MountedApp)]


def find_masked_in_mounts(app: ProjectRuntime, raw_path: bytes, root_path: str) -> tuple[int, ...]:
    """Return the indexes of the path segments that mounted applications of ours mask in their own
    lines.

    Args:
        app: the application that has the mounts.
        raw_path: the path as sent.
        root_path: the prefix that `app` is mounted at.
    """
    segments = [part.encode("latin-1") for part in split_path(raw_path)]
    start = count_root_segments(raw_path, root_path)
    found: list[int] = []
    for mounted in list_mounted_apps(app):
        prefix = [part.encode() for part in mounted.parts]
        below = start + len(prefix)
        # another ASGI application has no templates to compare with
        find = getattr(mounted.app, "find_masked_segments", None)
        if find is not None and list(map(unquote_to_bytes, segments[start:below])) == prefix:
            rest = b"/" + b"/".join(segments[below:])
            found += (below + index for index in find(rest, ""))
    return tuple(found)
