"""Extensions of installed distributions: found by entry point, set up once for each application.

The lookup costs milliseconds, so it runs only if the project has models or a `databases` setting,
or sets `installed_extensions`. `extensions` defines the protocol of an extension.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefold_http._extensions.calls import call_extension_setup
from treefold_http._runtime.boot_report import TreefoldError
from treefold_http._wire.errors import HTTPError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from treefold_http._plans.runtime import ProjectRuntime
    from treefold_http._requests.request import Request
    from treefold_http._responses.response import Response

GROUP = "treefold.extensions"
DATABASES = "databases"
"""The entry point that owns the databases: set up first, and required by the setting."""


def list_model_modules(root: Path) -> list[str]:
    """Return the dotted names of the modules below `Models/`, in sorted order of their paths."""
    if (root / "Models.py").is_file():
        return ["Models"]
    return list(_yield_module_names(root / "Models", "Models"))


def _yield_module_names(folder: Path, name: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    # an empty file defines no model
    if any(e.name == "__init__.py" and e.stat().st_size for e in entries):
        yield name
    for entry in entries:
        stem, dot, kind = entry.name.partition(".")
        if not stem.isidentifier() or stem.startswith("__"):
            continue
        if entry.is_dir() and not dot:
            yield from _yield_module_names(Path(entry.path), f"{name}.{stem}")
        elif kind == "py":
            yield f"{name}.{stem}"


class Installed(list[Any]):
    """The installed extensions of one application, in their order.

    Attributes:
        is_complete: True after a lookup in which none of them failed.
    """

    is_complete = False


def install(app: ProjectRuntime, failed: Callable[[str, BaseException], object]) -> None:
    """Find the installed extensions and set them up; do nothing after a complete setup.

    Args:
        app: the application, booted or not. Its `installed` lists the extensions afterwards,
            including those whose `setup` failed.
        failed: called with the name and the exception of an entry point that fails.
    """
    made = app.installed
    if made.is_complete or not wants_installed_extensions(app):
        return
    made.clear()
    # a failure below takes it back, and the next boot tries again
    made.is_complete = True

    def note_failure(name: str, error: BaseException) -> None:
        made.is_complete = False
        failed(name, error)

    points = _find_extension_entry_points()
    for point in points:
        try:
            extension: Any = point.load()()
            # before its setup, which may fail after it has opened what its shutdown closes
            made.append(extension)
            _set_up_with_error_handlers(app, extension)
        except (Exception, SystemExit) as error:
            note_failure(point.name, error)
    if all(point.name != DATABASES for point in points) and app.settings.databases:
        note_failure(DATABASES, _make_missing_orm_error(app.settings.databases.values()))


def wants_installed_extensions(app: ProjectRuntime) -> bool:
    """Return True if the project asks for installed extensions: by a setting, or by its models."""
    if (asked := app.settings.installed_extensions) is not None:
        return asked
    return bool(app.settings.databases or list_model_modules(app.root))


def _find_extension_entry_points() -> list[EntryPoint]:
    from importlib.metadata import entry_points  # 8 ms: not imported without models

    # A name belongs to one extension: that of the first distribution on the path.
    found = {point.name: point for point in reversed(list(entry_points(group=GROUP)))}
    return sorted(found.values(), key=lambda point: (point.name != DATABASES, point.name))


def _set_up_with_error_handlers(app: ProjectRuntime, extension: Any) -> None:
    call_extension_setup(extension, app)
    for kind, refuse in getattr(extension, "refusals", {}).items():
        app.exception_handler(kind)(_make_error_handler(refuse))


def _make_missing_orm_error(addresses: Iterable[str]) -> TreefoldError:
    postgres = any(address.startswith("postgres") for address in addresses)
    wanted = "'treefold-orm[postgres]'" if postgres else "treefold-orm"
    return TreefoldError(f"Setting databases needs treefold-orm: pip install {wanted}")


def _make_error_handler(convert_error: Callable[[Any], Any]) -> Callable[[Request, Any], Any]:
    async def handle_error(request: Request, error: Any) -> Response:
        status, detail, errors = convert_error(error)
        return await request.app.render(HTTPError(status, detail, errors=errors), request)

    return handle_error
