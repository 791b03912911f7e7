"""Several server processes behind one socket, and their supervisor.

A process that ends is replaced; SIGHUP replaces all of them one after another, TTIN and TTOU start
and end one. A stop signal ends all, each after its requests.
"""

import multiprocessing
import multiprocessing.connection
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

from uvicorn.server import HANDLED_SIGNALS

from treefold_logging import flush, get_logger
from treefold_server._errors import ServerError
from treefold_server._options import ServerOptions
from treefold_server._refusal import refuse_connections
from treefold_server._server import (
    NOT_STARTED,
    ServerConfig,
    build_server_config,
    is_second_stop_signal,
    obeys_hangup,
    survive_user_signals,
    terminate_process,
    unblock_interrupt_signal,
)
from treefold_server._worker_process import WorkerProcess

_STARTUP_FAILED = 3  # the exit code of a uvicorn worker whose application did not start
_LOOK_SECONDS = 0.5
"""Seconds between two looks at the processes; an end is noticed at once."""
_STARTING_LOOK_SECONDS = 0.1
"""Seconds to wait for the answer of a process that has not served yet."""
_RETRY_SECONDS = 5.0
"""Seconds after which another process is started for one that did not start."""


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


class WorkerSupervisor:
    """Supervisor of several server processes.

    | A process | What follows |
    |---|---|
    | ends, or does not answer | another is started at once |
    | is killed before it has served | another is started after 5 s |
    | whose application does not start | the same; if none serves and none starts: the end |
    | SIGHUP: all are outdated | one replacement at a time; once it serves, one of them leaves |
    | leaves | it answers its requests, and then ends |

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
        self._number = config.workers
        self._processes: list[WorkerProcess] = []
        self._outdated: list[WorkerProcess] = []
        self._replacement: WorkerProcess | None = None
        self._leaving: list[WorkerProcess] = []
        self._signals: deque[int] = deque()
        self._stopped_at: float | None = None
        self._has_failed_start = False
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
                self._continue_replacement()
        finally:
            for process in self._find_all_processes():
                if process not in self._leaving:  # for which it would be a second signal
                    process.terminate()
            for process in self._find_all_processes():
                process.join()
            signal.set_wakeup_fd(-1)
            self._woken.close()
            self._wake.close()

    def _find_all_processes(self) -> list[WorkerProcess]:
        replacement = [] if self._replacement is None else [self._replacement]
        return [*self._processes, *replacement, *self._leaving]

    def _install_signal_handlers(self) -> None:
        if sys.platform != "win32":
            resource_tracker.ensure_running()  # its start, once, would deliver Ctrl-C again
        for end in (self._woken, self._wake):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        for number in HANDLED_SIGNALS:
            signal.signal(number, self._handle_stop_signal)
        survive_user_signals()
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
            for process in self._find_all_processes():
                process.process.kill()
            terminate_process(sig)

    def _wait_for_event(self, seconds: float) -> None:
        """Wait for a signal, the end of a process, or this time."""
        ended = [process.sentinel for process in self._find_all_processes()]
        multiprocessing.connection.wait([self._woken, *ended], seconds)
        try:
            while self._woken.recv(1024):
                pass
        except BlockingIOError:
            pass

    def _obey_signal(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._begin_replacement()
        elif number == signal.SIGTTIN:
            self._number += 1
            self._start_missing_workers()
        elif self._number > 1:
            self._number -= 1
            if len(self._processes) > self._number:
                self._ask_to_leave(self._processes[-1])

    def _start(self) -> WorkerProcess:
        process = WorkerProcess(self._config, [self._listener])
        with _postpone_interrupts():
            process.start()
        return process

    def _start_missing_workers(self) -> None:
        while len(self._processes) < self._number and self._stopped_at is None:
            self._processes.append(self._start())

    def _ask_to_leave(self, process: WorkerProcess) -> None:
        """Ask a process to end after its requests."""
        self._remove(process)
        self._leaving.append(process)
        process.terminate()

    def _remove(self, process: WorkerProcess) -> None:
        for group in (self._processes, self._outdated):
            if process in group:
                group.remove(process)

    def _begin_replacement(self) -> None:
        """Replace all processes, one after another; a replacement of before is outdated, too."""
        get_logger().info("replacing %d processes", len(self._processes))
        self._outdated = list(self._processes)
        self._end_replacement()

    def _end_replacement(self) -> None:
        if self._replacement is not None:
            self._replacement.kill()
            self._replacement.join()
            self._replacement = None

    def _continue_replacement(self) -> None:
        self._leaving = [process for process in self._leaving if not process.has_ended]
        if self._stopped_at is not None:
            return
        if self._replacement is None:
            if self._outdated and not self._leaving:  # one more process than usual, not two
                self._replacement = self._start()
        elif not self._answers_or_starts(self._replacement):
            if self._stopped_at is None:
                get_logger().error(
                    "a new worker process did not start; the former ones go on to serve"
                )
                self._end_replacement()
                self._outdated.clear()
        elif self._replacement.has_served:
            process, self._replacement = self._replacement, None
            self._processes.append(process)
            if len(self._processes) > self._number:
                self._ask_to_leave((self._outdated or self._processes)[0])

    def _replace_stopped_workers(self) -> None:
        for process in list(self._processes):
            if self._stopped_at is None and not self._answers_or_starts(process):
                if self._stopped_at is not None:  # since then: it ends after its requests
                    return
                process.kill()
                process.join()
                self._remove(process)
                self._handle_process_end(process)
        if self._has_failed_start:
            self._decide_after_failed_start()
        elif time.monotonic() >= self._retry_at:
            self._start_missing_workers()

    def _answers_or_starts(self, process: WorkerProcess) -> bool:
        if process.may_still_start:  # an import of 10 s must not delay what the others need
            return process.ping(_STARTING_LOOK_SECONDS) or not process.has_ended
        seconds = self._config.timeout_worker_healthcheck
        if process.ping(seconds):
            return True
        if process.has_ended:
            return False
        if self._stopped_at is not None:
            return False
        get_logger().error(
            "worker process %d did not answer for %g s and is replaced, its requests are lost;"
            " worker_timeout allows more",
            process.pid,
            seconds,
        )
        return False

    def _handle_process_end(self, process: WorkerProcess) -> None:
        code = process.exitcode or 0
        log = get_logger()
        if code == _STARTUP_FAILED:
            self._has_failed_start = True
            return
        when = "another takes its place"
        if code and not process.has_served:  # the next one may be killed alike: out of memory
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            when += f" in {_RETRY_SECONDS:.0f} s"
        if code < 0:
            by = _format_signal(-code)
            log.error("worker process %d was ended by %s; %s", process.pid, by, when)
        elif code:
            log.error("worker process %d ended with code %d; %s", process.pid, code, when)
        else:
            log.info("worker process %d has served its requests and is replaced", process.pid)

    def _decide_after_failed_start(self) -> None:
        """Start another later if one serves; wait while one starts: the reasons may be in its log.

        Raises:
            ServerError: all have ended.
        """
        if any(process.has_served for process in self._processes):
            self._has_failed_start = False
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            get_logger().error(
                "a worker process did not start; it is tried again in %d s", _RETRY_SECONDS
            )
        elif not self._processes and self._replacement is None:
            raise ServerError(NOT_STARTED)


def _format_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those of POSIX's real-time extension have no names
        return f"signal {number}"


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
