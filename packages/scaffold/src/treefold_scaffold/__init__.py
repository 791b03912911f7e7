"""Templates of treefold: a new project, a new handler.

Public names only. This package writes files and starts nothing: no handler is imported, no process
is run, and nothing is written before every name has been checked.
"""

from treefold_scaffold.__about__ import __version__
from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._handler import Created, Exists, create_handler
from treefold_scaffold._project import create_project

__all__ = [
    "Created",
    "Exists",
    "ScaffoldError",
    "__version__",
    "create_handler",
    "create_project",
]
