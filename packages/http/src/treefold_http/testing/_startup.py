"""The lifespan protocol from the server's side (ASGI, lifespan 2.0): one start, one end.

A failed start raises the exception of the application with its traceback. An application without
lifespan support, which raises before its first `receive`, is served without it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from treefold_http._runtime.boot_report import BootError, TreefoldError
from treefold_http._wire.asgi import ASGIApp, Message
from treefold_http.testing._call import Call


class Startup:
    """The lifespan of one application.

    Attributes:
        state: the lifespan state of the application; every request gets a copy.
    """

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._asked = False
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self.state}
        self._call = Call(scope, lambda: None)

    async def start_application(self, app: ASGIApp) -> None:
        """Start the application.

        Raises:
            BaseException: the error of the application, such as a `BootError`.
        """
        self._call.start_task(app, self._receive_for_app, self._queue_app_message)
        message = await self._send_phase_await_reply("startup")
        if message is not None and message["type"] == "lifespan.startup.complete":
            return
        await self._call.wait_briefly_for_return()
        error = self._call.find_unhandled_app_error()
        if error is not None and (self._asked or message is not None):
            raise error
        if message is not None:
            raise BootError(message.get("message") or "The application failed to start")

    async def stop_application(self) -> None:
        """Stop the application, when it is still there.

        Raises:
            BaseException: the error of the application.
        """
        task = self._call.task
        if task is None or task.done():
            return
        message = await self._send_phase_await_reply("shutdown")
        if message is not None and message["type"] == "lifespan.shutdown.failed":
            raise TreefoldError(message.get("message") or "The application failed to stop")
        await task
        if (error := self._call.find_unhandled_app_error()) is not None:
            raise error

    async def _send_phase_await_reply(self, phase: str) -> Message | None:
        await self._to_app.put({"type": f"lifespan.{phase}"})
        return await self._call.pipe.get()

    async def _receive_for_app(self) -> Message:
        self._asked = True
        return await self._to_app.get()

    async def _queue_app_message(self, message: Message) -> None:
        await self._call.pipe.put(message, 0)
