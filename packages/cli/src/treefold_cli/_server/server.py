"""The server of one process: uvicorn, configured for the internet, which can restart.

It takes a finished application or the name of a factory, and decides nothing about either.
"""

import asyncio
import contextlib
import importlib.util
import logging
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Generator
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.server import HANDLED_SIGNALS

from treefold_cli._console.errors import CommandError
from treefold_cli._server.connection_timeouts import HEAD_BYTES
from treefold_http import ServeSettings
from treefold_logging import flush, get_logger

# By name: a worker of another process imports them for itself.
_HTTPTOOLS: Any = "treefold_cli._server.http_protocol:HardenedHttpToolsProtocol"
_H11: Any = "treefold_cli._server.h11_protocol:HardenedH11Protocol"
_SOCKET_PROTOCOL: Any = "treefold_cli._server.socket_protocol:HardenedWebSocketProtocol"
_RESTART_GRACE_SECONDS = 5
_QUIET_SECONDS = 0.1
"""Seconds without a request, after nothing is accepted any more, before connections are closed."""
_MAX_QUIET_WAITS = 10
"""Most repetitions of that wait."""
NOT_STARTED = "The application did not start; the reason is above"


def run(
    app: Any,
    listener: socket.socket,
    *,
    on_start: Callable[[], None],
    limit: int | None = None,
    serve: ServeSettings | None = None,
    background: "Callable[[Server], Awaitable[None]] | None" = None,
) -> bool:
    """Serve one application in this process until a stop signal.

    Args:
        app: an ASGI application.
        listener: the bound socket; it is closed at the end.
        on_start: called once, when requests are accepted.
        limit: the most requests at one time; above it the answer is 503.
        serve: the settings of the server; its defaults without them.
        background: coroutine function that runs on the same loop until it is cancelled at the end.

    Returns:
        True if the process must be restarted.

    Raises:
        CommandError: the application did not start.
    """
    server = Server(server_config(app, limit=limit, serve=serve), on_start, background)
    try:
        with contextlib.suppress(SystemExit):  # uvicorn exits like this when the startup fails
            server.run(sockets=[listener])
    finally:
        listener.close()
        flush()
    if not server.started:
        raise CommandError(NOT_STARTED)
    return server.needs_restart


class Server(uvicorn.Server):
    """uvicorn server that can restart and runs an additional coroutine on its event loop.

    Attributes:
        needs_restart: True if the process must be restarted after the end.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        on_start: Callable[[], None],
        background: "Callable[[Server], Awaitable[None]] | None",
    ) -> None:
        super().__init__(config)
        self.needs_restart = False
        self._on_start = on_start
        self._background = background
        self._tasks: list[asyncio.Future[None]] = []
        self._interruptible = False
        self._is_stopping = False

    def request_restart(self) -> None:
        """Stop accepting connections, and end after the requests in progress for a restart."""
        self.needs_restart = True
        self.config.timeout_graceful_shutdown = _RESTART_GRACE_SECONDS
        self._stop_accepting()
        # Close every connection after its current response: closing later could lose a request that
        # the client is already sending.
        for headers in (self.server_state.default_headers, self.config.encoded_headers):
            headers.append((b"connection", b"close"))
        self._tasks.append(asyncio.ensure_future(self._stop_when_quiet()))

    def _stop_accepting(self) -> None:
        loop = asyncio.get_running_loop()
        for server in self.servers:
            if isinstance(loop, asyncio.SelectorEventLoop):
                # Closing the server would drop connections that the kernel has already accepted.
                for listener in server.sockets:
                    loop.remove_reader(listener.fileno())
            else:
                server.close()

    async def _stop_when_quiet(self) -> None:
        """Wait until no request is arriving any more: closing earlier would reset a connection."""
        served = -1
        for _ in range(_MAX_QUIET_WAITS):
            if served == self.server_state.total_requests and not self._has_unused_connection():
                break
            served = self.server_state.total_requests
            await asyncio.sleep(_QUIET_SECONDS)
        self.should_exit = True

    def _has_unused_connection(self) -> bool:
        connections: set[Any] = set(self.server_state.connections)
        return any(getattr(connection, "cycle", True) is None for connection in connections)

    def busy(self) -> set[asyncio.Task[None]]:
        """Return the tasks of the requests and WebSockets in progress."""
        return set(self.server_state.tasks)

    @contextlib.contextmanager
    def interruptible(self) -> Generator[None, None, None]:
        """Raise KeyboardInterrupt on a stop signal, in a block that may occupy the event loop."""
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, then the coroutine `background`."""
        await super().startup(sockets)
        if self.started:
            self._on_start()
            if self._background is not None:
                task = asyncio.ensure_future(self._background(self))
                task.add_done_callback(_log_failure)
                self._tasks.append(task)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Cancel the additional tasks, then stop serving."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # uvicorn raises the signal again after the shutdown. A requested stop is no failure, so
        # this server exits with code 0, after the log is written.
        previous = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._is_stopping:
            terminate(sig)
        self._is_stopping = self.should_exit = True
        self.needs_restart = False
        if self._interruptible:
            raise KeyboardInterrupt


def terminate(sig: int) -> None:
    """Terminate this process, even if a thread hangs, with the shell's exit code for the signal."""

    def end() -> None:
        get_logger().warning(
            "second signal: terminated immediately, requests in progress were aborted"
        )
        flush(1.0)
        os._exit(128 + sig)

    # In a thread: the signal may have interrupted this one while it held a lock of the log.
    threading.Thread(target=end, daemon=True).start()


def _log_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        get_logger().error("background task of the server failed", exc_info=error)


def _log_handler() -> logging.Handler:
    return get_logger().handlers[0]


# Messages of uvicorn go through the framework's log, so that a JSON log stays JSON. As a setting of
# uvicorn it applies to the worker processes too.
_LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"treefold": {"()": _log_handler}},
    "loggers": {"uvicorn": {"handlers": ["treefold"], "level": "WARNING"}},
}


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with the settings that only this server has.

    Attributes:
        serve: the settings of the server.
        unread_responses: the connections whose clients do not read, once there is one.
    """

    serve: ServeSettings
    unread_responses: Any = None


def server_config(
    app: Any,
    *,
    workers: int = 1,
    limit: int | None = None,
    serve: ServeSettings | None = None,
) -> ServerConfig:
    """Return the configuration of one server process.

    Args:
        app: an ASGI application, or `module:function` that makes it.
        workers: number of processes.
        limit: the most requests at one time in each; above it the answer is 503.
        serve: the settings of the server; its defaults without them.
    """
    config = ServerConfig(
        app,
        factory=isinstance(app, str),
        http=_HTTPTOOLS if importlib.util.find_spec("httptools") else _H11,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws=_SOCKET_PROTOCOL,
        workers=workers,
        lifespan="on",
        log_config=_LOG_CONFIG,
        access_log=False,  # the framework writes one line per request, masked
        server_header=False,
        proxy_headers=False,  # a client could forge them; middleware accepts known proxies only
        ws_max_size=1024 * 1024,
        ws_per_message_deflate=False,  # 20 KB on the wire may inflate to 20 MB
        ws_ping_interval=20,
        ws_ping_timeout=20,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=20,
        limit_concurrency=limit,
    )
    config.serve = serve or ServeSettings()
    return config
