"""Documents of an application: OpenAPI 3.1 for requests, AsyncAPI 3 for WebSockets and events.

Imported only where documents are served or printed. `serve_documents` puts them at `/openapi.json`,
`/openapi/vN.json`, `/asyncapi.json` and `/asyncapi/vN.json`, and the document of the default
version at `/openapi/default.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._serving import DEFAULT, Documents, serve_documents

if TYPE_CHECKING:
    from treefold_http._serving.host import Host

__all__ = ["asyncapi_document", "openapi_document", "scheme_clashes", "serve_documents"]


def openapi_document(
    app: Host, version: str | None = None, *, unversioned: bool = False
) -> JSONObject:
    """Return the OpenAPI 3.1 document of an application; boots it if necessary.

    Args:
        app: the application.
        version: include only this version, such as `v1`; None for all.
        unversioned: True for the default version alone, with paths without a version and the same
            operation ids.

    Raises:
        ValueError: for a version that has no route, and for `unversioned` without a default
            version or together with a version.
        BootError, SettingsError: when the project cannot be read.
    """
    if not unversioned:
        return _build_document(app, "openapi", version)
    documents = Documents.from_app(app)
    if version is not None:
        raise ValueError(
            f"An unversioned document is that of the default version, got version {version!r};"
            " leave one out"
        )
    if not documents.has("openapi", DEFAULT):
        raise ValueError(
            "An unversioned document needs a default version;"
            ' set `default_version = "latest"` in the settings'
        )
    return documents.build_document("openapi", DEFAULT)


def asyncapi_document(app: Host, version: str | None = None) -> JSONObject:
    """Return the AsyncAPI 3 document of an application: its WebSockets and event streams.

    Args:
        app, version: as for `openapi_document`.

    Raises:
        As `openapi_document`.
    """
    return _build_document(app, "asyncapi", version)


def scheme_clashes(app: Host) -> list[str]:
    """Return a message for each pair of different security schemes with one name.

    Args:
        app: the application, booted or not.

    Raises:
        BootError, SettingsError: when the project cannot be read.
    """
    return [str(clash) for clash in Documents.from_app(app).list_clashes()]


def _build_document(app: Host, kind: str, version: str | None) -> JSONObject:
    documents = Documents.from_app(app)
    if version is not None and version not in documents.versions:
        known = ", ".join(documents.versions) or "none"
        raise ValueError(f"There is no version {version!r}; known versions: {known}")
    return documents.build_document(kind, version)
