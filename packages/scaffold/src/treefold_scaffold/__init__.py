"""Templates of treefold: a new project, a new handler, a new version.

Public names only. This package writes files and starts nothing: no handler is imported, no process
is run, and nothing is written before every name has been checked.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from treefold_scaffold.__about__ import __version__
from treefold_scaffold._errors import ScaffoldError, SourceError

if TYPE_CHECKING:
    from treefold_scaffold._handler import Created, Exists, create_handler
    from treefold_scaffold._project import create_project, fill_folder
    from treefold_scaffold._version_copy import write_version
    from treefold_scaffold._version_diff import VersionDiff, compare_versions, local_services
    from treefold_scaffold._version_plan import (
        Action,
        Entry,
        VersionPlan,
        plan_version,
        version_name,
    )

# Imported at first use: a command needs one of them.
_LATER = {
    "_handler": ("Created", "Exists", "create_handler"),
    "_project": ("create_project", "fill_folder"),
    "_version_copy": ("write_version",),
    "_version_diff": ("VersionDiff", "compare_versions", "local_services"),
    "_version_plan": ("Action", "Entry", "VersionPlan", "plan_version", "version_name"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"treefold_scaffold.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Action",
    "Created",
    "Entry",
    "Exists",
    "ScaffoldError",
    "SourceError",
    "VersionDiff",
    "VersionPlan",
    "__version__",
    "compare_versions",
    "create_handler",
    "create_project",
    "fill_folder",
    "local_services",
    "plan_version",
    "version_name",
    "write_version",
]
