"""Serving over a socket: bind, run, stop.

The only module that knows uvicorn. It takes a finished application or the name of a factory, and
decides nothing about either.
"""

import asyncio
import contextlib
import errno
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
from uvicorn.supervisors import Multiprocess

from treefold_cli._connection_watch import HEAD_BYTES
from treefold_cli._errors import MISUSE, CommandError
from treefold_logging import flush, get_logger

_STARTUP_FAILED = 3  # the exit code of a uvicorn worker whose application did not start
# By name: a worker of another process imports them for itself.
_HTTPTOOLS: Any = "treefold_cli._http_protocol:PatientHttpTools"
_H11: Any = "treefold_cli._h11_protocol:PatientH11"
_SOCKET_PROTOCOL: Any = "treefold_cli._socket_protocol:GuardedWebSockets"
_GRACE_OF_RESTART = 5
_QUIET = 0.1
"""Seconds without a request, after nothing is accepted any more, before connections are closed."""
_LONGEST_QUIET = 10
"""Most repetitions of that wait."""
_NOT_STARTED = "The application did not start; the reason is above"


def bind(host: str, port: int) -> socket.socket:
    """Bind the port, before anything of the project is imported.

    Args:
        host: a name or address of this machine.
        port: a port, or 0 for a free one.

    Returns:
        A bound socket that does not listen yet.

    Raises:
        CommandError: the port is in use, or the address is not one of this machine.
    """
    if not host:  # a socket takes it as every interface; the user probably has an unset variable
        raise _unknown_host(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only for a socket with an explicit protocol. Without it the body of a
    # response waits until the client acknowledges its head: 40 ms on a kept-alive connection.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    return listener


def address(listener: socket.socket) -> str:
    """Return the URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(
    app: Any,
    listener: socket.socket,
    *,
    on_start: Callable[[], None],
    limit: int | None = None,
    beside: "Callable[[Server], Awaitable[None]] | None" = None,
) -> bool:
    """Serve one application in this process until it is told to stop.

    Args:
        app: an ASGI application.
        listener: the bound socket; it is closed at the end.
        on_start: called once, when requests are accepted.
        limit: the most requests at one time; above it the answer is 503.
        beside: coroutine function that runs on the same loop until it is cancelled at the end.

    Returns:
        True if the process must be restarted.

    Raises:
        CommandError: the application did not start.
    """
    server = Server(_config(app, limit=limit), on_start, beside)
    try:
        with contextlib.suppress(SystemExit):  # uvicorn exits like this when the startup fails
            server.run(sockets=[listener])
    finally:
        listener.close()
        flush()
    if not server.started:
        raise CommandError(_NOT_STARTED)
    return server.starts_again


def run_workers(
    factory: str, listener: socket.socket, *, workers: int, limit: int | None = None
) -> None:
    """Serve with several processes until told to stop; one that dies is replaced.

    Args:
        factory: `module:function` that makes the ASGI application in each process.
        listener: the bound socket, shared by all processes.
        workers: number of processes.
        limit: the most requests at one time in each; above it the answer is 503.

    Raises:
        CommandError: the application did not start.
    """
    supervisor = Workers(_config(factory, workers=workers, limit=limit), sockets=[listener])
    try:
        supervisor.run()
    finally:
        listener.close()
    if any(worker.exitcode == _STARTUP_FAILED for worker in supervisor.processes):
        raise CommandError(_NOT_STARTED)


class Server(uvicorn.Server):
    """uvicorn server that can restart and runs an additional coroutine on its event loop.

    Attributes:
        starts_again: True if the process must be restarted after the end.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        on_start: Callable[[], None],
        beside: "Callable[[Server], Awaitable[None]] | None",
    ) -> None:
        super().__init__(config)
        self.starts_again = False
        self._on_start = on_start
        self._beside = beside
        self._tasks: list[asyncio.Future[None]] = []
        self._interruptible = False
        self._is_told = False

    def start_again(self) -> None:
        """Stop accepting connections, and end after the requests in progress for a restart."""
        self.starts_again = True
        self.config.timeout_graceful_shutdown = _GRACE_OF_RESTART
        self._stop_accepting()
        # Close every connection after its current response: closing later could lose a request that
        # the client is already sending.
        for headers in (self.server_state.default_headers, self.config.encoded_headers):
            headers.append((b"connection", b"close"))
        self._tasks.append(asyncio.ensure_future(self._end_when_quiet()))

    def _stop_accepting(self) -> None:
        loop = asyncio.get_running_loop()
        for server in self.servers:
            if isinstance(loop, asyncio.SelectorEventLoop):
                # Closing the server would drop connections that the kernel has already accepted.
                for listener in server.sockets:
                    loop.remove_reader(listener.fileno())
            else:
                server.close()

    async def _end_when_quiet(self) -> None:
        """Wait until no request is arriving any more: closing earlier would reset a connection."""
        served = -1
        for _ in range(_LONGEST_QUIET):
            if served == self.server_state.total_requests and not self._has_silent():
                break
            served = self.server_state.total_requests
            await asyncio.sleep(_QUIET)
        self.should_exit = True

    def _has_silent(self) -> bool:
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
        """Start serving, then the coroutine `beside`."""
        await super().startup(sockets)
        if self.started:
            self._on_start()
            if self._beside is not None:
                task = asyncio.ensure_future(self._beside(self))
                task.add_done_callback(_report)
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
        if self._is_told:
            _end_at_once(sig)
        self._is_told = self.should_exit = True
        self.starts_again = False
        if self._interruptible:
            raise KeyboardInterrupt


class Workers(Multiprocess):
    """Supervisor of several server processes; a second stop signal kills all of them."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._is_told = False
        for number in HANDLED_SIGNALS:
            signal.signal(number, self._stop)

    def _stop(self, sig: int, frame: FrameType | None) -> None:
        if self._is_told:
            for worker in self.processes:
                worker.process.kill()
            _end_at_once(sig)
        self._is_told = True
        self.signal_queue.append(sig)


def _end_at_once(sig: int) -> None:
    """Terminate this process, even if a thread hangs, with the shell's exit code for the signal."""

    def end() -> None:
        get_logger().warning("ended at once by a second signal; what ran is cut off")
        flush(1.0)
        os._exit(128 + sig)

    # In a thread: the signal may have interrupted this one while it held a lock of the log.
    threading.Thread(target=end, daemon=True).start()


def _report(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        get_logger().error("what ran beside the server failed", exc_info=error)


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


def _config(app: Any, *, workers: int = 1, limit: int | None = None) -> uvicorn.Config:
    return uvicorn.Config(
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


def _unknown_host(host: str) -> CommandError:
    message = f"Unknown host {host!r}; give an address of this machine with --host"
    return CommandError(message, code=MISUSE)


def _cannot_listen(host: str, port: int, error: OSError | UnicodeError) -> CommandError:
    if isinstance(error, socket.gaierror | UnicodeError):
        return _unknown_host(host)
    if error.errno == errno.EADDRINUSE:
        return CommandError(f"Port {port} on {host!r} is in use; choose another with --port")
    return CommandError(
        f"Cannot listen on {host!r}, port {port}: {error.strerror or error}; choose others with"
        " --host and --port"
    )
