"""`AsyncTestClient`: an `httpx.AsyncClient` whose server is the application itself."""

from __future__ import annotations

from typing import Any, Generic, Unpack

import httpx

from treefold_http.testing._options import (
    Api,
    ClientOptions,
    SocketOptions,
    build_client_options,
    build_server,
)
from treefold_http.testing._server import Served
from treefold_http.testing._sessions import AsyncWebSocketSession
from treefold_http.testing._transport import AsyncTransport
from treefold_http.testing._written import build_verbatim_request


class AsyncTestClient(httpx.AsyncClient, Generic[Api]):
    """Requests to an application in process, on the caller's event loop.

    `async with` starts the application at its beginning and stops it at its end. Without it, the
    first request starts the application and `aclose()` stops it.

    Args:
        app: an application, another ASGI application, or the folder that holds `Api/`.
        overrides: dependency or provider to replacement, undone at the end.
        base_url: base of relative paths, `http://testserver`; its host is the `Host` field.
        raise_app_errors: raise unhandled exceptions of the application instead of returning a 500.
        headers, cookies: sent with every request.
        contract: `strict` raises a `ContractError` for an answer that the facts of its route do not
            declare: its status, media type, body, events or header fields; or a message of its
            socket. `warn` gives a `ContractWarning`, one for each route and cause; `off` checks
            nothing. By default as `treefold_contract` of pytest says, else `off`. It needs the
            extra `contract`, which the extra `test` brings.

    Attributes:
        app: the application.
        api: its routes as a tree: `await client.api.v1.user(7).get()` returns the response. It
            needs the extra `contract`, as `contract` does. `AsyncTestClient[shop.AsyncApi]` has the
            types of the client `shop` that `treefold client python` wrote; others have `Any`.

    Raises:
        TypeError: for overrides or a contract of something that is not a treefold application.
    """

    __test__ = False

    def __init__(self, app: Served, **options: Unpack[ClientOptions]) -> None:
        self._server = build_server(app, options)
        self.app: Any = self._server.app
        transport = AsyncTransport(self._server)
        super().__init__(transport=transport, **build_client_options(options))

    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        """Build a request; as in httpx, but method and address go out as they are written."""
        build = super().build_request
        return build_verbatim_request(build, method, url, base=self.base_url, options=options)

    def websocket_connect(
        self, url: str, **options: Unpack[SocketOptions]
    ) -> AsyncWebSocketSession:
        """Open a WebSocket: `async with client.websocket_connect("/v1/chat") as ws: ...`.

        Args:
            subprotocols: the subprotocols to offer, in order of preference.
            headers: sent with the handshake.
            timeout: seconds that the application may take to accept, 5 by default.
        """
        return AsyncWebSocketSession(self, self._server, url, **options)

    @property
    def api(self) -> Api:
        """The routes as a tree, with the names and inputs of the clients from a lock.

        Raises:
            TypeError: for an application that is none of treefold.
            ModuleNotFoundError: when `treefold_contract` is not installed.
        """
        from treefold_http.testing._contract.api import build_api

        return build_api(self.app, self)
