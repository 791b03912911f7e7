"""Several server processes behind one socket, and their supervisor.

A process that ends is replaced; SIGHUP replaces all of them one after another, TTIN and TTOU start
and end one. A stop signal ends all, each after its requests.
"""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from types import FrameType

from uvicorn.server import HANDLED_SIGNALS
from uvicorn.supervisors.multiprocess import Process

from treefold_logging import flush, get_logger
from treefold_server._errors import ServerError
from treefold_server._options import ServerOptions
from treefold_server._refusal import refuse_connections
from treefold_server._server import (
    NOT_STARTED,
    Server,
    ServerConfig,
    build_server_config,
    is_second_stop_signal,
    obeys_hangup,
    terminate_process,
    unblock_interrupt_signal,
)
from treefold_server._startup import exit_beside_stuck_threads

_STARTUP_FAILED = 3  # the exit code of a uvicorn worker whose application did not start
_LOOK_SECONDS = 0.5
"""Seconds between two looks at the processes; an end is noticed at once."""
_START_SECONDS = 60.0
"""Seconds that a process has for its first answer."""
_RETRY_SECONDS = 5.0
"""Seconds after which a replacement that did not start is tried again."""


def run_workers(
    app: str,
    listener: socket.socket,
    *,
    options: ServerOptions,
    on_start: Callable[[], None],
    is_factory: bool = False,
    is_socket_kept: bool = False,
) -> None:
    """Serve with several processes until a stop signal; a process that ends is replaced.

    Args:
        app: `module:name` of the ASGI application, which each process imports.
        listener: the bound socket, shared by all processes.
        options: the number of processes and the limits; the address is not looked at.
        on_start: called before the first process starts; from then on, stop signals are obeyed.
        is_factory: True if `app` must be called to get the application.
        is_socket_kept: another process keeps the socket: connections wait there for the next
            server.

    Raises:
        ServerError: the application did not start.
    """
    config = build_server_config(app, options, is_factory=is_factory)
    try:
        WorkerSupervisor(config, listener, leaves_queue=is_socket_kept).supervise_until_stopped(
            on_start
        )
    finally:
        listener.close()
        flush()


class WorkerProcess(Process):
    """One server process and its end of the pipe that asks whether it still answers."""

    _own: Server | None = None
    _began = 0.0
    _has_answered = False

    def start(self) -> None:
        """Start the process, which has a minute until it must answer."""
        super().start()
        self._began = time.monotonic()

    @property
    def is_starting(self) -> bool:
        """True for a process that may not answer yet: imports take long on a busy machine."""
        return not self._has_answered and time.monotonic() - self._began < _START_SECONDS

    @property
    def server(self) -> Server:
        """The server of this process, made in the process itself."""
        if self._own is None:
            self._own = Server(self.config, on_start=lambda: None)
        return self._own

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve in the process itself; close the standard input that was opened for it."""
        if (parent := multiprocessing.parent_process()) is not None:
            threading.Thread(target=_stop_when_parent_exits, args=[parent], daemon=True).start()
        try:
            super().target(sockets)
        finally:
            if self.server.is_stopped and not self.server.started:
                exit_beside_stuck_threads()
        if sys.stdin is not None:
            sys.stdin.close()

    @property
    def sentinel(self) -> int:
        """A file that is readable once the process has ended."""
        return self.process.sentinel

    @property
    def has_ended(self) -> bool:
        """True once the process has closed its files; `is_alive()` may be True a moment longer."""
        return bool(multiprocessing.connection.wait([self.sentinel], 0))

    def ping(self, timeout: float = 5) -> bool:
        """Return True if the process answers within so many seconds; False at once if it ends."""
        try:
            self.parent_conn.send(b"ping")
            ready = multiprocessing.connection.wait([self.parent_conn, self.sentinel], timeout)
            if self.parent_conn not in ready:
                return False
            while self.parent_conn.poll():  # a process that was busy has answered earlier pings too
                self.parent_conn.recv()
            self._has_answered = True
            return True
        except (OSError, EOFError, pickle.UnpicklingError):  # it was killed while it answered
            return False


class WorkerSupervisor:
    """Supervisor of several server processes.

    Args:
        config: the configuration of each.
        listener: the bound socket.
        leaves_queue: connections that begin after a stop signal wait for another server.
    """

    def __init__(
        self, config: ServerConfig, listener: socket.socket, *, leaves_queue: bool
    ) -> None:
        self._config = config
        self._leaves_queue = leaves_queue
        self._listener = listener
        self._processes: list[WorkerProcess] = []
        self._number = config.workers
        self._signals: deque[int] = deque()
        self._stopped_at: float | None = None
        self._retry_at = 0.0
        self._woken, self._wake = socket.socketpair()

    def supervise_until_stopped(self, on_start: Callable[[], None]) -> None:
        """Serve until a stop signal.

        Args:
            on_start: called once signals are obeyed.

        Raises:
            ServerError: the application did not start.
        """
        self._install_signal_handlers()
        on_start()
        self._start_missing_workers()
        try:
            while self._stopped_at is None:
                self._wait_for_event(_LOOK_SECONDS)
                while self._signals and self._stopped_at is None:
                    self._obey_signal(self._signals.popleft())
                self._replace_stopped_workers()
        finally:
            for process in self._processes:
                process.terminate()
            for process in self._processes:
                process.join()
            signal.set_wakeup_fd(-1)
            self._woken.close()
            self._wake.close()

    def _install_signal_handlers(self) -> None:
        if sys.platform != "win32":
            resource_tracker.ensure_running()  # its start, once, would deliver Ctrl-C again
        for end in (self._woken, self._wake):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        for number in HANDLED_SIGNALS:
            signal.signal(number, self._handle_stop_signal)
        names = ["SIGTTIN", "SIGTTOU", *(["SIGHUP"] if obeys_hangup() else [])]
        for name in names:
            if (number := getattr(signal, name, None)) is not None:
                signal.signal(number, lambda sig, frame: self._signals.append(sig))

    def _handle_stop_signal(self, sig: int, frame: FrameType | None) -> None:
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
            if not self._leaves_queue:
                refuse_connections(self._listener)
        elif is_second_stop_signal(self._stopped_at):
            for process in self._processes:
                process.process.kill()
            terminate_process(sig)

    def _wait_for_event(self, seconds: float) -> None:
        """Wait for a signal, the end of a process, or this time."""
        ended = [process.sentinel for process in self._processes]
        multiprocessing.connection.wait([self._woken, *ended], seconds)
        try:
            while self._woken.recv(1024):
                pass
        except BlockingIOError:
            pass

    def _obey_signal(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._replace_all_workers()
        elif number == signal.SIGTTIN:
            self._number += 1
            self._start_missing_workers()
        elif self._number > 1:
            self._number -= 1
            process = self._processes.pop()
            process.terminate()
            process.join()

    def _start(self) -> WorkerProcess:
        process = WorkerProcess(self._config, [self._listener])
        with _postpone_interrupts():
            process.start()
        return process

    def _start_missing_workers(self) -> None:
        while len(self._processes) < self._number and self._stopped_at is None:
            self._processes.append(self._start())

    def _replace_all_workers(self) -> None:
        """Replace each process once its replacement serves, one after another."""
        get_logger().info("replacing %d processes", len(self._processes))
        for index, former in enumerate(list(self._processes)):
            process = self._start()
            if not self._wait_until_ready(process):
                process.kill()
                process.join()
                if self._stopped_at is None:
                    get_logger().error(
                        "a new worker process did not start; the former ones go on to serve"
                    )
                return
            self._processes[index] = process
            former.terminate()
            former.join()

    def _wait_until_ready(self, process: WorkerProcess) -> bool:
        while self._stopped_at is None and process.process.is_alive():
            if process.is_ready(timeout=1):
                return True
            time.sleep(0.05)
        return False

    def _replace_stopped_workers(self) -> None:
        for process in list(self._processes):
            if self._stopped_at is None and not self._answers_or_is_starting(process):
                if self._stopped_at is not None:  # since then: it ends after its requests
                    return
                process.kill()
                process.join()
                self._processes.remove(process)
                self._handle_process_end(process)
        if time.monotonic() >= self._retry_at:
            self._start_missing_workers()

    def _answers_or_is_starting(self, process: WorkerProcess) -> bool:
        seconds = self._config.timeout_worker_healthcheck
        if process.ping(seconds):
            return True
        if process.has_ended:
            return False
        if process.is_starting:
            return True
        if self._stopped_at is not None:
            return False
        get_logger().error(
            "worker process %d did not answer for %d s and is replaced", process.pid, seconds
        )
        return False

    def _handle_process_end(self, process: WorkerProcess) -> None:
        code = process.exitcode or 0
        log = get_logger()
        if code == _STARTUP_FAILED:
            # Each has its say first: the reasons may be in the log of one that still starts.
            if not any([self._wait_until_ready(other) for other in self._processes]):
                raise ServerError(NOT_STARTED)
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            log.error("a worker process did not start; it is tried again in %d s", _RETRY_SECONDS)
        elif code < 0:
            log.error(
                "worker process %d was ended by %s; another takes its place",
                process.pid,
                signal.Signals(-code).name,
            )
        elif code:
            log.error(
                "worker process %d ended with code %d; another takes its place", process.pid, code
            )
        else:
            log.info("worker process %d has served its requests and is replaced", process.pid)


@contextmanager
def _postpone_interrupts() -> Generator[None]:
    """Postpone Ctrl-C here and in the processes that are started in the block.

    A terminal signals all processes; one that still imports would print a traceback. A worker
    accepts the signal once it obeys it: `Server.capture_signals`.
    """
    if sys.platform != "win32":  # Windows has no signal masks
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        unblock_interrupt_signal()


def _stop_when_parent_exits(parent: BaseProcess) -> None:
    """End this process with its supervisor: a killed one cannot end it, and the port stays held."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
