"""An HTTP server for any ASGI application, hardened for the internet: uvicorn with limits.

Only names are exported here; the code is in the underscored modules. `serve` is the whole server;
the other functions are its parts, for a program that boots, announces or reloads by itself.
"""

from treefold_server.__about__ import __version__
from treefold_server._errors import ServerError
from treefold_server._listener import (
    bind_port,
    format_address,
    is_socket_kept_by_other,
    open_listener,
)
from treefold_server._options import ServerOptions
from treefold_server._restart import open_inherited_listener, restart_process
from treefold_server._serve import serve
from treefold_server._server import Server, serve_until_stopped
from treefold_server._workers import run_workers

__all__ = [
    "Server",
    "ServerError",
    "ServerOptions",
    "__version__",
    "bind_port",
    "format_address",
    "is_socket_kept_by_other",
    "open_inherited_listener",
    "open_listener",
    "restart_process",
    "run_workers",
    "serve",
    "serve_until_stopped",
]
