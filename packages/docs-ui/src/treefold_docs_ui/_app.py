"""The ASGI application: a page, its assets, and in development the data of an inspector.

Mount it at any prefix of any framework, or serve it alone: every URL in the page is relative. Only
paths are evaluated, never a query. Assets are read in `_assets`, the page is made in `_page`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from treefold_docs_ui._assets import Asset, load_assets
from treefold_docs_ui._log import TYPE as LOG_TYPE, stream_log
from treefold_docs_ui._page import POLICY, render_page
from treefold_docs_ui._records import Document, Inspector

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

_ALWAYS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_PAGE_HEADERS: Headers = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]
_FOREVER = (b"cache-control", b"public, max-age=31536000, immutable")
_NO_STORE = (b"cache-control", b"no-store")
_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_JSON = (b"content-type", b"application/json")
_CLASSIC = frozenset({"theme.js"})
"""Scripts that are not modules."""


class DocsApp:
    """Documentation of an API in the browser, offline.

    Args:
        documents: the documents to show; the first one is shown first.
        title: the name of the API, on the tab and in the header of the page.
        inspector: source files and log, for development only: every visitor of the page sees
            them.

    Raises:
        ValueError: without a document, or for two with one name.
        AssetsMissingError: when the package was copied instead of installed.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        *,
        title: str = "API",
        inspector: Inspector | None = None,
    ) -> None:
        self.documents = tuple(documents)
        self.title = title
        self.inspector = inspector
        self._assets = load_assets()
        names = [document.name for document in self.documents]
        if not names or len(names) != len(set(names)):
            raise ValueError(
                f"Document names must be unique, got {names!r}; give at least one document"
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope (ASGI 3.0)."""
        if scope["type"] == "lifespan":
            await _serve_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        else:
            await self._respond_to(_Exchange(scope, receive, send))

    async def _respond_to(self, exchange: _Exchange) -> None:
        path = exchange.path
        if exchange.method not in ("GET", "HEAD"):
            await exchange.send_response(
                405, [_TEXT, (b"allow", b"GET, HEAD")], body=b"This is read with GET"
            )
        elif path in ("", "/"):
            await exchange.send_response(
                200, _PAGE_HEADERS, body=self._render_page(exchange.base_url), match=True
            )
        elif path.startswith("/assets/"):
            await self._send_asset(path.removeprefix("/assets/"), exchange)
        elif self.inspector is not None and path in ("/site.json", "/log"):
            await self._send_inspection(path, self.inspector, exchange)
        else:
            await exchange.send_response(404, [_TEXT], body=b"There is nothing at this path")

    def _render_page(self, base: str) -> bytes:
        modules = [name for name in self._assets.files if name.endswith(".js") and "/" not in name]
        return render_page(
            base,
            title=self.title,
            documents=self.documents,
            digest=self._assets.digest,
            modules=[name for name in modules if name not in _CLASSIC],
            has_site=self.inspector is not None,
            has_log=self.inspector is not None and self.inspector.log is not None,
        )

    async def _send_asset(self, path: str, exchange: _Exchange) -> None:
        digest, _, name = path.partition("/")
        asset = self._assets.files.get(name) if digest == self._assets.digest else None
        if asset is None:
            await exchange.send_response(404, [_TEXT], body=b"There is nothing at this path")
            return
        coding, body = _select_coding(asset, exchange.read_header(b"accept-encoding"))
        headers = [
            (b"content-type", asset.content_type),
            _FOREVER,
            (b"vary", b"accept-encoding"),
            *([(b"content-encoding", coding)] if coding else []),
        ]
        await exchange.send_response(200, headers, body=body, match=True)

    async def _send_inspection(self, path: str, inspector: Inspector, exchange: _Exchange) -> None:
        if exchange.read_header(b"sec-fetch-site") in (b"cross-site", b"same-site"):
            await exchange.send_response(403, [_TEXT], body=b"Another site may not read this")
        elif path == "/site.json":
            view = json.dumps(dataclasses.asdict(inspector.site()))
            await exchange.send_response(200, [_JSON, _NO_STORE], body=view.encode())
        elif inspector.log is None:
            await exchange.send_response(404, [_TEXT], body=b"There is nothing at this path")
        elif exchange.method == "HEAD":
            await exchange.send_response(200, [LOG_TYPE, _NO_STORE], body=b"")
        else:
            await exchange.send_start(200, [LOG_TYPE, _NO_STORE, (b"x-accel-buffering", b"no")])
            await stream_log(inspector.log(), exchange.receive, exchange.send)


class _Exchange:
    """One request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        root: str = scope.get("root_path", "").rstrip("/")
        path: str = scope["path"]
        # The path of a mounted application holds its prefix in some servers only.
        inside = root and (path == root or path.startswith(f"{root}/"))
        self.path = path.removeprefix(root) if inside else path
        self._folder = (root or path).rpartition("/")[2]

    @property
    def base_url(self) -> str:
        """Relative URL from the address of the page to the folder of the docs."""
        if self.path == "/":
            return "./"
        return f"./{quote(self._folder, safe='~!$()*+,;=@')}/"

    def read_header(self, name: bytes) -> bytes:
        """Return a header field, empty if it is missing."""
        headers: Headers = self.scope["headers"]
        return b", ".join(value for key, value in headers if key == name)

    async def send_response(
        self,
        status: int,
        headers: Sequence[tuple[bytes, bytes]],
        *,
        body: bytes,
        match: bool = False,
    ) -> None:
        """Send a complete response; with `match`, 304 if the client has the same version."""
        fields = list(headers)
        if match:
            tag = b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()
            fields.append((b"etag", tag))
            if tag in self.read_header(b"if-none-match").replace(b"W/", b"").split(b", "):
                await self.send_start(
                    304, [field for field in fields if field[0] != b"content-type"]
                )
                await self.send({"type": "http.response.body", "body": b""})
                return
        await self.send_start(status, [*fields, (b"content-length", str(len(body)).encode())])
        shown = b"" if self.method == "HEAD" else body
        await self.send({"type": "http.response.body", "body": shown})

    async def send_start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Send status and header fields."""
        fields = [*headers, *_ALWAYS]
        await self.send({"type": "http.response.start", "status": status, "headers": fields})


def _select_coding(asset: Asset, accepted: bytes) -> tuple[bytes, bytes]:
    """Return the best coding that a client accepts, and the asset in it (RFC 9110, 12.5.3)."""
    codings: dict[bytes, bool] = {}
    for part in accepted.lower().split(b","):
        name, _, weight = part.partition(b";")
        codings[name.strip()] = weight.replace(b" ", b"").rstrip(b"0.") != b"q="
    for coding, body in asset.encoded.items():
        if codings.get(coding, codings.get(b"*", False)):
            return coding, body
    return b"", asset.body


async def _serve_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
