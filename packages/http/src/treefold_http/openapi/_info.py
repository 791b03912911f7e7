"""Title, version and description of an API: what its `pyproject.toml` says of the project."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Info:
    """The Info Object of every document.

    Attributes:
        title: name of the project, else of its folder.
        version: of the project; None where it says none.
        latest: the latest version of the API.
        description: of the project.
    """

    title: str
    version: str | None
    latest: str
    description: str | None = None

    def table(self, version: str | None) -> dict[str, Any]:
        """Give the Info Object for the document of one API version, or of all."""
        made = {"title": self.title, "version": version or self.version or self.latest}
        if self.description:
            made["description"] = self.description
        return made


def read_info(root: Path, latest: str | None) -> Info:
    """Read what is said of a project; a file that cannot be read says nothing."""
    try:
        content = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = {}
    project = content.get("project")
    said = cast("dict[str, Any]", project) if isinstance(project, dict) else {}

    def text(key: str) -> str | None:
        value = said.get(key)
        return value if isinstance(value, str) and value else None

    title = text("name") or root.resolve().name or "API"
    return Info(title, text("version"), latest or "v1", text("description"))
