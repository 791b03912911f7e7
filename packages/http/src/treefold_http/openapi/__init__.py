"""Documents of an application: OpenAPI 3.1 for its requests, AsyncAPI 3 for sockets and events.

Imported only where documents are served or printed. `serve_documents` puts them at `/openapi.json`,
`/openapi/vN.json`, `/asyncapi.json` and `/asyncapi/vN.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treefold_http.openapi._serving import Documents, serve_documents

if TYPE_CHECKING:
    from treefold_http._application import Application

__all__ = ["asyncapi_document", "openapi_document", "scheme_clashes", "serve_documents"]


def openapi_document(app: Application, version: str | None = None) -> dict[str, Any]:
    """Give the OpenAPI 3.1 document of an application; boots it when nothing has yet.

    Args:
        app: the application.
        version: only this version, such as `v1`; None for all.

    Raises:
        ValueError: for a version that has no route.
        BootError, SettingsError: when the project cannot be read.
    """
    return _document(app, "openapi", version)


def asyncapi_document(app: Application, version: str | None = None) -> dict[str, Any]:
    """Give the AsyncAPI 3 document of an application: its sockets and event streams.

    Args:
        app, version: as for `openapi_document`.

    Raises:
        As `openapi_document`.
    """
    return _document(app, "asyncapi", version)


def scheme_clashes(app: Application) -> list[str]:
    """Say which security schemes have one name and different content, and where each is written.

    Args:
        app: the application, booted or not.

    Raises:
        BootError, SettingsError: when the project cannot be read.
    """
    return [str(clash) for clash in Documents.of(app).clashes()]


def _document(app: Application, kind: str, version: str | None) -> dict[str, Any]:
    documents = Documents.of(app)
    if version is not None and version not in documents.versions:
        known = ", ".join(documents.versions) or "none"
        raise ValueError(f"There is no version {version!r}; known are {known}")
    return documents.document(kind, version)
