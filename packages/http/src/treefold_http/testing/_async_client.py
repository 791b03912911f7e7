"""`AsyncTestClient`: an `httpx.AsyncClient` whose server is the application itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from treefold_http.testing._options import Cookies, Headers, build_client_options
from treefold_http.testing._server import Replacements, Served, Server
from treefold_http.testing._sessions import AsyncWebSocketSession
from treefold_http.testing._transport import AsyncTransport
from treefold_http.testing._written import build_verbatim_request


class AsyncTestClient(httpx.AsyncClient):
    """Requests to an application in process, on the caller's event loop.

    `async with` starts the application at its beginning and stops it at its end. Without it, the
    first request starts the application and `aclose()` stops it.

    Args:
        app: an application, another ASGI application, or the folder that holds `Api/`.
        overrides: dependency or provider to replacement, undone at the end.
        base_url: base of relative paths; its host is the `Host` field.
        raise_app_errors: raise unhandled exceptions of the application instead of returning a 500.
        headers, cookies: sent with every request.

    Attributes:
        app: the application.

    Raises:
        TypeError: for overrides of something that is not a treefold application.
    """

    __test__ = False

    def __init__(
        self,
        app: Served,
        *,
        overrides: Replacements | None = None,
        base_url: str = "http://testserver",
        raise_app_errors: bool = True,
        headers: Headers | None = None,
        cookies: Cookies | None = None,
    ) -> None:
        self._server = Server(app, overrides=overrides, raise_app_errors=raise_app_errors)
        self.app: Any = self._server.app
        transport = AsyncTransport(self._server)
        super().__init__(transport=transport, base_url=base_url, **build_client_options(cookies))
        self.headers.update(headers)

    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        """Build a request; as in httpx, but method and address go out as they are written."""
        build = super().build_request
        return build_verbatim_request(build, method, url, base=self.base_url, options=options)

    def websocket_connect(
        self,
        url: str,
        *,
        subprotocols: Sequence[str] = (),
        headers: Headers | None = None,
        timeout: float | None = 5.0,
    ) -> AsyncWebSocketSession:
        """Open a WebSocket: `async with client.websocket_connect("/v1/chat") as ws: ...`.

        Args:
            subprotocols: the subprotocols to offer, in order of preference.
            timeout: seconds that the application may take to accept.
        """
        return AsyncWebSocketSession(
            self, self._server, url, subprotocols=subprotocols, headers=headers, timeout=timeout
        )
