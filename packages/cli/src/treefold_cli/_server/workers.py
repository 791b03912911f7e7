"""Several server processes behind one socket, and their supervisor."""

import signal
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

import uvicorn
from uvicorn.server import HANDLED_SIGNALS
from uvicorn.supervisors import Multiprocess

from treefold_cli._console.errors import CommandError
from treefold_cli._server.server import NOT_STARTED, server_config, terminate
from treefold_http import ServeSettings

_STARTUP_FAILED = 3  # the exit code of a uvicorn worker whose application did not start


def run_workers(
    factory: str,
    listener: socket.socket,
    *,
    workers: int,
    limit: int | None = None,
    serve: ServeSettings | None = None,
) -> None:
    """Serve with several processes until a stop signal; a process that ends is replaced.

    Args:
        factory: `module:function` that makes the ASGI application in each process.
        listener: the bound socket, shared by all processes.
        workers: number of processes.
        limit: the most requests at one time in each; above it the answer is 503.
        serve: the settings of the server; its defaults without them.

    Raises:
        CommandError: the application did not start.
    """
    config = server_config(factory, workers=workers, limit=limit, serve=serve)
    supervisor = Workers(config, sockets=[listener])
    try:
        supervisor.run()
    finally:
        listener.close()
    if any(worker.exitcode == _STARTUP_FAILED for worker in supervisor.processes):
        raise CommandError(NOT_STARTED)


class Workers(Multiprocess):
    """Supervisor of several server processes; a second stop signal kills all of them."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._is_stopping = False
        if sys.platform != "win32":
            resource_tracker.ensure_running()  # its start, once, would deliver Ctrl-C again
        for number in HANDLED_SIGNALS:
            signal.signal(number, self._stop)

    def init_processes(self) -> None:
        with _interrupt_postponed():
            super().init_processes()

    def keep_subprocess_alive(self) -> None:
        with _interrupt_postponed():
            super().keep_subprocess_alive()

    def handle_signals(self) -> None:
        with _interrupt_postponed():
            super().handle_signals()

    def _stop(self, sig: int, frame: FrameType | None) -> None:
        if self._is_stopping:
            for worker in self.processes:
                worker.process.kill()
            terminate(sig)
        self._is_stopping = True
        self.signal_queue.append(sig)


@contextmanager
def _interrupt_postponed() -> Generator[None]:
    """Postpone Ctrl-C here and in the processes that are started in the block.

    A terminal signals all processes; one that still imports would print a traceback. A worker
    accepts the signal once its imports are done: `accept_interrupt()`.
    """
    if sys.platform != "win32":  # Windows has no signal masks
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        accept_interrupt()


def accept_interrupt() -> None:
    """Deliver Ctrl-C to this process again, one that arrived meanwhile included."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
