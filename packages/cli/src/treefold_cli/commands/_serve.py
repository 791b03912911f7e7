"""`treefold serve`: the production server.

One process serves a booted application; several each make their own. Serving itself is in
`_server`.
"""

import ipaddress
import os
from typing import TYPE_CHECKING, Annotated

import typer

from treefold_cli._checks.broken_files import require_sound
from treefold_cli._console.errors import OK, translated
from treefold_cli._console.options import AppDir, Host, Port, RootPath, read_number, set_root_path
from treefold_cli._console.project import find_api

if TYPE_CHECKING:
    from socket import socket

    from treefold_http import Application

_FACTORY = "treefold_cli._server.worker:create_app"
_FACTORY_ALLOWING_BROKEN = "treefold_cli._server.worker:create_app_allowing_broken"


def serve(
    host: Host = "127.0.0.1",
    port: Port = "8000",
    workers: Annotated[
        str, typer.Option("--workers", metavar="N", help="How many processes serve.")
    ] = "1",
    require_migrated: Annotated[
        bool,
        typer.Option(
            "--require-migrated", help="Refuse to start while migrations are pending; lists them."
        ),
    ] = False,
    allow_broken: Annotated[
        bool,
        typer.Option(
            "--allow-broken", help="Start although handler files fail to load; they answer 500."
        ),
    ] = False,
    root_path: RootPath = "",
    app_dir: AppDir = ".",
) -> int:
    """Run the application in production. It never migrates.

    It refuses to start with files that fail to load, and lists them with their reasons.
    """
    number = read_number(port, "--port", low=0, high=65535)
    processes = read_number(workers, "--workers", low=1, high=1000)
    find_api(app_dir)
    set_root_path(root_path)
    from treefold_cli._server.listener import address, bind
    from treefold_cli._server.server import run
    from treefold_http import Application, TreefoldError
    from treefold_logging import get_logger

    with bind(host, number) as listener, translated(TreefoldError):
        app = Application(app_dir)
        if require_migrated:
            from treefold_cli._checks.pending import require_nothing

            require_nothing(app)
        where = address(listener)
        if processes > 1:
            factory = _FACTORY_ALLOWING_BROKEN if allow_broken else _FACTORY
            _serve_in_processes(app, listener, factory, processes)
        else:
            app.boot()
            if not allow_broken:
                require_sound(app)
            if _accepts_any_host(app, listener.getsockname()[0]):
                get_logger().warning(
                    "any Host is answered on %s; name yours with TrustedHosts in Middleware/", where
                )
            run(
                app,
                listener,
                on_start=lambda: get_logger().info("serving on %s", where),
                limit=app.settings.limit_concurrency,
                serve=app.settings.serve,
            )
    return OK


def _serve_in_processes(
    app: "Application", listener: "socket", factory: str, processes: int
) -> None:
    from treefold_cli._server.listener import address
    from treefold_cli._server.workers import run_workers
    from treefold_logging import configure, flush, get_logger

    configure(log_format=app.settings.log_format, level=app.settings.log_level)
    get_logger().info("starting %d processes on %s", processes, address(listener))
    flush()
    # The factory in each worker process reads the project folder and the mode from these.
    os.environ.update(TREEFOLD_APP_DIR=str(app.root), TREEFOLD_DEV="0")
    run_workers(
        factory,
        listener,
        workers=processes,
        limit=app.settings.limit_concurrency,
        serve=app.settings.serve,
    )


def _accepts_any_host(app: "Application", address: str) -> bool:
    """Return True if other machines can send requests with any host name (D-08)."""
    from treefold_http.middleware import TrustedHosts

    entries = app.project.middlewares
    guarded = any(isinstance(entry, TrustedHosts) for entry in entries)
    return not guarded and not ipaddress.ip_address(address).is_loopback
