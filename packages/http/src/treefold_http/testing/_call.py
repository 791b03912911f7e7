"""One call of an application: its task, the messages it sends, and its outcome.

Shared by HTTP and WebSocket, which interpret the messages. The task never raises: exceptions of the
application are stored, because `SystemExit` in a task would end the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from treefold_http._runtime.unhandled import EXTENSION
from treefold_http._wire.asgi import ASGIApp, Receive, Scope, Send
from treefold_http.testing._pipe import ClientLeft, Pipe

DISCONNECT_TIMEOUT = 1.0
"""Seconds that an application has to react to the disconnect of the client."""


class Call:
    """A call of an application with one scope.

    Args:
        departed: called when the client disconnects, to notify the application.

    Attributes:
        pipe: the messages that it sends.
        left: set once the client has disconnected.
    """

    def __init__(self, scope: Scope, departed: Callable[[], object]) -> None:
        self.scope = scope
        self._departed = departed
        self.pipe = Pipe()
        self.left = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._errors: list[BaseException] = []
        scope.setdefault("extensions", {})[EXTENSION] = self._errors

    def start_task(self, app: ASGIApp, receive: Receive, send: Send) -> asyncio.Task[None]:
        """Start the task and return it."""
        self.task = asyncio.create_task(self._run_app_catching_errors(app, receive, send))
        return self.task

    def disconnect_client(self) -> None:
        """Disconnect the client, unless that has happened before."""
        if not self.left.is_set():
            self.left.set()
            self.pipe.mark_disconnected()
            self._departed()

    async def wait_briefly_for_return(self) -> bool:
        """Wait a moment for the application to return; return True if it did."""
        if self.task is None:
            return True
        done, _ = await asyncio.wait({self.task}, timeout=DISCONNECT_TIMEOUT)
        return bool(done)

    def find_unhandled_app_error(self) -> BaseException | None:
        """Return the unhandled exception of the application, unless the disconnect caused it."""
        return next((error for error in self._errors if not _is_caused_by_disconnect(error)), None)

    async def _run_app_catching_errors(self, app: ASGIApp, receive: Receive, send: Send) -> None:
        try:
            await app(self.scope, receive, send)
        except BaseException as error:
            self._errors.append(error)
        finally:
            self.pipe.mark_ended()


def _is_caused_by_disconnect(error: BaseException) -> bool:
    """Return True if an exception comes from sending to a disconnected client."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ClientLeft):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
