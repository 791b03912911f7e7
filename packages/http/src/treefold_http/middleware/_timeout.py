"""End requests that take too long: the handler is cancelled, the client gets an answer.

The limit runs until the answer is ready to be sent. A stream that has begun is never cut off, since
nothing could be said any more; a plain function in a worker thread runs on after its answer.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from treefold_http._wire.errors import HTTPError, ServiceUnavailable

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http._responses.response import Response
    from treefold_http._websockets.websocket import WebSocket


class Timeout:
    """Limit the seconds until an answer begins, or until a socket is accepted.

    Beyond them the answer is 503, as for `timeout` of a handler module; 408 where the handler was
    still waiting for the body of the request.

    Args:
        seconds: above 0.

    Raises:
        ValueError: for any other number.
    """

    def __init__(self, seconds: float) -> None:
        if not 0 < seconds < math.inf:
            raise ValueError(f"Timeout seconds must be a number above 0, got {seconds!r}")
        self._seconds = seconds

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Answer as the handler does, or when the time is over."""
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await call_next(request)
        except TimeoutError:
            # a TimeoutError of the handler's own (of a driver, of a socket) is not the limit's
            if not limit.expired():
                raise
        if request.reader.was_awaited:
            raise HTTPError(408, f"The body did not arrive within {self._seconds:g} seconds")
        raise self._make_timeout_error()

    async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
        """Run a socket; its handler has the time to accept it, and then no limit."""
        loop = asyncio.get_running_loop()
        # no deadline of its own: a socket that was accepted may stay open for ever
        limit = asyncio.timeout(None)

        def expire() -> None:
            if not websocket.accepted:
                limit.reschedule(loop.time())

        timer = loop.call_later(self._seconds, expire)
        try:
            async with limit:
                await call_next(websocket)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._make_timeout_error() from None
        finally:
            timer.cancel()

    def _make_timeout_error(self) -> ServiceUnavailable:
        return ServiceUnavailable(f"The handler took longer than {self._seconds:g} seconds")
