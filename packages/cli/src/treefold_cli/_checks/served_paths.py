"""What serves a path: a route, a route of the default version, a mount, or the framework.

In the order of the server. The settings and boot files are read only for a path without a version,
handlers never.
"""

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

from treefold_cli._console.errors import one_line, translated
from treefold_cli._console.output import complain
from treefold_router import Explanation, RouteTable


@dataclass(frozen=True, slots=True)
class Served:
    """The explanation of a path.

    Attributes:
        found: the walk through the routes.
        prefix: the mount or part of the framework that serves the path instead; empty for none.
        text: its name in words.
    """

    found: Explanation
    prefix: str = ""
    text: str = ""


def explain_path(root: Path, table: RouteTable, method: str, raw_path: bytes) -> Served:
    """Explain which part of a project serves a path, or why none does.

    Args:
        root: the application root.
        table: its route table.
        method: an HTTP method, or 'WEBSOCKET'.
        raw_path: the path as sent, percent-encoded.

    Raises:
        CommandError: the settings cannot be read.
    """
    found = table.explain(method, raw_path)
    if not found.unversioned or found.status == 400:
        return Served(found)
    import asyncio  # 20 ms, for paths without a version only

    from treefold_http import Application, TreefoldError
    from treefold_http.extensions import built_in_at, mount_at, release

    version = read_default_version(root, table)
    app = Application(root, dev=True)
    try:
        if method != "WEBSOCKET":
            with contextlib.redirect_stdout(sys.stderr):
                mount = mount_at(app, raw_path)
            if mount is not None:
                return Served(found, mount.prefix, mount.text)
    except TreefoldError as error:
        complain(f"mounts are not known: {one_line(error)}")
    finally:
        asyncio.run(release(app))
    found = table.explain(method, raw_path, default_version=version)
    if found.status == 404 and method != "WEBSOCKET":
        page = built_in_at(app, found.path)
        if page is not None:
            return Served(found, page.prefix, page.text)
    return Served(found)


def read_default_version(root: Path, table: RouteTable) -> str | None:
    """Return the version that serves a path without one; None for no version.

    Raises:
        CommandError: the settings cannot be read.
    """
    from treefold_http import Settings, TreefoldError

    with translated(TreefoldError):
        version = Settings.load(root).default_version
    return table.latest if version == "latest" else version
