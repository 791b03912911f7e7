"""Paths outside of the versions that no route serves: mounts, documents, docs and probes.

For tools that explain a path without a boot.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treefold_http._plans.plans import WEBSOCKET
from treefold_http._responses.static import StaticFiles
from treefold_http._serving.mounted_app import MountedApp

if TYPE_CHECKING:
    from treefold_http._plans.runtime import ProjectRuntime

_DOCS = "development, or the setting docs = true"
_BUILT_IN = {
    "/docs": f"the docs ({_DOCS})",
    "/openapi": f"the documents of OpenAPI ({_DOCS})",
    "/openapi.json": f"the document of OpenAPI ({_DOCS})",
    "/asyncapi": f"the documents of AsyncAPI ({_DOCS})",
    "/asyncapi.json": f"the document of AsyncAPI ({_DOCS})",
    "/livez": "the probe of the setting health",
    "/readyz": "the probe of the setting health",
}
_PROBES = ("/livez", "/readyz")
_FOLDERS_OF_DOCUMENTS = ("/openapi", "/asyncapi")
_WITH_FOLDER = ("/docs", *_FOLDERS_OF_DOCUMENTS)
_BELOW_DOCS = ("site.json", "log")
"""Paths below `/docs` in development, besides its assets."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What serves a path outside of the versions.

    Attributes:
        prefix: the mount, such as `/static`.
        text: its name in words.
        status: 404 or 405 where it is known to refuse the path or the method, else 200.
    """

    prefix: str
    text: str
    status: int = 200

    @property
    def depth(self) -> int:
        """The number of segments of the prefix."""
        return self.prefix.count("/")


def mount_at(app: ProjectRuntime, path: bytes | str, method: str = "GET") -> Outside | None:
    """Return the mount of the project that serves a path; it comes before the default version.

    Mounts are known after a boot, or after `load_boot_files`. Only applications serve sockets.
    """
    found = app.mounts.find_mount(path)
    if found is None or (method == WEBSOCKET and not isinstance(found.target, MountedApp)):
        return None
    prefix, target = found.mount_prefix, found.target
    status, name = 200, type(target).__name__
    if isinstance(target, MountedApp):
        name = target.name
    elif isinstance(target, StaticFiles):
        below = found.segments[found.depth :]
        status = _compute_read_status(method, is_there=target.has_file(app.root, below))
    return Outside(prefix, f"the mount {prefix} ({name})", status)


def built_in_at(
    app: ProjectRuntime, path: str, method: str = "GET", *, versions: Collection[str] = ()
) -> Outside | None:
    """Return the part of the framework that serves a path in development, if no route does.

    Args:
        versions: those of the project, each of which has documents.
    """
    first = "/" + path.strip("/").partition("/")[0]
    text = _BUILT_IN.get(first)
    is_whole = path.rstrip("/") == first
    if text is None or not (is_whole or first in _WITH_FOLDER):
        return None
    is_on = app.settings.health if first in _PROBES else app.settings.docs is not False
    if not is_on:
        return None
    name = path.strip("/").partition("/")[2].removesuffix("/")
    documents = [f"{version}.json" for version in versions]
    if first in _FOLDERS_OF_DOCUMENTS and name not in documents:
        return Outside(first, text, 404)
    is_there = first != "/docs" or is_whole or name in _BELOW_DOCS or name.startswith("assets/")
    return Outside(first, text, _compute_read_status(method, is_there=is_there))


def _compute_read_status(method: str, *, is_there: bool) -> int:
    if method not in ("GET", "HEAD"):
        return 405
    return 200 if is_there else 404
