"""Title, version and description of an API, from the `pyproject.toml` of the project."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import cast

from treefold_http._plans.deprecation import Deprecation
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._metadata import build_deprecation_extensions


@dataclass(frozen=True, slots=True)
class Info:
    """The Info Object of every document.

    Attributes:
        title: name of the project, else of its folder.
        version: version of the project, or None.
        latest: the latest version of the API.
        description: description of the project.
        deprecations: those of versions of the API.
    """

    title: str
    version: str | None
    latest: str
    description: str | None = None
    deprecations: Mapping[str, Deprecation] = field(default_factory=dict[str, Deprecation])

    def build_info_object(self, version: str | None) -> JSONObject:
        """Return the Info Object for the document of one API version, or of all."""
        made: JSONObject = {"title": self.title, "version": version or self.version or self.latest}
        if self.description:
            made["description"] = self.description
        if version is not None and (found := self.deprecations.get(version)) is not None:
            made |= {"x-deprecated": True, **build_deprecation_extensions(found)}
        return made


def read_project_info(
    root: Path,
    latest: str | None,
    deprecations: Mapping[str, Deprecation] = MappingProxyType({}),
) -> Info:
    """Read the metadata of a project; an unreadable file counts as empty."""
    try:
        content = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = {}
    project = content.get("project")
    metadata = cast("JSONObject", project) if isinstance(project, dict) else {}

    def find_text(key: str) -> str | None:
        # a file of this name may be for other tools, with anything in it
        value = metadata.get(key)
        return value if isinstance(value, str) and value else None

    title = find_text("name") or root.resolve().name or "API"
    return Info(title, find_text("version"), latest or "v1", find_text("description"), deprecations)
