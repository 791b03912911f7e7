"""The listening socket of a server: bound before anything of the project is imported."""

import errno
import os
import socket

from treefold_cli._console.errors import MISUSE, CommandError


def bind(host: str, port: int) -> socket.socket:
    """Bind the port, before anything of the project is imported.

    Args:
        host: a name or address of this machine.
        port: a port, or 0 for a free one.

    Returns:
        A bound socket that does not listen yet.

    Raises:
        CommandError: the port is in use, or the address is not one of this machine.
    """
    if not host:  # a socket takes it as every interface; the user probably has an unset variable
        raise _unknown_host(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only for a socket with an explicit protocol. Without it the body of a
    # response waits until the client acknowledges its head: 40 ms on a kept-alive connection.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    return listener


def address(listener: socket.socket) -> str:
    """Return the URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _unknown_host(host: str) -> CommandError:
    message = f"Unknown host {host!r}; give an address of this machine with --host"
    return CommandError(message, code=MISUSE)


def _cannot_listen(host: str, port: int, error: OSError | UnicodeError) -> CommandError:
    if isinstance(error, socket.gaierror | UnicodeError):
        return _unknown_host(host)
    if error.errno == errno.EADDRINUSE:
        return CommandError(f"Port {port} on {host!r} is in use; choose another with --port")
    return CommandError(
        f"Cannot listen on {host!r}, port {port}: {error.strerror or error}; choose others with"
        " --host and --port"
    )
