"""Clients for tests: an application called in process, with everything a server does around it.

`TestClient` and `AsyncTestClient` are httpx clients; httpx comes with the extra `test`. The pytest
plugin with the fixtures `app`, `client` and `async_client` is `_treefold_pytest`, beside this
package, so that pytest starts without importing any of it.
"""

from treefold_http.testing import _httpx as _httpx  # first: names the missing package

from treefold_http._websockets.websocket import WebSocketDisconnect  # isort: skip
from treefold_http.testing._async_client import AsyncTestClient
from treefold_http.testing._client import TestClient
from treefold_http.testing._contract.findings import ContractError, ContractWarning
from treefold_http.testing._sessions import (
    AsyncWebSocketSession,
    WebSocketRefused,
    WebSocketSession,
)

__all__ = [
    "AsyncTestClient",
    "AsyncWebSocketSession",
    "ContractError",
    "ContractWarning",
    "TestClient",
    "WebSocketDisconnect",
    "WebSocketRefused",
    "WebSocketSession",
]
