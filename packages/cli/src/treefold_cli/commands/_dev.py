"""`treefold dev`: the development server.

One process, `dev=True`, everything worth knowing printed once at the start. Serving itself is in
`_server`.
"""

import importlib.util
import ipaddress
import sys
from functools import partial
from typing import Annotated

import typer

from treefold_cli._errors import MISUSE, OK, CommandError, translated
from treefold_cli._options import AppDir, Host, Port, read_number
from treefold_cli._output import complain, write
from treefold_cli._project import find_api
from treefold_cli._table import tree_lines
from treefold_router import version_number


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
    app_dir: AppDir = ".",
) -> int:
    """Run the development server."""
    number = read_number(port, "--port", low=0, high=65535)
    version = _read_version(default_version)
    find_api(app_dir)
    from treefold_cli import _server
    from treefold_http import Application, TreefoldError
    from treefold_logging import flush, get_logger

    with _server.bind(host, number) as listener:
        app = Application(app_dir, dev=True, default_version=version)
        with translated(TreefoldError):
            app.boot()
        get_logger("dev").info(_watcher_line())
        flush()  # what the boot had to say comes first on a terminal
        if not _is_loopback(host):
            complain(f"Warning: host {host!r} lets other machines reach the development server")
        for line in tree_lines(app.table.routes):
            write(line)
        _server.run(app, listener, on_start=partial(_announce, _server.address(listener)))
    return OK


def _announce(address: str) -> None:
    write(f"serving on {address} (stop with Ctrl-C)")
    sys.stdout.flush()


def _read_version(text: str) -> str | None:
    if not text or text == "latest" or version_number(text) is not None:
        return text or None
    raise CommandError(
        f"Invalid value {text!r} for --default-version; use 'latest' or a version such as 'v2'",
        code=MISUSE,
    )


def _watcher_line() -> str:
    if importlib.util.find_spec("watchfiles") is None:
        return (
            "watcher is disabled: the extra is missing (pip install 'treefold[watch]');"
            " restart by hand to see changes"
        )
    return "watcher is disabled: this release does not reload; restart by hand to see changes"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
