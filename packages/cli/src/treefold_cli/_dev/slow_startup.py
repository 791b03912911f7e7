"""A startup that takes long: `dev` names the hook, answers 503, and restarts at the next save.

The hook may block the event loop, so all of this runs in a thread of its own, with another loop. A
startup that ends within a second sees nothing of it: the clients of a restarted process wait.

    async def warm_up():          # hooks.py
        await queue.get()         # nothing is ever put there
    on_startup = [warm_up]

    [WARNING] startup hook warm_up has not ended after 1 s; ...
    503 {"detail": "Startup hook warm_up has not ended; ..."}
    [INFO] restarting: hooks.py changed
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Protocol

from treefold_cli._dev.reload_loop import RestartableServer, restart_on_next_change
from treefold_cli._dev.unavailable import Unavailable
from treefold_cli._dev.watched import WatchedFolders
from treefold_http import Application
from treefold_logging import get_logger

_log = get_logger("dev")

_PATIENCE = 1.0
"""Seconds after which a startup counts as long."""
_LOOK_SECONDS = 0.1
"""Seconds between two looks at which hook runs."""
_CLOSE_SECONDS = 2.0
"""Most seconds in which the last responses are sent."""


class Responder(Protocol):
    """A server of another thread.

    Attributes:
        should_exit: set to end it, even before it has started.
    """

    should_exit: bool

    def request_restart(self) -> None:
        """Leave new connections to the next server, and end after the requests in progress."""
        ...

    async def serve(self, sockets: list[socket.socket]) -> None:
        """Serve until it should exit."""
        ...


@contextlib.contextmanager
def watch_startup(
    app: Application,
    listener: socket.socket,
    watched: WatchedFolders | None,
    build_responder: Callable[[Any], Responder],
    server: RestartableServer,
) -> Generator[None]:
    """Answer requests and watch files in the block, if the application starts slowly in it.

    Args:
        app: the application.
        listener: the bound socket of the server.
        watched: the folders, with their files as they were before the boot; None to watch nothing.
        build_responder: returns the server of an ASGI application.
        server: asked for a restart after a save.
    """
    startup = _SlowStartup(app, listener, watched, build_responder, server)
    startup.start()
    try:
        yield
    finally:
        startup.ended.set()
        startup.join(_CLOSE_SECONDS)  # a restart of the process would cut its last responses off


class _SlowStartup(threading.Thread):
    """The thread beside a startup.

    Attributes:
        ended: set when the startup has ended.
    """

    def __init__(
        self,
        app: Application,
        listener: socket.socket,
        watched: WatchedFolders | None,
        build_responder: Callable[[Any], Responder],
        server: RestartableServer,
    ) -> None:
        super().__init__(name="treefold-startup", daemon=True)
        self.ended = threading.Event()
        self._app = app
        self._listener = listener
        self._watched = watched
        self._build_responder = build_responder
        self._server = server

    def run(self) -> None:
        if not self.ended.wait(_PATIENCE):
            asyncio.run(self._answer_and_watch())

    async def _answer_and_watch(self) -> None:
        responder = self._build_responder(Unavailable(self._describe))
        tasks = [asyncio.ensure_future(responder.serve([self._listener.dup()]))]
        if self._watched is not None:
            tasks.append(asyncio.ensure_future(restart_on_next_change(self._server, self._watched)))
        await self._name_hooks_until_ended()
        responder.should_exit = True
        responder.request_restart()
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _name_hooks_until_ended(self) -> None:
        """Log the name of each hook that takes long, once."""
        hook, began, is_named = self._app.lifespan.running_hook, time.monotonic() - _PATIENCE, False
        while not self.ended.is_set():
            if hook != self._app.lifespan.running_hook:
                hook, began, is_named = self._app.lifespan.running_hook, time.monotonic(), False
            if not is_named and time.monotonic() - began >= _PATIENCE:
                is_named = True
                _log.warning(
                    "%s has not ended after %g s; requests are answered with 503, and %s",
                    self._name_hook(),
                    _PATIENCE,
                    self._name_ways_out(),
                )
            await asyncio.to_thread(self.ended.wait, _LOOK_SECONDS)

    def _describe(self) -> str:
        name = self._name_hook()
        return f"{name[0].upper()}{name[1:]} has not ended; {self._name_ways_out()}"

    def _name_hook(self) -> str:
        hook = self._app.lifespan.running_hook
        return f"startup hook {hook}" if hook else "the startup"

    def _name_ways_out(self) -> str:
        return "Ctrl-C cancels it" if self._watched is None else "a save or Ctrl-C cancels it"
