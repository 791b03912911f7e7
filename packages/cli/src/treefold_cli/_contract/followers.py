"""The lock and the clients of a project that is developed: written again after each reload.

The facts are made in a thread, after the requests that wait for the save and beside later ones.
Saves that come meanwhile are written together. Nothing is written while a file is broken.
"""

import asyncio
import os
import sys
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager

from treefold_cli._console.replace_file import replace_file
from treefold_cli._contract.clients import ClientTarget
from treefold_cli._contract.lock_file import LOCK, read_lock_text
from treefold_contract import LockError, update_client_files, write_lock
from treefold_http import Application
from treefold_http.contract import LockBuilder, ProjectLock, UnreadableProject
from treefold_logging import get_logger

_log = get_logger("dev")

_HEAD_START = 0.01
"""Seconds that requests have after a reload before the facts are made: they are answered in one."""

_SWITCH_INTERVAL = 0.0005
"""Seconds after which the thread lets the event loop run: by default 5 ms for each of its turns."""


class ContractFollower:
    """Writes the files that follow the routes of an application.

    Args:
        app: the application, booted.
        writes_lock: write `routes.lock`.
        clients: write these clients.
    """

    def __init__(
        self, app: Application, *, writes_lock: bool, clients: Sequence[ClientTarget]
    ) -> None:
        self._app = app
        self._writes_lock = writes_lock
        self._clients = clients
        self._builder = LockBuilder(app)
        self._running: asyncio.Task[None] | None = None
        self._is_stale = False

    async def report_after_reload(self, files: Collection[str]) -> None:
        """Begin to write; a run that has begun is followed by another one."""
        self._is_stale = True
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._write_until_current())

    async def _write_until_current(self) -> None:
        while self._is_stale:
            await asyncio.sleep(_HEAD_START)
            self._is_stale = False
            with _switch_threads_often():
                await asyncio.to_thread(self.write)

    def write(self) -> None:
        """Write the files whose bytes differ, and log their names and errors."""
        try:
            made = self._builder.build()
            for path in [*self._write_lock(made), *self._write_clients(made)]:
                _log.info("wrote %s", os.path.relpath(path))
        except UnreadableProject:
            return  # the reload has logged which file is broken
        except (LockError, OSError) as error:
            _log.warning("the contract was not written: %s", error)
        except Exception as error:  # types are user code: the server must go on
            _log.warning("the contract was not written: %s", error, exc_info=error)

    def _write_lock(self, made: ProjectLock) -> list[str]:
        text, root = write_lock(made.lock), str(self._app.root)
        if not self._writes_lock or read_lock_text(root) == text:
            return []
        replace_file(os.path.join(root, LOCK), text)
        return [os.path.join(root, LOCK)]

    def _write_clients(self, made: ProjectLock) -> list[str]:
        return [
            str(path)
            for target in self._clients
            for path in update_client_files(
                target.folder, target.build_files(made.lock, made.words)
            )
        ]


@contextmanager
def _switch_threads_often() -> Generator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
