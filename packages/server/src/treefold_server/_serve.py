"""The whole server: listen, serve with one or more processes, start again, end.

It is made of the public functions of this package alone; a program that needs more between these
steps calls them itself.
"""

import os
from typing import Any

from treefold_logging import flush, get_logger
from treefold_server._errors import ServerError
from treefold_server._listener import format_address, is_socket_kept_by_other, open_listener
from treefold_server._options import ServerOptions
from treefold_server._restart import open_inherited_listener, restart_process
from treefold_server._server import serve_until_stopped
from treefold_server._workers import run_workers


def serve(app: Any, options: ServerOptions | None = None, *, is_factory: bool = False) -> None:
    """Serve an ASGI application until SIGINT or SIGTERM.

    SIGHUP, and the end after `max_requests`, replace the process: one by a new run of its program
    on the same socket, each of several by another worker.

    Args:
        app: an ASGI application, or `module:name` of one, which several processes need.
        options: where to listen, and the limits.
        is_factory: True if `app` must be called to get the application.

    Raises:
        ServerError: the address cannot be listened on, or the application does not start.
    """
    environment, folder = dict(os.environ), os.getcwd()
    options = options or ServerOptions()
    if options.workers > 1 and not isinstance(app, str):
        raise ServerError(
            "Several processes import the application; give its name, such as 'module:app'",
            exit_code=2,
        )
    is_kept = is_socket_kept_by_other(options)
    with open_listener(options, open_inherited_listener()) as listener:
        where = format_address(listener, "https" if options.tls_certificate else "http")

        def announce_address() -> None:
            if options.workers > 1:  # connections are accepted once the first of them serves
                get_logger().info("starting %d processes on %s", options.workers, where)
            else:
                get_logger().info("serving on %s", where)
            flush()

        if options.workers > 1:
            run_workers(
                app,
                listener,
                options=options,
                on_start=announce_address,
                is_factory=is_factory,
                is_socket_kept=is_kept,
            )
        elif serve_until_stopped(
            app,
            listener.dup(),
            options=options,
            on_start=announce_address,
            is_factory=is_factory,
            restarts_on_hangup=True,
            is_socket_kept=is_kept,
        ):
            restart_process(listener, environment=environment, folder=folder)
