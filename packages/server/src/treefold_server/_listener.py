"""The listening socket of a server: bound before anything of the project is imported.

It is bound here, or handed over: by its number, or by the service manager that started the process
(sd_listen_fds, the variables LISTEN_FDS and LISTEN_PID).
"""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Generator

from treefold_server._errors import ServerError
from treefold_server._options import ServerOptions

_FIRST_HANDED = 3
"""The number of the first socket of a service manager."""


@contextlib.contextmanager
def open_listener(
    options: ServerOptions, inherited: socket.socket | None = None
) -> Generator[socket.socket]:
    """Open the listening socket that the options ask for, and close it at the end.

    Args:
        options: where to listen.
        inherited: the socket of the former process, which was started again.

    Raises:
        ServerError: it cannot be opened; the message names the address and the way out.
    """
    handed = _pop_systemd_fd()
    if options.uds is not None:
        with _bind_unix_socket(options.uds, inherited) as listener:
            yield listener
        return
    number = handed if options.fd is None else options.fd
    if inherited is not None:
        opened = inherited
    elif number is not None:
        opened = _open_socket_from_fd(number)
    else:
        opened = bind_port(options.host, options.port)
    with opened as listener:
        yield listener


def is_socket_kept_by_other(options: ServerOptions) -> bool:
    """Return True if another process keeps the socket, for a server that follows this one."""
    return options.uds is None and (options.fd is not None or _has_systemd_socket())


def _has_systemd_socket() -> bool:
    return bool(os.environ.get("LISTEN_FDS")) and os.environ.get("LISTEN_PID") == str(os.getpid())


def _pop_systemd_fd() -> int | None:
    """Return the number of the socket of a service manager; None without one."""
    is_ours = _has_systemd_socket()
    count, _ = os.environ.pop("LISTEN_FDS", ""), os.environ.pop("LISTEN_PID", "")
    if not is_ours:
        return None
    if count != "1":
        raise ServerError(
            f"The service manager handed over {count} sockets, one is served; keep one of the"
            " Listen lines of the socket unit"
        )
    return _FIRST_HANDED


def _open_socket_from_fd(number: int) -> socket.socket:
    try:
        listener = socket.socket(fileno=number)
    except OSError as error:
        raise ServerError(
            f"File {number} is not a socket that this process was started with: {error.strerror};"
            " give the number of a listening socket with --fd"
        ) from error
    listens = listener.type == socket.SOCK_STREAM and (
        not hasattr(socket, "SO_ACCEPTCONN")
        or listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    )
    if not listens:
        listener.detach()
        raise ServerError(
            f"File {number} is a socket that does not listen for connections; give the number of"
            " a listening one with --fd"
        )
    listener.set_inheritable(False)
    return listener


@contextlib.contextmanager
def _bind_unix_socket(path: str, inherited: socket.socket | None) -> Generator[socket.socket]:
    """Bind a Unix socket, in place of one without a server; remove it at the end."""
    if not hasattr(socket, "AF_UNIX"):
        raise ServerError("This system has no Unix sockets; use --host and --port")
    listener = inherited or socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if inherited is None:
            _remove_stale_socket(path)
            listener.bind(path)
            os.chmod(path, 0o666)  # noqa: S103 - who may enter is decided by the folder
        own = os.stat(path)
    except ServerError:
        listener.close()
        raise
    except (OSError, ValueError) as error:  # ValueError for a NUL in the path
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ServerError(
            f"Cannot listen on {path!r}: {reason}; choose another with --uds"
        ) from error
    try:
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(path), own):
                os.unlink(path)


def _remove_stale_socket(path: str) -> None:
    if not os.path.exists(path):
        return
    if not stat.S_ISSOCK(os.stat(path).st_mode):
        raise ServerError(f"{path!r} is a file, not a socket; choose another with --uds")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise ServerError(f"{path!r} is in use by another server; choose another with --uds")


def bind_port(host: str, port: int) -> socket.socket:
    """Bind the port, before anything of the project is imported.

    Args:
        host: a name or address of this machine.
        port: a port, or 0 for a free one.

    Returns:
        A bound socket that does not listen yet.

    Raises:
        ServerError: the port is in use, or the address is not one of this machine.
    """
    if not host:  # a socket takes it as every interface; the user probably has an unset variable
        raise _make_unknown_host_error(host)
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
        raise _make_listen_error(host, port, error) from error
    return listener


def format_address(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL of a bound socket, or `unix:` and the path of a Unix socket."""
    name = listener.getsockname()
    if isinstance(name, str):
        return f"unix:{name}"
    host, port = name[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _make_unknown_host_error(host: str) -> ServerError:
    message = f"Unknown host {host!r}; give an address of this machine with --host"
    return ServerError(message, exit_code=2)


def _make_listen_error(host: str, port: int, error: OSError | UnicodeError) -> ServerError:
    if isinstance(error, socket.gaierror | UnicodeError):
        return _make_unknown_host_error(host)
    if error.errno == errno.EADDRINUSE:
        return ServerError(f"Port {port} on {host!r} is in use; choose another with --port")
    return ServerError(
        f"Cannot listen on {host!r}, port {port}: {error.strerror or error}; choose others with"
        " --host and --port"
    )
