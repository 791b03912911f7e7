"""httpx transports that hand requests to a server in process.

The async one works on the caller's event loop. The plain one runs one loop in a thread for all its
life, so that everything the application keeps open lives on one loop, and hands over to it.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

import httpx

from treefold_http.testing._exchange import Exchange
from treefold_http.testing._loop import LoopThread
from treefold_http.testing._server import Server

T = TypeVar("T")

_EXTENSIONS = {"http_version": b"HTTP/1.1"}


class AsyncTransport(httpx.AsyncBaseTransport):
    """Requests of an `httpx.AsyncClient`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def __aenter__(self) -> AsyncTransport:
        await self._server.start_application()
        return self

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; give the answer as soon as it begins."""
        await self._server.start_application()
        exchange = Exchange(self._server, request)
        status, headers = await exchange.send_and_read_start()
        return httpx.Response(
            status, headers=headers, stream=_AsyncBody(exchange), extensions=_EXTENSIONS
        )

    async def aclose(self) -> None:
        """Stop the server."""
        await self._server.stop_application()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self._exchange.read:
            for chunk in await self._exchange.read_chunks():
                yield chunk

    async def aclose(self) -> None:
        await self._exchange.disconnect_and_wait()


class Transport(httpx.BaseTransport):
    """Requests of an `httpx.Client`, which may come from any number of threads."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._loop: LoopThread | None = None

    def __enter__(self) -> Transport:
        self.start_server()
        return self

    def start_server(self) -> None:
        """Start loop and server, when that is not done.

        Raises:
            BaseException: the error of the application, such as a `BootError`.
        """
        with self._lock:
            if self._loop is None:
                self._loop = LoopThread()
                try:
                    self._loop.run(self._server.start_application())
                except BaseException:
                    self._loop.close()
                    raise

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the server; give or raise its outcome."""
        __tracebackhide__ = True
        assert self._loop is not None, "the server is started"  # noqa: S101 - callers start it
        return self._loop.run(coroutine)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; give the answer as soon as it begins."""
        __tracebackhide__ = True
        self.start_server()
        exchange, status, headers = self.run(self._start_exchange(request))
        return httpx.Response(
            status, headers=headers, stream=_Body(exchange, self), extensions=_EXTENSIONS
        )

    def close(self) -> None:
        """Stop the server, then the loop."""
        with self._lock:
            if self._loop is not None and not self._loop.closed:
                try:
                    self._loop.run(self._server.stop_application())
                finally:
                    self._loop.close()

    async def _start_exchange(self, request: httpx.Request) -> tuple[Exchange, int, Any]:
        await self._server.start_application()
        exchange = Exchange(self._server, request)
        return exchange, *(await exchange.send_and_read_start())


class _Body(httpx.SyncByteStream):
    def __init__(self, exchange: Exchange, transport: Transport) -> None:
        self._exchange = exchange
        self._transport = transport

    def __iter__(self) -> Iterator[bytes]:
        __tracebackhide__ = True
        while not self._exchange.read:
            yield from self._transport.run(self._exchange.read_chunks())

    def close(self) -> None:
        __tracebackhide__ = True
        if not self._exchange.read:
            self._transport.run(self._exchange.disconnect_and_wait())
