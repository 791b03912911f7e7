"""The lifespan of a mounted ASGI application: its startup and shutdown, in a task of its own.

An application that does not know the protocol is served without one, as the protocol says.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from treefold_http._wire.asgi import ASGIApp, Message
from treefold_logging import get_logger


class MountedLifespan:
    """The other end of the lifespan protocol (ASGI, lifespan 2.0).

    Args:
        prefix: the mount, for messages.
        app: the application.

    Attributes:
        state: what its startup left for requests.
    """

    def __init__(self, prefix: str, app: ASGIApp) -> None:
        self.state: dict[str, Any] = {}
        self._prefix = prefix
        self._app = app
        self._task: asyncio.Task[None] | None = None

    async def start_app(self) -> None:
        """Start the application.

        Raises:
            RuntimeError: when it reports that it cannot start.
        """
        self.state = {}
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        scope: dict[str, Any] = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        self._task = asyncio.ensure_future(self._app(scope, self._inbox.get, self._outbox.put))
        try:
            said = await self._send_and_wait("lifespan.startup")
        except BaseException:
            await self._cancel_task()
            raise
        if said is None:
            await self._cancel_task()
            get_logger().debug("mount %s has no lifespan", self._prefix)
        elif said["type"] == "lifespan.startup.failed":
            await self._cancel_task()
            reason = said.get("message") or "it gave no reason"
            raise RuntimeError(f"The application at {self._prefix} did not start: {reason}")

    async def stop_app(self) -> None:
        """End the application, if it has started."""
        if self._task is None:
            return
        try:
            said = await self._send_and_wait("lifespan.shutdown")
            if said is not None and said["type"] == "lifespan.shutdown.failed":
                reason = said.get("message") or "it gave no reason"
                raise RuntimeError(f"The application at {self._prefix} did not end: {reason}")
        finally:
            await self._cancel_task()

    async def _send_and_wait(self, message_type: str) -> Message | None:
        """Send a message; return the answer, or None if the application has ended without one."""
        assert self._task is not None, "it is started"  # noqa: S101 - callers check
        self._inbox.put_nowait({"type": message_type})
        answer = asyncio.ensure_future(self._outbox.get())
        try:
            await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
            # a task that ends right after its message wakes this before `answer` has taken it
            if not self._outbox.empty():
                return self._outbox.get_nowait()
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()

    async def _cancel_task(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        # Its failure was reported as a message, or says that the protocol is unknown to it.
        with suppress(asyncio.CancelledError, Exception):
            await task
