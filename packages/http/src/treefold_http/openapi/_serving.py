"""Serve documents over HTTP: written and compressed at the first request, with an entity tag.

Documents belong to the loaded project, so a reload makes new ones. Writing is slow and
runs once, in a worker thread; concurrent requests wait for it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from treefold_http._description.credentials import Clash
from treefold_http._description.routes import RouteDescription, describe_routes
from treefold_http._json.json import dumps
from treefold_http._responses.response import Response
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.conditionals import Outcome, evaluate_preconditions
from treefold_http._wire.errors import NOTHING_HERE, HTTPError, NotFound, require_read_method
from treefold_http.middleware._codings import choose_content_coding
from treefold_http.openapi._asyncapi import build_asyncapi_document
from treefold_http.openapi._info import read_project_info
from treefold_http.openapi._openapi import build_openapi_document
from treefold_logging import get_logger
from treefold_router import Found

if TYPE_CHECKING:
    from treefold_http._project.loaded_project import LoadedProject
    from treefold_http._requests.request import Request
    from treefold_http._serving.host import Host

_Write: TypeAlias = Callable[..., JSONObject]
_Key: TypeAlias = tuple[str, str | None, str, str | None]
_KINDS: Mapping[str, _Write] = {
    "openapi": build_openapi_document,
    "asyncapi": build_asyncapi_document,
}
_KEY = "documents"
_MAX_ENCODED = 64
"""Documents that are kept encoded, for versions and root paths."""
_CODINGS = ("gzip",)
DEFAULT = "default"
"""In place of a version: the document of the default version, with paths without a version."""
_lock = threading.Lock()


class Documents:
    """The documents of one loaded project.

    Args:
        app: the application.
        project: its loaded project, the only one that is read.
    """

    def __init__(self, app: Host, project: LoadedProject) -> None:
        self._app = app
        self._project = project
        # reentrant: `encode_document` calls itself for the plain bytes, and `build_document`
        self._lock = threading.RLock()
        self._routes: list[RouteDescription] | None = None
        self._clashes: list[Clash] = []
        self._written: dict[tuple[str, str | None], JSONObject] = {}
        self._encoded: dict[_Key, tuple[bytes, str]] = {}

    @classmethod
    def from_app(cls, app: Host) -> Documents:
        """Return the documents of the project that an application serves now."""
        project = app.project
        with _lock:
            return project.kept.setdefault(_KEY, cls(app, project))

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that have their own document."""
        return self._project.table.versions

    def build_document(self, kind: str, version: str | None = None) -> JSONObject:
        """Return a document; the object is shared and must not be changed.

        Args:
            kind: `openapi` or `asyncapi`.
            version: one of `versions`; None for all of them; `DEFAULT` for the default version.
        """
        with self._lock:
            if (found := self._written.get((kind, version))) is None:
                latest, ended = self._project.table.latest, self._project.deprecations.versions
                info = read_project_info(self._app.root, latest, ended)
                more: JSONObject = {"version": version}
                if kind == "openapi":
                    more["error_format"] = self._app.errors.error_format
                if version == DEFAULT:
                    more |= {"version": self._project.default_version, "unversioned": True}
                found = _KINDS[kind](self._describe_routes(), info, **more)
                root_path = self._app.settings.root_path
                if root_path and kind == "openapi":
                    found["servers"] = [{"url": root_path}]
                self._written[kind, version] = found
            return found

    def has(self, kind: str, version: str) -> bool:
        """Return True if there is a document of a version, or of the default version."""
        if version == DEFAULT:
            return kind == "openapi" and self._project.default_version is not None
        return version in self.versions

    def list_clashes(self) -> list[Clash]:
        """Return the pairs of different security schemes with one name."""
        with self._lock:
            self._describe_routes()
            return self._clashes

    def _describe_routes(self) -> list[RouteDescription]:
        if self._routes is None:
            self._routes, self._clashes = describe_routes(self._app, self._project)
            for clash in self._clashes:
                get_logger().warning("%s", clash)
        return self._routes

    def encode_document(
        self, kind: str, version: str | None, root_path: str, coding: str | None
    ) -> tuple[bytes, str]:
        """Return a document as JSON bytes, and its entity tag.

        Args:
            root_path: the prefix at which the application is mounted.
            coding: `gzip`, or None for the plain bytes.
        """
        key = kind, version, root_path, coding
        with self._lock:
            if coding is not None and key not in self._encoded:
                plain, tag = self.encode_document(kind, version, root_path, None)
                # Without a time, so that the same document has the same bytes.
                self._encoded[key] = gzip.compress(plain, 6, mtime=0), f'{tag[:-1]}-{coding}"'
            if key not in self._encoded:
                document = self.build_document(kind, version)
                if root_path and kind == "openapi":
                    document = {**document, "servers": [{"url": root_path}]}
                body = _encode_document(document)
                # `root_path` comes with the scope of each request, and could have any number of
                # values
                if len(self._encoded) >= _MAX_ENCODED:
                    self._encoded.clear()
                self._encoded[key] = body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            return self._encoded[key]

    def find_encoded(
        self, kind: str, version: str | None, root_path: str, coding: str | None
    ) -> tuple[bytes, str] | None:
        """Return the result of `encode_document` if it is cached, else None."""
        return self._encoded.get((kind, version, root_path, coding))


class DocumentFiles:
    """Serves `/openapi.json`, `/openapi/v1.json` and `/openapi/default.json`, or AsyncAPI.

    Args:
        kind: `openapi` or `asyncapi`.
        whole: True for the path of the document of all versions.
    """

    def __init__(self, app: Host, kind: str, *, whole: bool) -> None:
        self._app = app
        self.kind = kind
        self.whole = whole

    def check(self, root: Path) -> None:
        """Accept every application."""

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        """Return the response with a document.

        Raises:
            NotFound: for a path that is not one of a document.
            MethodNotAllowed: for methods other than GET and HEAD.
        """
        documents = Documents.from_app(self._app)
        version = self._parse_version_or_404(path_segments, documents)
        require_read_method(request.method)
        accepted = ",".join(request.headers.getlist("accept-encoding"))
        coding = choose_content_coding(accepted, _CODINGS)
        place = self.kind, version, request.scope.get("root_path", "").rstrip("/"), coding
        # a hit needs no thread
        if (found := documents.find_encoded(*place)) is None:
            found = await self._app.run_in_thread(documents.encode_document, *place)
        body, tag = found
        outcome = evaluate_preconditions(request.method, request.headers, etag=tag, modified=None)
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if outcome is Outcome.NOT_MODIFIED:
            return Response(None, 304, headers)
        if outcome is Outcome.FAILED:
            raise HTTPError(412, "The document is another one by now")
        if coding is not None:
            headers["Content-Encoding"] = coding
        return Response(body, 200, headers, "application/json")

    def _parse_version_or_404(self, segments: Sequence[str], documents: Documents) -> str | None:
        if self.whole:
            if segments:
                raise NotFound(NOTHING_HERE)
            return None
        if len(segments) == 1 and segments[0].endswith(".json"):
            version = segments[0].removesuffix(".json")
            if documents.has(self.kind, version):
                return version
        raise NotFound(NOTHING_HERE)


def _encode_document(document: JSONObject) -> bytes:
    try:
        return dumps(document)
    except ValueError:  # a lone surrogate in a text: JSON can escape it, UTF-8 cannot hold it
        return json.dumps(document, allow_nan=False).encode()


def serve_documents(app: Host) -> None:
    """Serve the documents of an application below its own routes and mounts."""
    for kind in _KINDS:
        app.mounts.add_built_in(f"/{kind}.json", DocumentFiles(app, kind, whole=True))
        app.mounts.add_built_in(f"/{kind}", DocumentFiles(app, kind, whole=False))
        warn_of_hidden_docs(app, f"/{kind}.json")


def warn_of_hidden_docs(app: Host, path: str) -> None:
    """Log a warning if a route of the project hides a path of the docs."""
    project = app.project
    if project.default_version is None:
        return
    found = project.table.resolve("GET", path, version=project.default_version)
    if isinstance(found, Found):
        file = f"Api/{found.route.file}"
        get_logger().warning("GET %s is answered by %s, not by the docs", path, file)
