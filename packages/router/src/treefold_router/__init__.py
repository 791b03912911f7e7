"""Folder tree to route table: `Api/v1/User/[id]/Get.py` is `GET /v1/user/{id}`.

Only names are exported here; the code is in the underscored modules. The package opens no
handler file, imports none, and knows nothing of ASGI.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from treefold_router.__about__ import __version__
from treefold_router._naming import (
    METHODS,
    method_of,
    parameter_name,
    segment_of,
    version_number,
)
from treefold_router._table import RouteTable
from treefold_router._types import (
    AutoOptions,
    Duplicate,
    Finding,
    Found,
    MalformedPath,
    MethodNotAllowed,
    NotFound,
    Route,
    RouterError,
    Skipped,
)

if TYPE_CHECKING:
    from treefold_router._explain import Explanation, Step
    from treefold_router._explain_words import Line, explanation_lines

# Imported at first use: serving and listing routes needs no explanations.
_LATER = {"_explain": ("Explanation", "Step"), "_explain_words": ("Line", "explanation_lines")}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"treefold_router.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "METHODS",
    "AutoOptions",
    "Duplicate",
    "Explanation",
    "Finding",
    "Found",
    "Line",
    "MalformedPath",
    "MethodNotAllowed",
    "NotFound",
    "Route",
    "RouteTable",
    "RouterError",
    "Skipped",
    "Step",
    "__version__",
    "explanation_lines",
    "method_of",
    "parameter_name",
    "segment_of",
    "version_number",
]
