"""What serves a path: a route, a route of the default version, a mount, or the framework.

In the order of the server. Boot files are read, and the file of the one route that serves is
imported, as the server does at boot; no other handler is.
"""

import contextlib
import sys
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._console.errors import format_error_line, translate_to_command_error
from treefold_cli._console.output import print_error
from treefold_router import Explanation, RouteTable, version_number

if TYPE_CHECKING:
    from treefold_http import Application, Settings
    from treefold_http.extensions import BootFiles, Guard, Outside

_AUTOMATIC = ("HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class PathExplanation:
    """The explanation of a path.

    Attributes:
        found: the walk through the routes.
        prefix: the mount or part of the framework that serves the path instead; empty for none.
        text: its name in words.
        refusal: 404 or 405 where that part is known to refuse the path or the method; else 0.
        root_path: the prefix of the setting `root_path`, if it was cut from the path.
        guards: the middleware that runs, the outermost first, as far as it is known.
    """

    found: Explanation
    prefix: str = ""
    text: str = ""
    refusal: int = 0
    root_path: str = ""
    guards: tuple["Guard", ...] = ()

    @property
    def status(self) -> int:
        """The status of the response."""
        return self.refusal or (200 if self.prefix else self.found.status)


def explain_path(
    root: Path, table: RouteTable, method: str, raw_path: bytes, *, loads_handler: bool = True
) -> PathExplanation:
    """Explain which part of a project serves a path, or why none does.

    Args:
        root: the application root.
        table: its route table.
        method: an HTTP method, or 'WEBSOCKET'.
        raw_path: the path as sent, percent-encoded.
        loads_handler: import the file of the route, to see whether it can serve.

    Raises:
        CommandError: the settings cannot be read.
    """
    if method in _AUTOMATIC:
        table = _rescan_with_automatic_methods(root, table)
    first = raw_path.split(b"/", 2)[1].decode("latin-1")
    if version_number(first) is not None:  # no prefix begins like this, so no settings are read
        return _explain_path_below_root(root, table, method, raw_path, loads_handler=loads_handler)
    from treefold_http.extensions import below_root

    root_path = read_settings(root).root_path
    below = below_root(raw_path, root_path)
    served = _explain_path_below_root(root, table, method, below, loads_handler=loads_handler)
    return served if below == raw_path else replace(served, root_path=root_path)


def _explain_path_below_root(
    root: Path, table: RouteTable, method: str, raw_path: bytes, *, loads_handler: bool
) -> PathExplanation:
    found = table.explain(method, raw_path)
    is_refused = found.status in (204, 400) or (found.route is None and not found.unversioned)
    if not loads_handler and (is_refused or found.route):
        return PathExplanation(found)
    # nothing of the server is imported for no guards
    if is_refused and (method == "WEBSOCKET" or not _has_middleware(root)):
        return PathExplanation(found)
    with _load_boot_files(root) as (app, files):
        if is_refused:
            return PathExplanation(found, guards=_collect_refusal_guards(table, files, raw_path))
        version = None
        if found.unversioned:
            if (mount := _find_mount_and_warn(app, method, raw_path)) is not None:
                return _explain_outside(app, files, found, mount, raw_path)
            version = resolve_default_version(app.settings, table)
            found = table.explain(method, raw_path, default_version=version)
        if found.status == 404 and method != "WEBSOCKET":
            from treefold_http.extensions import built_in_at

            known = [*table.versions, *(["default"] if app.settings.default_version else [])]
            if (page := built_in_at(app, found.path, method, versions=known)) is not None:
                return _explain_outside(app, files, found, page, raw_path)
        if found.route is not None and files is not None and loads_handler:
            from treefold_http.extensions import guards_of_route, load_error

            route = found.route
            error = load_error(app, table, route, files)
            found = replace(found, status=500, fault=error) if error else found
            return PathExplanation(found, guards=tuple(guards_of_route(app, table, route, files)))
        if found.status == 404 and found.unversioned:
            depth = len(found.steps) + 1
            guards = _collect_path_guards(app, files, method, raw_path, depth=depth)
        elif found.route is None and method != "WEBSOCKET":
            guards = _collect_refusal_guards(table, files, raw_path, version)
        else:
            guards = ()
        return PathExplanation(found, guards=guards)


def _has_middleware(root: Path) -> bool:
    return (root / "Middleware.py").is_file() or (root / "Middleware" / "__init__.py").is_file()


def _collect_refusal_guards(
    table: RouteTable, files: "BootFiles | None", raw_path: bytes, version: str | None = None
) -> tuple["Guard", ...]:
    if files is None:
        return ()
    from treefold_http.extensions import guards_of_refusal

    return tuple(guards_of_refusal(table, files, raw_path, version))


def _collect_path_guards(
    app: "Application", files: "BootFiles | None", method: str, raw_path: bytes, *, depth: int
) -> tuple["Guard", ...]:
    if files is None:
        return ()
    from treefold_http.extensions import guards_of_path

    is_socket = method == "WEBSOCKET"
    return tuple(guards_of_path(app, files, raw_path, depth=depth, is_socket=is_socket))


def read_settings(root: Path) -> "Settings":
    """Read the settings of a project.

    Raises:
        CommandError: the settings cannot be read.
    """
    from treefold_http import Settings, TreefoldError

    with translate_to_command_error(TreefoldError):
        return Settings.load(root)


def resolve_default_version(settings: "Settings", table: RouteTable) -> str | None:
    """Return the version that serves a path without one; None for no version."""
    return table.latest if settings.default_version == "latest" else settings.default_version


def _rescan_with_automatic_methods(root: Path, table: RouteTable) -> RouteTable:
    settings = read_settings(root)
    if not settings.auto_head and not settings.auto_options:
        return table
    head, options = settings.auto_head, settings.auto_options
    return RouteTable.scan(root / "Api", auto_head=head, auto_options=options)


@contextlib.contextmanager
def _load_boot_files(
    root: Path,
) -> Generator[tuple["Application", "BootFiles | None"], None, None]:
    """Read the boot files of a project; None for them if one cannot be used."""
    import asyncio  # 20 ms, only where something may serve

    from treefold_cli._checks.broken_files import hide_findings_from_log
    from treefold_http import Application, TreefoldError
    from treefold_http.extensions import load_boot_files, release

    with translate_to_command_error(TreefoldError):
        app = Application(root, dev=True)
        app.role = "command"
    files = None
    try:
        # Output of modules goes to standard error, and errors into the explanation.
        with contextlib.redirect_stdout(sys.stderr), hide_findings_from_log():
            try:
                files = load_boot_files(app)
            except TreefoldError as error:
                print_error(f"mounts are not known: {format_error_line(error)}")
            yield app, files
    finally:
        asyncio.run(release(app))


def _explain_outside(
    app: "Application",
    files: "BootFiles | None",
    found: Explanation,
    outside: "Outside",
    raw_path: bytes,
) -> PathExplanation:
    guards = _collect_path_guards(app, files, found.method, raw_path, depth=outside.depth)
    refusal = 0 if outside.status == 200 else outside.status
    return PathExplanation(found, outside.prefix, outside.text, refusal, guards=guards)


def _find_mount_and_warn(app: "Application", method: str, raw_path: bytes) -> "Outside | None":
    from treefold_cli._checks.later_mounts import find_project_mount_calls
    from treefold_http.extensions import Outside, mount_at

    if (mount := mount_at(app, raw_path, method)) is not None:
        return mount
    path = raw_path.decode(errors="backslashreplace")
    for later in find_project_mount_calls(app.root):
        if later.prefix is None:
            print_error(f"{later.place} mounts at a computed path, which is not known here")
        elif method == "WEBSOCKET":
            text = f"mounts at {later.prefix}, which serves sockets if it is an app"
            print_error(f"{later.place} {text}")
        elif f"{path}/".startswith(f"{later.prefix}/"):
            text = f"the mount {later.prefix}, once {later.place} has run"
            return Outside(later.prefix, text)
    return None
