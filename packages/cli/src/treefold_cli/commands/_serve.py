"""`treefold serve`: the production server.

One process serves a booted application; several each make their own. Serving itself is in
`treefold_server`.
"""

import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from treefold_cli._checks.broken_files import require_no_broken_files
from treefold_cli._checks.deployment import start_deployment_check
from treefold_cli._checks.public_address import PUBLIC_VARIABLE, is_bound_to_public_address
from treefold_cli._console.errors import OK, CommandError, translate_to_command_error
from treefold_cli._console.options import AppDir, make_flag
from treefold_cli._console.project import require_api_folder
from treefold_cli._serve.serve_options import (
    apply_options_to_settings,
    parse_given_options,
    to_environment_variables,
    with_serve_options,
)

if TYPE_CHECKING:
    from socket import socket

    from treefold_http import Application, ServeSettings
    from treefold_server import ServerOptions

_BROKEN = "Start although handler files fail to load; they answer 500."
_MIGRATED = "Refuse to start while migrations are pending; lists them."
_FACTORY = "treefold_cli._serve.worker:create_worker_app"
_FACTORY_ALLOWING_BROKEN = "treefold_cli._serve.worker:create_app_allowing_broken"


@with_serve_options
def serve(
    require_migrated: Annotated[bool, make_flag("--require-migrated", _MIGRATED)] = False,
    allow_broken: Annotated[bool, make_flag("--allow-broken", _BROKEN)] = False,
    app_dir: AppDir = ".",
    **given: str | None,
) -> int:
    """Run the application in production. It never migrates.

    It refuses to start with files that fail to load, and lists them with their reasons. Every other
    option is a setting too: `[serve]` in the settings file, or TREEFOLD_SERVE_<NAME>.
    """
    environment, folder = dict(os.environ), os.getcwd()
    values = parse_given_options(given)
    root = require_api_folder(app_dir).parent
    from treefold_cli._serve.server_options import build_server_options, translate_server_errors
    from treefold_http import Application, Settings, TreefoldError
    from treefold_server import (
        is_socket_kept_by_other,
        open_inherited_listener,
        open_listener,
        restart_process,
    )

    with translate_to_command_error(TreefoldError), translate_server_errors():
        settings = apply_options_to_settings(Settings.load(root), values)
        _check_certificate(settings.serve)
        options = build_server_options(settings)
        kept = is_socket_kept_by_other(options)
        with open_listener(options, open_inherited_listener()) as listener:
            app = Application(app_dir, settings=settings)
            if require_migrated:
                from treefold_cli._checks.pending import require_nothing_pending

                require_nothing_pending(app)
            if settings.serve.workers > 1:
                factory = _FACTORY_ALLOWING_BROKEN if allow_broken else _FACTORY
                _announce_to_workers(app, listener, values)
                _serve_in_processes(app, listener, factory, options, is_kept=kept)
            elif _serve_in_one_process(
                app, listener, options, allow_broken=allow_broken, is_kept=kept
            ):
                restart_process(listener, environment=environment, folder=folder)
    return OK


def _serve_in_one_process(
    app: "Application",
    listener: "socket",
    options: "ServerOptions",
    *,
    allow_broken: bool,
    is_kept: bool,
) -> bool:
    """Serve in this process; return True if it must be restarted."""
    from treefold_logging import get_logger
    from treefold_server import serve_until_stopped

    app.has_own_server = True
    app.boot()
    if not allow_broken:
        require_no_broken_files(app)
    where = _format_address(app, listener)

    def announce_address() -> None:
        get_logger().info("serving on %s", where)
        if is_bound_to_public_address(listener):
            start_deployment_check(app)

    return serve_until_stopped(
        app,
        listener.dup(),
        on_start=announce_address,
        options=options,
        restarts_on_hangup=True,
        is_socket_kept=is_kept,
    )


def _announce_to_workers(app: "Application", listener: "socket", values: Mapping[str, Any]) -> None:
    """Set the variables from which the factory in each process reads folder, mode and options."""
    from treefold_cli._serve.worker import PROCESSES_VARIABLE

    os.environ.update(
        to_environment_variables(values),
        TREEFOLD_APP_DIR=str(app.root),
        TREEFOLD_DEV="0",
    )
    os.environ[PROCESSES_VARIABLE] = str(app.settings.serve.workers)
    if is_bound_to_public_address(listener):
        os.environ[PUBLIC_VARIABLE] = _format_address(app, listener)


def _serve_in_processes(
    app: "Application",
    listener: "socket",
    factory: str,
    options: "ServerOptions",
    *,
    is_kept: bool,
) -> None:
    from treefold_logging import configure, flush, get_logger
    from treefold_server import run_workers

    configure(log_format=app.settings.log_format, level=app.settings.log_level)
    where = _format_address(app, listener)

    def announce_processes() -> None:
        get_logger().info("starting %d processes on %s", options.workers, where)
        flush()

    run_workers(
        factory,
        listener,
        options=options,
        on_start=announce_processes,
        is_factory=True,
        is_socket_kept=is_kept,
    )


def _format_address(app: "Application", listener: "socket") -> str:
    from treefold_server import format_address

    return format_address(listener, "https" if app.settings.serve.tls_certificate else "http")


def _check_certificate(settings: "ServeSettings") -> None:
    """Refuse a certificate that cannot be served, before anything else is done."""
    if settings.tls_certificate is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = settings.tls_certificate
    try:
        context.load_cert_chain(file, settings.tls_key, password=_refuse_key_password)
        if settings.tls_client_ca is not None:
            file = settings.tls_client_ca
            context.load_verify_locations(file)
    except (OSError, ValueError) as error:
        raise CommandError(
            f"Cannot serve HTTPS with {file!r}: {error}; give PEM files with --tls-certificate,"
            " --tls-key and --tls-client-ca"
        ) from error


def _refuse_key_password() -> str:
    raise ValueError("the key has a password, which is not supported")
