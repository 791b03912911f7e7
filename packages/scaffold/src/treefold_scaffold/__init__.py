"""Templates of treefold: a new project, a new handler, a new version.

Public names only. This package writes files and starts nothing: no handler is imported, no process
is run, and nothing is written before every name has been checked.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from treefold_scaffold.__about__ import __version__ as __version__
from treefold_scaffold._errors import ScaffoldError as ScaffoldError, SourceError as SourceError

if TYPE_CHECKING:
    from treefold_scaffold._handler import (
        Created as Created,
        Exists as Exists,
        create_handler as create_handler,
    )
    from treefold_scaffold._project import (
        create_project as create_project,
        fill_folder as fill_folder,
    )
    from treefold_scaffold._version_copy import write_version as write_version
    from treefold_scaffold._version_delete import delete_version as delete_version
    from treefold_scaffold._version_diff import (
        VersionDiff as VersionDiff,
        compare_versions as compare_versions,
        local_services as local_services,
    )
    from treefold_scaffold._version_overlay import (
        FlattenPlan as FlattenPlan,
        flatten_version as flatten_version,
        plan_flatten as plan_flatten,
        plan_overlay as plan_overlay,
    )
    from treefold_scaffold._version_plan import (
        Action as Action,
        Entry as Entry,
        VersionPlan as VersionPlan,
        plan_version as plan_version,
        version_name as version_name,
    )
    from treefold_scaffold._version_relative import (
        RelativeFile as RelativeFile,
        plan_relative as plan_relative,
        write_relative as write_relative,
    )

# Imported at first use: a command needs one of them.
_LATER = {
    "_handler": ("Created", "Exists", "create_handler"),
    "_project": ("create_project", "fill_folder"),
    "_version_copy": ("write_version",),
    "_version_delete": ("delete_version",),
    "_version_diff": ("VersionDiff", "compare_versions", "local_services"),
    "_version_overlay": ("FlattenPlan", "flatten_version", "plan_flatten", "plan_overlay"),
    "_version_plan": ("Action", "Entry", "VersionPlan", "plan_version", "version_name"),
    "_version_relative": ("RelativeFile", "plan_relative", "write_relative"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(_import_module(f"treefold_scaffold.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    _EAGER = ("__version__", "ScaffoldError", "SourceError")
    __all__ = sorted((*_EAGER, *(name for names in _LATER.values() for name in names)))
