"""Folder tree to route table: `Api/v1/User/[id]/Get.py` is `GET /v1/user/{id}`.

Only names are exported here; the code is in the underscored modules. The package opens no
handler file, imports none, and knows nothing of ASGI.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from treefold_router.__about__ import __version__ as __version__
from treefold_router._layers import (
    InheritedEntry as InheritedEntry,
    Layers as Layers,
    Overlay as Overlay,
)
from treefold_router._naming import (
    METHODS as METHODS,
    method_of as method_of,
    parameter_name as parameter_name,
    segment_of as segment_of,
    version_number as version_number,
)
from treefold_router._table import RouteTable as RouteTable
from treefold_router._types import (
    AutoOptions as AutoOptions,
    Duplicate as Duplicate,
    Finding as Finding,
    Found as Found,
    MalformedPath as MalformedPath,
    MethodNotAllowed as MethodNotAllowed,
    NotFound as NotFound,
    Route as Route,
    RouterError as RouterError,
    Skipped as Skipped,
)

if TYPE_CHECKING:
    from treefold_router._explain import (
        Explanation as Explanation,
        Gone as Gone,
        Step as Step,
    )
    from treefold_router._explain_words import (
        Line as Line,
        explanation_lines as explanation_lines,
        format_route_file as format_route_file,
    )
    from treefold_router._version_file import (
        VersionFile as VersionFile,
        is_web_address as is_web_address,
    )

# Imported at first use: serving and listing routes needs no explanations.
_LATER = {
    "_explain": ("Explanation", "Gone", "Step"),
    "_explain_words": ("Line", "explanation_lines", "format_route_file"),
    "_version_file": ("VersionFile", "is_web_address"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(_import_module(f"treefold_router.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    _OWN = {name for name in dir() if name[0].isalpha()} - {"Any", "TYPE_CHECKING"}
    __all__ = ["__version__", *sorted(_OWN.union(*_LATER.values()))]
