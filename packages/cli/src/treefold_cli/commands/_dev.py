"""`treefold dev`: the development server.

One process, `dev=True`, everything worth knowing printed once at the start. Serving itself is in
`_server`.
"""

import importlib.util
import ipaddress
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from treefold_cli._errors import MISUSE, OK, CommandError, translated
from treefold_cli._options import AppDir, Host, Port, read_number
from treefold_cli._output import complain, write
from treefold_cli._project import find_api
from treefold_cli._table import tree_lines
from treefold_router import version_number

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from treefold_cli._files import Look
    from treefold_http import Application

_NO_ROUTES = "no routes yet; make one with 'treefold create user get'"
_NO_WATCHER = (
    "watcher is disabled: the extra is missing (pip install 'treefold[watch]');"
    " restart by hand to see changes"
)


def dev(
    host: Host = "127.0.0.1",
    port: Port = "8000",
    default_version: Annotated[
        str,
        typer.Option(
            "--default-version",
            metavar="VERSION",
            help="Serve requests without a version from 'latest' or a version such as v2.",
        ),
    ] = "",
    migrate: Annotated[
        bool,
        typer.Option("--migrate", help="Apply pending migrations, now and after each change."),
    ] = False,
    app_dir: AppDir = ".",
) -> int:
    """Run the development server.

    One line says which migrations are not applied and which models have none yet.
    """
    environment, folder = dict(os.environ), os.getcwd()
    number = read_number(port, "--port", low=0, high=65535)
    version = _read_version(default_version)
    find_api(app_dir)
    from treefold_cli import _restart, _server
    from treefold_http import Application

    former = _restart.inherited()
    with former or _server.bind(host, number) as listener:
        app = Application(app_dir, dev=True, default_version=version)
        if former is None and not _is_loopback(host):
            complain(f"Warning: host {host!r} lets other machines reach the development server")
        if _run(app, listener, again=former is not None, migrate=migrate):
            _restart.again(listener, environment=environment, folder=folder)
    return OK


def _run(app: "Application", listener: "socket.socket", *, again: bool, migrate: bool) -> bool:
    """Serve until shutdown; return True if the process must be restarted.

    A restarted process does not exit when the boot fails: it waits for the next save.
    """
    from treefold_cli import _server
    from treefold_cli._files import look
    from treefold_cli._pending import PendingReport
    from treefold_http import TreefoldError
    from treefold_logging import flush, get_logger

    seen = look(str(app.root))
    announce = partial(_announce, app, _server.address(listener), again=again)
    try:
        with translated(TreefoldError):
            app.boot()
        report = PendingReport(app, applies=migrate)
        report.at_start()
        watches = importlib.util.find_spec("watchfiles") is not None
        if not watches:
            get_logger("dev").info(_NO_WATCHER)
        flush()  # print the log of the boot first
        if not again:
            for line in [*tree_lines(app.table.routes)] or [_NO_ROUTES]:
                write(line)
        if not watches:
            return _server.run(app, listener, on_start=announce)
        from treefold_cli._reload import follow

        return _server.run(
            app,
            listener.dup(),
            on_start=announce,
            beside=lambda server: follow(app, server, seen, report),
        )
    except CommandError as error:
        flush()
        if not again:
            raise
        return _wait(app.root, listener, seen, error)


def _wait(root: "Path", listener: "socket.socket", seen: "Look", error: CommandError) -> bool:
    """Answer every request with the error of the boot, until a file changes."""
    from treefold_cli import _server
    from treefold_cli._reload import wait_for_change
    from treefold_cli._unavailable import Unavailable

    return _server.run(
        Unavailable(f"{error}".replace("is above", "is in the terminal")),
        listener.dup(),
        on_start=lambda: complain(f"Error: {error}; waiting for a change"),
        beside=lambda server: wait_for_change(root, server, seen),
    )


def _announce(app: "Application", address: str, *, again: bool) -> None:
    if app.has_docs and not again:
        write(f"docs on {address}/docs")
    write(f"serving on {address} ({'restarted' if again else 'stop with Ctrl-C'})")
    sys.stdout.flush()


def _read_version(text: str) -> str | None:
    if not text or text == "latest" or version_number(text) is not None:
        return text or None
    raise CommandError(
        f"Invalid value {text!r} for --default-version; use 'latest' or a version such as 'v2'",
        code=MISUSE,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
