"""Convert httpx requests into ASGI scopes, as a server makes them.

The path is decoded for `path` and untouched in `raw_path`, field names are lower case, repeats and
their order are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import httpx

from treefold_http._wire.asgi import Scope
from treefold_http.testing._written import split_request_target

CLIENT = ("testclient", 50000)

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SOCKET_SCHEMES = {"http": "ws", "https": "wss"}
_VERSIONS = {"http": "2.4", "websocket": "2.4"}


def build_http_scope(request: httpx.Request) -> Scope:
    """Return the ASGI scope of a request (HTTP 2.4)."""
    return _build_common_scope("http", request, request.url.scheme) | {"method": request.method}


def build_websocket_scope(request: httpx.Request, subprotocols: Sequence[str]) -> Scope:
    """Return the ASGI scope of a WebSocket whose handshake is `request` (websocket 2.4)."""
    scheme = request.url.scheme
    return _build_common_scope("websocket", request, _SOCKET_SCHEMES.get(scheme, scheme)) | {
        "subprotocols": list(subprotocols),
        "extensions": {"websocket.http.response": {}},
    }


def _build_common_scope(kind: str, request: httpx.Request, scheme: str) -> dict[str, Any]:
    path, query = split_request_target(request)
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": _VERSIONS[kind]},
        "http_version": "1.1",
        "scheme": scheme,
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": CLIENT,
        "server": (request.url.host, request.url.port or _PORTS.get(scheme)),
    }
