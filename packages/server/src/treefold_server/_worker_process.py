"""One server process of several, as its supervisor sees it."""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import socket
import sys
import threading
import time
from multiprocessing.process import BaseProcess

from uvicorn.supervisors.multiprocess import Process

from treefold_server._server import Server
from treefold_server._startup import exit_beside_stuck_threads

_START_SECONDS = 60.0
"""Seconds that a process need not answer in before it serves."""


class WorkerProcess(Process):
    """One server process and its end of the pipe that asks whether it still answers.

    Attributes:
        has_served: True once its application had started.
    """

    has_served = False
    _own: Server | None = None
    _began = 0.0

    def start(self) -> None:
        """Start the process, which has a minute until it must answer."""
        super().start()
        self._began = time.monotonic()

    @property
    def may_still_start(self) -> bool:
        """True for a process that need not answer yet: what it imports may hold the interpreter."""
        return not self.has_served and time.monotonic() - self._began < _START_SECONDS

    @property
    def server(self) -> Server:
        """The server of this process, made in the process itself."""
        if self._own is None:
            self._own = Server(self.config, on_start=self._report_start)
        return self._own

    def _report_start(self) -> None:
        """Report that this process serves: it may be killed before it is asked."""
        self.child_conn.send(True)

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
            # a process that was busy has answered earlier pings too; each says once that it serves
            while self.parent_conn.poll():
                self.has_served |= self.parent_conn.recv() is True
            return True
        except (OSError, EOFError, pickle.UnpicklingError):  # it was killed while it answered
            return False


def _stop_when_parent_exits(parent: BaseProcess) -> None:
    """End this process with its supervisor: a killed one cannot end it, and the port stays held."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
