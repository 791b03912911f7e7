"""What an installed distribution adds to an application: today, databases.

An extension is found by its entry point, and looked for only where the project has models or a
`databases` setting: looking costs milliseconds. It is an object as in `extensions.py`; what it may
have beside `setup`, `startup` and `shutdown` is here: `refusals` and, for development, `watch`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefold_http._errors import HTTPError, TreefoldError
from treefold_http._problems import problem

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._request import Request
    from treefold_http._response import Response

GROUP = "treefold.extensions"


def model_modules(root: Path) -> list[str]:
    """Give the dotted names of the modules below `Models/`, in sorted order of their paths."""
    if (root / "Models.py").is_file():
        return ["Models"]
    return list(_modules(root / "Models", "Models"))


def _modules(folder: Path, name: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    if any(e.name == "__init__.py" and e.stat().st_size for e in entries):
        yield name
    for entry in entries:
        stem, dot, kind = entry.name.partition(".")
        if not stem.isidentifier() or stem.startswith("__"):
            continue
        if entry.is_dir() and not dot:
            yield from _modules(Path(entry.path), f"{name}.{stem}")
        elif kind == "py":
            yield f"{name}.{stem}"


def find_databases(app: Application) -> Any:
    """Make the extension that owns the databases, and let it set itself up.

    Returns:
        The extension; None where nothing installed has one and no setting asks for it.

    Raises:
        TreefoldError: when the setting is there and the package is not.
        Exception: what its `setup` raises.
    """
    from importlib.metadata import entry_points  # 8 ms that a project without models does not pay

    for point in entry_points(group=GROUP, name="databases"):
        extension: Any = point.load()()
        extension.setup(app)
        for kind, refuse in getattr(extension, "refusals", {}).items():
            app.exception_handler(kind)(_answering(refuse))
        return extension
    if addresses := app.settings.databases.values():
        postgres = any(address.startswith("postgres") for address in addresses)
        wanted = "'treefold-orm[postgres]'" if postgres else "treefold-orm"
        raise TreefoldError(f"Setting databases needs treefold-orm: pip install {wanted}")
    return None


def _answering(refuse: Callable[[Any], Any]) -> Callable[[Request, Any], Any]:
    async def answer(request: Request, error: Any) -> Response:
        status, detail, errors = refuse(error)
        return problem(HTTPError(status, detail, errors=errors), request)

    return answer
