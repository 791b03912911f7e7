"""One call of an application: the task that runs it, what it sends, how it ended.

HTTP and WebSocket both stand on it; what the messages mean is theirs. The task never raises: what
the application raised is kept, because `SystemExit` in a task would end the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from treefold_http._exposure import EXTENSION
from treefold_http._types import ASGIApp, Receive, Scope, Send
from treefold_http.testing._pipe import ClientLeft, Pipe

PATIENCE = 1.0
"""Seconds that an application has to notice that the client left."""


class Call:
    """An application at work on one scope.

    Args:
        departed: called when the client leaves, to tell the application in its own way.

    Attributes:
        pipe: what it sends.
        left: set once the client has left.
    """

    def __init__(self, scope: Scope, departed: Callable[[], object]) -> None:
        self.scope = scope
        self._departed = departed
        self.pipe = Pipe()
        self.left = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._errors: list[BaseException] = []
        scope.setdefault("extensions", {})[EXTENSION] = self._errors

    def begin(self, app: ASGIApp, receive: Receive, send: Send) -> asyncio.Task[None]:
        """Start the task."""
        self.task = asyncio.create_task(self._run(app, receive, send))
        return self.task

    def leave(self) -> None:
        """Let the client leave; once."""
        if not self.left.is_set():
            self.left.set()
            self.pipe.leave()
            self._departed()

    async def wait(self) -> bool:
        """Wait a moment for the application to return; say whether it did."""
        if self.task is None:
            return True
        done, _ = await asyncio.wait({self.task}, timeout=PATIENCE)
        return bool(done)

    def error(self) -> BaseException | None:
        """Give what the application did not handle, unless all that failed was the client."""
        return next((error for error in self._errors if not _is_departure(error)), None)

    async def _run(self, app: ASGIApp, receive: Receive, send: Send) -> None:
        try:
            await app(self.scope, receive, send)
        except BaseException as error:
            self._errors.append(error)
        finally:
            self.pipe.end()


def _is_departure(error: BaseException) -> bool:
    """Whether an exception comes from writing to a client that had left."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ClientLeft):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
