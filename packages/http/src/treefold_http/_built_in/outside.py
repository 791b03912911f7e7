"""Paths outside of the versions that no route serves: mounts, documents, docs and probes.

For tools that explain a path without a boot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treefold_http._project.runtime import ProjectRuntime

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
_WITH_FOLDER = ("/docs", "/openapi", "/asyncapi")


@dataclass(frozen=True, slots=True)
class Outside:
    """What serves a path outside of the versions.

    Attributes:
        prefix: the mount, such as `/static`.
        text: its name in words.
    """

    prefix: str
    text: str


def mount_at(app: ProjectRuntime, path: bytes | str) -> Outside | None:
    """Return the mount of the project that serves a path; it comes before the default version.

    Mounts are known after a boot, or after `load_boot_files`.
    """
    found = app.mounts.covering(path)
    if found is None:
        return None
    prefix, target = found
    return Outside(prefix, f"the mount {prefix} ({type(target).__name__})")


def built_in_at(app: ProjectRuntime, path: str) -> Outside | None:
    """Return the part of the framework that serves a path in development, if no route does."""
    first = "/" + path.strip("/").partition("/")[0]
    text = _BUILT_IN.get(first)
    is_whole = path.rstrip("/") == first
    if text is None or not (is_whole or first in _WITH_FOLDER):
        return None
    is_on = app.settings.health if first in _PROBES else app.settings.docs is not False
    return Outside(first, text) if is_on else None
