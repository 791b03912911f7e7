"""`treefold dev`: the development server.

One process, `dev=True`, everything worth knowing printed once at the start. Serving itself is in
`treefold_server`.
"""

import contextlib
import importlib.util
import ipaddress
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from treefold_cli._console.completion import complete_versions
from treefold_cli._console.errors import MISUSE, OK, CommandError, translate_to_command_error
from treefold_cli._console.options import (
    AppDir,
    Host,
    Port,
    RootPath,
    export_root_path,
    make_flag,
    make_option,
    parse_number_option,
)
from treefold_cli._console.output import print_error, print_line
from treefold_cli._console.project import require_api_folder
from treefold_cli._console.route_lines import render_route_tree
from treefold_cli._contract.clients import ClientTarget
from treefold_router import version_number

if TYPE_CHECKING:
    import socket

    from treefold_cli._dev.reload_loop import AfterReload
    from treefold_cli._dev.watched import WatchedFolders
    from treefold_http import Application

_DEFAULT_VERSION = "Serve requests without a version from 'latest' or a version such as v2."
_RELOAD_DIR = "Watch another folder too; a change there restarts. Repeatable."
_RELOAD_INCLUDE = "Watch other files too, such as '*.html'; a change restarts. Repeatable."
_CLIENT = "Write a client at the start and after each save, such as ts:web/api. Repeatable."
_NO_ROUTES = "no routes yet; make one with 'treefold create user get'"
_NO_WATCHER = (
    "watcher is disabled: the extra is missing (pip install 'treefold[watch]');"
    " restart by hand to see changes"
)


def dev(
    host: Host = "127.0.0.1",
    port: Port = "8000",
    default_version: Annotated[
        str, make_option("--default-version", "VERSION", _DEFAULT_VERSION, complete_versions)
    ] = "",
    migrate: Annotated[
        bool, make_flag("--migrate", "Apply pending migrations, now and after each change.")
    ] = False,
    reload_dir: Annotated[list[str] | None, make_option("--reload-dir", "DIR", _RELOAD_DIR)] = None,
    reload_include: Annotated[
        list[str] | None, make_option("--reload-include", "PATTERN", _RELOAD_INCLUDE)
    ] = None,
    clients: Annotated[
        list[str] | None, make_option("--client", "LANG:DIR[:NAME]", _CLIENT)
    ] = None,
    no_reload: Annotated[
        bool, make_flag("--no-reload", "Watch nothing: changes need a restart by hand.")
    ] = False,
    root_path: RootPath = "",
    app_dir: AppDir = ".",
) -> int:
    """Run the development server.

    One line says which migrations are not applied and which models have none yet.
    """
    # A restart begins where this process began: the project's code, `.env` and options below change
    # variables and folder, and the new process must read each of them as if for the first time.
    environment, folder = dict(os.environ), os.getcwd()
    number = parse_number_option(port, "--port", low=0, high=65535)
    api = require_api_folder(app_dir)
    from treefold_cli._dev.healed_failures import add_healed_failures, take_healed_failures
    from treefold_server import bind_port, open_inherited_listener, restart_process

    # After a restart, the socket of the previous process is open still: clients that connected in
    # between wait in its queue, and no other program can take the port.
    inherited = open_inherited_listener()
    is_restarted = inherited is not None
    # the folder may have been renamed since the start, which the boot reports
    version = default_version if is_restarted else _parse_default_version(default_version, api)
    export_root_path(root_path)
    from treefold_cli._serve.server_options import translate_server_errors
    from treefold_http import Application

    with translate_server_errors(), inherited or bind_port(host, number) as listener:
        app = Application(app_dir, dev=True, default_version=version or None)
        app.has_own_server = True  # no warning that a foreign server ignores the settings `[serve]`
        if not is_restarted and not is_loopback(host):
            print_error(f"Warning: {_describe_exposure(host)}")
        watched = None
        if not no_reload:
            given = (reload_dir or (), reload_include or ())
            watched = _choose_watched_folders(app, *given, is_restarted=is_restarted)
        healed = take_healed_failures()
        targets = [ClientTarget.parse(each, Path.cwd()) for each in clients or ()]
        if _serve_project(
            app, listener, watched, healed, targets, is_restarted=is_restarted, migrate=migrate
        ):
            handed = add_healed_failures(environment, healed)
            restart_process(listener, environment=handed, folder=folder)
    return OK


def _choose_watched_folders(
    app: "Application",
    reload_dir: Sequence[str],
    reload_include: Sequence[str],
    *,
    is_restarted: bool,
) -> "WatchedFolders":
    """Return what to watch; a restarted process goes on without a folder that is missing."""
    from treefold_cli._dev.watched import WatchedFolders, require_watched_folder
    from treefold_http import TreefoldError

    folders, include = [os.path.abspath(folder) for folder in reload_dir], [*reload_include]
    with contextlib.suppress(TreefoldError):  # wrong settings are reported by the boot
        folders = [*app.settings.watch, *folders]
        include = [*app.settings.watch_include, *include]
    present: list[str] = []
    for folder in folders:
        try:
            require_watched_folder(app.root, folder)
            present.append(folder)
        except CommandError as error:
            if not is_restarted:
                raise
            print_error(f"Error: {error}")
    return WatchedFolders.take_snapshots(app.root, present, include)


def _describe_exposure(host: str) -> str:
    return (
        f"host {host!r} lets other machines reach the development server; source and log are"
        " readable for the network"
    )


def _serve_project(
    app: "Application",
    listener: "socket.socket",
    watched: "WatchedFolders | None",
    healed: set[tuple[str, str]],
    clients: Sequence[ClientTarget],
    *,
    is_restarted: bool,
    migrate: bool,
) -> bool:
    """Serve until shutdown; return True if the process must be restarted.

    A restarted process does not exit when the boot fails: it waits for the next save.
    """
    from treefold_cli._checks.pending import PendingReport
    from treefold_cli._serve.server_options import build_server_options, translate_server_errors
    from treefold_http import TreefoldError
    from treefold_logging import flush, get_logger
    from treefold_server import Server, format_address, serve_until_stopped

    announce = partial(_announce_address, app, format_address(listener), is_restarted=is_restarted)
    options = build_server_options()
    try:
        with translate_to_command_error(TreefoldError):
            app.boot()
        report = PendingReport(app, applies=migrate)
        report.report_at_start()
        if importlib.util.find_spec("watchfiles") is None and watched is not None:
            watched = None
            get_logger("dev").info(_NO_WATCHER)
        flush()  # print the log of the boot first
        if not is_restarted:
            for line in [*render_route_tree(app.table.routes)] or [_NO_ROUTES]:
                print_line(line)
        import asyncio  # slow to import, and `--help` reads this module

        from treefold_cli._dev.blocked_loop import warn_of_blocking_lines
        from treefold_cli._dev.slow_startup import watch_startup

        async def watch(server: "Server") -> None:
            reports: list[AfterReload] = [report, *_build_followers(app, clients)]
            for follower in reports[1:]:
                await follower.report_after_reload(())
            with warn_of_blocking_lines(app.root):
                if watched is None:
                    await asyncio.Event().wait()  # until it is cancelled
                else:
                    from treefold_cli._dev.reload_loop import reload_on_change

                    await reload_on_change(app, server, watched, reports, healed)

        with translate_server_errors():
            return serve_until_stopped(
                app,
                listener.dup(),
                on_start=announce,
                options=options,
                background=watch,
                during_startup=partial(
                    watch_startup, app, listener, watched, Server.build_for_thread
                ),
            )
    except CommandError as error:
        flush()
        if not is_restarted or watched is None:
            raise
        return _serve_boot_error(listener, watched, error)


def _build_followers(app: "Application", clients: Sequence[ClientTarget]) -> "list[AfterReload]":
    """Return what writes the lock and the clients again, if anything is to be written."""
    if not clients and not app.settings.contract.auto:
        return []
    from treefold_cli._contract.followers import ContractFollower

    return [ContractFollower(app, writes_lock=app.settings.contract.auto, clients=clients)]


def _serve_boot_error(
    listener: "socket.socket", watched: "WatchedFolders", error: CommandError
) -> bool:
    """Answer every request with the error of the boot, until a file changes."""
    from treefold_cli._dev.reload_loop import restart_on_next_change
    from treefold_cli._dev.unavailable import Unavailable
    from treefold_cli._serve.server_options import build_server_options
    from treefold_server import serve_until_stopped

    return serve_until_stopped(
        Unavailable(f"{error}".replace("is above", "is in the terminal")),
        listener.dup(),
        options=build_server_options(),
        on_start=lambda: print_error(f"Error: {error}; waiting for a change"),
        background=lambda server: restart_on_next_change(server, watched),
    )


def _announce_address(app: "Application", address: str, *, is_restarted: bool) -> None:
    if app.has_docs and not is_restarted:
        print_line(f"docs on {address}{app.settings.root_path}/docs")
    print_line(f"serving on {address} ({'restarted' if is_restarted else 'stop with Ctrl-C'})")
    sys.stdout.flush()


def _parse_default_version(text: str, api: "Path") -> str:
    if not text or text == "latest" or (version_number(text) is not None and (api / text).is_dir()):
        return text
    versions = (entry.name for entry in api.iterdir() if version_number(entry.name) is not None)
    raise CommandError(
        f"Invalid value {text!r} for --default-version; use 'latest' or a version of Api/"
        f" ({', '.join(sorted(versions)) or 'there is none yet'})",
        code=MISUSE,
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
