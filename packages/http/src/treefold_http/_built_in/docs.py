"""The docs at `/docs`: mounts `treefold-docs-ui` and passes it the data of the application.

Imported only if docs are on. Production passes the documents and nothing else; development adds an
inspector: the files of the loaded project and the last lines of the log (S-116).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefold_http._description.locations import locate_route_in_document
from treefold_http._responses.response import Response
from treefold_http._wire.asgi import ASGIApp, Message, RawHeaders, Send
from treefold_http._wire.errors import HTTPError
from treefold_http.openapi._info import read_project_info
from treefold_http.openapi._serving import warn_of_hidden_docs
from treefold_logging import keep_tail

if TYPE_CHECKING:
    from treefold_docs_ui import SiteView
    from treefold_http._requests.request import Request
    from treefold_http._serving.host import Host

PREFIX = "/docs"
_KEY = "docs"


def mount_docs(app: Host) -> None:
    """Serve the docs of an application below its own routes and mounts."""
    app.mounts.add_built_in(PREFIX, Docs(app))
    warn_of_hidden_docs(app, PREFIX)


class Docs:
    """Serves `/docs` and the paths below it."""

    def __init__(self, app: Host) -> None:
        self._app = app

    def check(self, root: Path) -> None:
        """Accept every application root."""

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        """Return a response that the docs application writes.

        Raises:
            HTTPError: 501 where `treefold-docs-ui` is not installed.
        """
        app = self._app
        kept = app.project.kept
        if _KEY not in kept:  # in a thread, since it reads files
            kept[_KEY] = await app.run_in_thread(_make_docs_app, app)
        below = "".join(f"/{segment}" for segment in path_segments)
        if not below and request.raw_path.endswith(b"/"):
            below = "/"
        return _Relayed(kept[_KEY], below, is_quiet=list(path_segments[:1]) == ["assets"])


def _make_docs_app(app: Host) -> ASGIApp:
    try:
        from treefold_docs_ui import DocsApp, Document, Inspector
    except ModuleNotFoundError as error:
        if error.name != "treefold_docs_ui":
            raise
        raise HTTPError(
            501, 'The docs need treefold-docs-ui: pip install "treefold-http[docs]"'
        ) from None
    versions = app.table.versions
    documents = [
        Document(name, f"../openapi/{name}.json", asyncapi=f"../asyncapi/{name}.json")
        for name in versions
    ]
    if len(versions) != 1:
        whole = Document("All versions", "../openapi.json", asyncapi="../asyncapi.json")
        documents.insert(0, whole)
    title = read_project_info(app.root, app.table.latest).title
    inspector = None
    if app.dev:
        inspector = Inspector(site=lambda: _build_site_view(app), log=lambda: _follow_log(app))
    return DocsApp(documents, title=title, inspector=inspector)


def _build_site_view(app: Host) -> SiteView:
    from treefold_docs_ui import BrokenFile, SiteView, SkippedFile, SourceFile

    report = app.project.report
    return SiteView(
        root="Api",
        files=[
            SourceFile(route.method, locate_route_in_document(route).path, route.file)
            for route in app.table.routes
        ],
        skipped=[SkippedFile(each.file, each.reason) for each in report.skipped],
        broken=[BrokenFile(each.file, each.error, each.traceback) for each in report.broken],
    )


async def _follow_log(app: Host) -> AsyncIterator[Sequence[str]]:
    stopping = asyncio.ensure_future(app.stopping.wait())
    coming: asyncio.Future[Any] = stopping
    async with aclosing(keep_tail().follow()) as lines:
        try:
            while True:
                coming = asyncio.ensure_future(anext(lines))
                await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done():
                    return
                yield coming.result()
        finally:
            coming.cancel()
            stopping.cancel()
            await asyncio.gather(coming, stopping, return_exceptions=True)


class _Relayed(Response):
    """A response that another ASGI application writes, below a prefix.

    Args:
        is_quiet: True for no log line, unless it is an error.
    """

    __slots__ = ("_app", "_below", "_is_quiet")

    def __init__(self, app: ASGIApp, below: str, *, is_quiet: bool) -> None:
        super().__init__()
        self._app = app
        self._below = below
        self._is_quiet = is_quiet

    async def send(self, request: Request, send: Send, common: RawHeaders) -> None:
        """Run the other application; add the header fields of the framework and of middleware."""
        root = f"{request.scope.get('root_path', '').rstrip('/')}{PREFIX}"
        scope: dict[str, Any] = {**request.scope, "root_path": root, "path": f"{root}{self._below}"}

        async def receive_only_disconnect() -> Message:
            await request.reader.wait_for_disconnect()
            return {"type": "http.disconnect"}

        async def forward_message(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.sent_status = status = message["status"]
                if self._is_quiet and status < 400 and request.plan is not None:
                    request.plan = replace(request.plan, is_quiet=True)
                written: RawHeaders = list(message["headers"])
                names = {name for name, _ in written}
                added = [field for field in [*self.raw_headers, *common] if field[0] not in names]
                message = {**message, "headers": written + added}
            await send(message)

        await self._app(scope, receive_only_disconnect, forward_message)
