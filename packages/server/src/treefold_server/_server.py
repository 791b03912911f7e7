"""The server of one process: uvicorn, configured for the internet, which can restart.

It takes a finished application or the name of a factory, and decides nothing about either.
"""

import asyncio
import contextlib
import importlib.util
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn.server import HANDLED_SIGNALS

from treefold_logging import flush, get_logger
from treefold_server._connection_timeouts import HEAD_BYTES, ConnectionTimeouts
from treefold_server._descriptors import DescriptorWatch
from treefold_server._errors import ServerError
from treefold_server._options import ServerOptions
from treefold_server._refusal import is_refusing, refuse_connections
from treefold_server._startup import CancellableLifespan, exit_beside_stuck_threads

# By name: a worker of another process imports them for itself.
_HTTPTOOLS: Any = "treefold_server._http_protocol:HardenedHttpToolsProtocol"
_H11: Any = "treefold_server._h11_protocol:HardenedH11Protocol"
_SOCKET_PROTOCOL: Any = "treefold_server._socket_protocol:HardenedWebSocketProtocol"
_RESTART_GRACE_SECONDS = 5
_ARRIVAL_SECONDS = 0.05
"""Seconds in which connections that have begun are accepted, once no new ones begin."""
_ONE_SIGNAL_SECONDS = 1.0
"""Stop signals within this time count as one: a process group and its parent may both send one."""
_QUIET_SECONDS = 0.1
"""Seconds without a request, after nothing is accepted any more, before connections are closed."""
_MAX_QUIET_WAITS = 10
"""Most repetitions of that wait."""
_TICKS_PER_SECOND = 10
"""How often uvicorn calls `on_tick`."""
NOT_STARTED = "The application did not start; the reason is above"


def serve_until_stopped(
    app: Any,
    listener: socket.socket,
    *,
    on_start: Callable[[], None],
    options: ServerOptions | None = None,
    background: "Callable[[Server], Awaitable[None]] | None" = None,
    is_factory: bool = False,
    during_startup: "Callable[[Server], AbstractContextManager[None]] | None" = None,
    restarts_on_hangup: bool = False,
    is_socket_kept: bool = False,
) -> bool:
    """Serve one application in this process until a stop signal.

    Args:
        app: an ASGI application, or `module:name` of one.
        listener: the bound socket; it is closed at the end.
        on_start: called once, when requests are accepted.
        options: the limits; the address and `workers` are not looked at.
        background: coroutine function that runs on the same loop until it is cancelled at the end.
        is_factory: True if `app` must be called to get the application.
        during_startup: returns a block in which the application is started.
        restarts_on_hangup: SIGHUP asks for a restart, unless it is that of a terminal.
        is_socket_kept: another process keeps the socket: connections wait there for the next
            server.

    Returns:
        True if the process must be restarted.

    Raises:
        ServerError: the application did not start.
    """
    config = build_server_config(app, options or ServerOptions(), is_factory=is_factory)
    server = Server(config, on_start, background, last_listener=listener)
    server.during_startup = during_startup
    server.restarts_on_hangup = restarts_on_hangup and obeys_hangup()
    server.leaves_queue = is_socket_kept
    try:
        with contextlib.suppress(SystemExit):  # uvicorn exits like this when the startup fails
            server.run(sockets=[listener])
    finally:
        listener.close()
        flush()
    if not (server.started or server.needs_restart):
        if not server.is_stopped:
            raise ServerError(NOT_STARTED)
        exit_beside_stuck_threads()
    return server.needs_restart


class Server(uvicorn.Server):
    """uvicorn server that loses no request at its end, can restart, and runs a further coroutine.

    At a stop signal it accepts what has connected, answers what arrives on open connections with
    `Connection: close`, and ends when nothing arrives any more.

    Args:
        last_listener: the listening socket, if no other process accepts from it: no connection
            begins after a stop signal. None for one of several processes.

    Attributes:
        needs_restart: True if the process must be restarted after the end.
        restarts_on_hangup: SIGHUP asks for that.
        leaves_queue: connections that begin after a stop signal wait for another server.
        during_startup: returns a block in which the application is started.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        on_start: Callable[[], None],
        background: "Callable[[Server], Awaitable[None]] | None" = None,
        *,
        last_listener: socket.socket | None = None,
    ) -> None:
        super().__init__(config)
        self.needs_restart = False
        self.restarts_on_hangup = False
        self.leaves_queue = False
        self.during_startup: Callable[[Server], AbstractContextManager[None]] | None = None
        self._on_start = on_start
        self._background = background
        self._last_listener = last_listener
        self._tasks: list[asyncio.Future[None]] = []
        self._stopped_at: float | None = None
        self._wants_restart = False
        self._ending: asyncio.Future[None] | None = None
        self._descriptors = DescriptorWatch()

    @staticmethod
    def build_for_thread(app: Any) -> "Server":
        """Return a server for another thread than the main one: it handles no signals."""
        return _ThreadServer(build_server_config(app, ServerOptions()), on_start=lambda: None)

    @property
    def is_stopped(self) -> bool:
        """True after a stop signal."""
        return self._stopped_at is not None

    def request_restart(self, grace: float = _RESTART_GRACE_SECONDS) -> None:
        """Stop accepting connections, and end after the requests in progress for a restart.

        After a stop signal it does nothing: the process ends without a restart. Before the
        application has started, in any thread, its startup is cancelled.

        Args:
            grace: seconds after which they are cancelled.
        """
        if self._stopped_at is not None:
            return
        if not self.started:
            lifespan = self._find_lifespan()
            self.needs_restart = lifespan is not None and lifespan.cancel_startup()
            return
        self.needs_restart = True
        self.config.timeout_graceful_shutdown = cast("int", grace)
        self._stop_accepting()
        self._close_after_responses()
        self._ending = self._ending or asyncio.ensure_future(self._wait_until_quiet())

    async def on_tick(self, counter: int) -> bool:
        """Return True when the server may close its connections and end."""
        if counter % _TICKS_PER_SECOND == 0:
            self._descriptors.probe_free_descriptor()
        wants_end = await super().on_tick(counter)
        if self._ending is None:
            if self._wants_restart or (wants_end and self._restarts_after_max_requests()):
                self.request_restart(self.config.timeout_graceful_shutdown or 0)
            elif wants_end:
                self._ending = asyncio.ensure_future(self._stop_accepting_and_drain())
        return self._ending is not None and self._ending.done()

    def _restarts_after_max_requests(self) -> bool:
        """Return True if the end is that of `max_requests`, without a supervisor."""
        return not self.should_exit and self._last_listener is not None

    async def _stop_accepting_and_drain(self) -> None:
        if self._last_listener is None:
            await self._wait_until_sockets_refuse()
        if self.server_state.connections or self._last_listener is None:
            await asyncio.sleep(_ARRIVAL_SECONDS)
        for server in self.servers:
            server.close()
        self._close_after_responses()
        await self._wait_until_quiet()

    async def _wait_until_sockets_refuse(self) -> None:
        """Accept until the supervisor lets no connection begin, or for a second.

        Only this process may be ending, while others go on to accept.
        """
        sockets = [listener for server in self.servers for listener in server.sockets]
        deadline = time.monotonic() + _ONE_SIGNAL_SECONDS
        while any(is_refusing(each) is False for each in sockets):
            await asyncio.sleep(0.02)
            if time.monotonic() > deadline:
                break

    def _close_after_responses(self) -> None:
        """Close every connection after its current response.

        Closing later could lose a request that the client is already sending.
        """
        for headers in (self.server_state.default_headers, self.config.encoded_headers):
            headers.append((b"connection", b"close"))

    def _stop_accepting(self) -> None:
        loop = asyncio.get_running_loop()
        for server in self.servers:
            if isinstance(loop, asyncio.SelectorEventLoop):
                # Closing the server would drop connections that the kernel has already accepted.
                for listener in server.sockets:
                    loop.remove_reader(listener.fileno())
            else:
                server.close()

    async def _wait_until_quiet(self) -> None:
        """Wait until no request is arriving any more: closing earlier would reset a connection."""
        served = -1
        for _ in range(_MAX_QUIET_WAITS):
            if served == self.server_state.total_requests and not self._has_unused_connection():
                break
            served = self.server_state.total_requests
            await asyncio.sleep(_QUIET_SECONDS if self.server_state.connections else 0)

    def _has_unused_connection(self) -> bool:
        connections: set[Any] = set(self.server_state.connections)
        return any(getattr(connection, "cycle", True) is None for connection in connections)

    def find_busy_tasks(self) -> set[asyncio.Task[None]]:
        """Return the tasks of the requests and WebSockets in progress."""
        return set(self.server_state.tasks)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, then the coroutine `background`."""
        if self.is_stopped:  # while the application was imported
            return
        with (
            self.during_startup(self) if self.during_startup else contextlib.nullcontext(),
            _limit_tls_handshakes(asyncio.get_running_loop()),
        ):
            await super().startup(sockets)
        if self.started:
            self._descriptors.install_accept_error_handler(asyncio.get_running_loop())
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
        if self.restarts_on_hangup:
            previous[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._handle_hangup)
        previous |= survive_user_signals()
        unblock_interrupt_signal()
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if (lifespan := self._find_lifespan()) is not None and lifespan.raise_in_blocked_loop():
            return
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
            if self._last_listener is not None and not self.leaves_queue:
                refuse_connections(self._last_listener)
        elif is_second_stop_signal(self._stopped_at):
            terminate_process(sig)
        self.should_exit = True
        self.needs_restart = self._wants_restart = False
        if lifespan is not None:
            lifespan.cancel_startup()

    def _find_lifespan(self) -> CancellableLifespan | None:
        lifespan = getattr(self, "lifespan", None)  # made once the application is imported
        return lifespan if isinstance(lifespan, CancellableLifespan) else None

    def _handle_hangup(self, sig: int, frame: FrameType | None) -> None:
        self._wants_restart = self._stopped_at is None


@contextlib.contextmanager
def _limit_tls_handshakes(loop: Any) -> Generator[None, None, None]:
    """Close connections whose TLS handshake takes longer than a head may (R-11).

    For servers that are made in the block: uvicorn passes no limit, and that of the loop is 60 s.
    """
    create = loop.create_server

    def create_limited(*args: Any, **options: Any) -> Any:
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", ConnectionTimeouts.HEAD_SECONDS)
        return create(*args, **options)

    loop.create_server = create_limited
    try:
        yield
    finally:
        del loop.create_server


class _ThreadServer(Server):
    """A server that handles no signals: Python allows that in the main thread only."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def obeys_hangup() -> bool:
    """Return True if SIGHUP is sent by a service manager, not by a terminal that closes."""
    ignored = getattr(signal, "SIGHUP", None) is None or (
        signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # by nohup
    )
    return not ignored and (sys.stdin is None or not sys.stdin.isatty())


def survive_user_signals() -> dict[int, Any]:
    """Ignore SIGUSR1 and SIGUSR2 where nothing handles them; return the former handlers.

    Other servers open their logs again or print their state; by default the process would end.
    """
    former: dict[int, Any] = {}
    for name in ("SIGUSR1", "SIGUSR2"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            # no SIG_IGN: programs that the project starts would inherit it
            former[number] = signal.signal(number, lambda sig, frame: None)
    return former


def unblock_interrupt_signal() -> None:
    """Deliver Ctrl-C to this process again, one that arrived meanwhile included."""
    if sys.platform != "win32":  # Windows has no signal masks
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def is_second_stop_signal(stopped_at: float) -> bool:
    """Return True if a stop signal now is not one and the same with an earlier one."""
    return time.monotonic() - stopped_at > _ONE_SIGNAL_SECONDS


def terminate_process(sig: int) -> None:
    """Terminate this process, even if a thread hangs, with the shell's exit code for the signal."""

    def flush_and_exit() -> None:
        get_logger().warning(
            "second signal: terminated immediately, requests in progress were aborted"
        )
        flush(1.0)
        os._exit(128 + sig)

    # In a thread: the signal may have interrupted this one while it held a lock of the log.
    threading.Thread(target=flush_and_exit, daemon=True).start()


def _add_mapped_networks(allowed: Iterable[str]) -> list[str]:
    """Add to networks of IPv4 those that their clients have on a socket of both families.

    Source: RFC 4291, 2.5.5.2: `10.0.0.0/8` is `::ffff:10.0.0.0/104` there.
    """
    found = list(allowed)
    for text in allowed:
        with contextlib.suppress(ValueError):  # `*`, or a name
            network = ipaddress.ip_network(text)
            if network.version == 4:
                found.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return found


def _log_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        get_logger().error("background task of the server failed", exc_info=error)


def _find_log_handler() -> logging.Handler:
    return get_logger().handlers[0]


# Messages of uvicorn go through the framework's log, so that a JSON log stays JSON. As a setting of
# uvicorn it applies to the worker processes too.
_LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"treefold": {"()": _find_log_handler}},
    "loggers": {"uvicorn": {"handlers": ["treefold"], "level": "WARNING"}},
}


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with what only this server has.

    Attributes:
        options: those of the server.
        unread_responses: the connections whose clients do not read, once there is one.
    """

    options: ServerOptions = ServerOptions()
    unread_responses: Any = None

    def load(self) -> None:
        """Import what the settings name."""
        super().load()
        if self.lifespan != "off":
            self.lifespan_class = CancellableLifespan


def build_server_config(
    app: Any, options: ServerOptions, *, is_factory: bool = False
) -> ServerConfig:
    """Return the configuration of one server process.

    Args:
        app: an ASGI application, or `module:name` of one.
        options: those of the server.
        is_factory: True if `app` must be called to get the application.
    """
    config = ServerConfig(
        app,
        factory=is_factory,
        http=_HTTPTOOLS if importlib.util.find_spec("httptools") else _H11,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws=_SOCKET_PROTOCOL,
        workers=options.workers,
        lifespan=options.lifespan,
        log_config=_LOG_CONFIG,
        access_log=False,  # a line of uvicorn shows the secrets of a query
        server_header=False,
        proxy_headers=bool(options.forwarded_allow_ips),  # else a client could forge them
        forwarded_allow_ips=_add_mapped_networks(options.forwarded_allow_ips),
        ws_max_size=1024 * 1024,
        ws_per_message_deflate=False,  # 20 KB on the wire may inflate to 20 MB
        ws_ping_interval=20,
        ws_ping_timeout=20,
        ssl_certfile=options.tls_certificate,
        ssl_keyfile=options.tls_key,
        ssl_ca_certs=options.tls_client_ca,
        ssl_cert_reqs=ssl.CERT_REQUIRED if options.tls_client_ca else ssl.CERT_NONE,
        backlog=options.backlog,
        limit_max_requests=options.max_requests,
        limit_max_requests_jitter=options.max_requests_jitter,
        limit_concurrency=options.limit_concurrency,
    )
    # As given: uvicorn's annotations take whole seconds, its waits take fractions.
    config.timeout_keep_alive = cast("int", options.keep_alive)
    config.timeout_graceful_shutdown = cast("int", options.grace)
    config.timeout_worker_healthcheck = cast("int", options.worker_timeout)
    config.options = options
    return config
