"""Is a server there, and is it the one the URL says? One connection, one short question.

Knows the first bytes of PostgreSQL and Redis and no driver: the command line imports no ORM, and a
driver may not be installed. Names and passwords are not tried, and never printed.
"""

import os
import socket
import ssl
import struct
from contextlib import closing
from urllib.parse import SplitResult, parse_qs, urlsplit

PATIENCE = 2.0
"""Seconds until a server that does not answer counts as unreachable."""

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)  # PostgreSQL, "Message Formats": SSLRequest
_PING = b"*1\r\n$4\r\nPING\r\n"


class Unreachable(Exception):
    """Nobody answers, or somebody else does; `str()` is one clause without the password."""


def check_postgres(url: str) -> str:
    """Ask for encryption, which every PostgreSQL answers with one letter.

    Args:
        url: `postgresql://...`.

    Returns:
        Where it answers.

    Raises:
        Unreachable: nothing is there, or it is no PostgreSQL.
    """
    parts = _split(url)
    host = parse_qs(parts.query).get("host", [parts.hostname or "localhost"])[0]
    port = _port(parts, 5432)
    path = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else ""
    where = path or f"{host}:{port}"
    answer = _ask(where, _SSL_REQUEST, host=host, port=port, path=path)
    if answer[:1] not in (b"S", b"N", b"E"):
        raise Unreachable(f"{where} answers, but not as PostgreSQL does")
    return where


def check_redis(url: str) -> str:
    """Send `PING`; one that wants a password first is there as well.

    Args:
        url: `redis://`, `rediss://` or `unix://`.

    Returns:
        Where it answers.

    Raises:
        Unreachable: nothing is there, or it is no Redis.
    """
    parts = _split(url)
    path = parts.path if parts.scheme == "unix" else ""
    host, port = parts.hostname or "localhost", _port(parts, 6379)
    where = path or f"{host}:{port}"
    answer = _ask(where, _PING, host=host, port=port, path=path, tls=parts.scheme == "rediss")
    if not answer.startswith((b"+PONG", b"-NOAUTH", b"-DENIED", b"-LOADING")):
        raise Unreachable(f"{where} answers, but not as Redis does")
    return where


def check_sqlite(url: str) -> str:
    """Look whether a SQLite file can be opened or made.

    Args:
        url: `sqlite:///relative` or `sqlite:////absolute`, or a path.

    Returns:
        The path, or `:memory:`.

    Raises:
        Unreachable: the file cannot be read and written, or its folder takes no file.
    """
    path = url.partition("://")[2].partition("?")[0].removeprefix("/") if "://" in url else url
    if path in ("", ":memory:"):
        return ":memory:"
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise Unreachable(f"{path!r} is a folder")
    if not os.path.isdir(folder):
        raise Unreachable(f"folder {folder!r} does not exist")
    wanted = path if os.path.exists(path) else folder
    if not os.access(wanted, os.R_OK | os.W_OK):
        raise Unreachable(f"{wanted!r} cannot be written")
    return path


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise Unreachable("the URL cannot be read") from error


def _port(parts: SplitResult, default: int) -> int:
    try:
        return parts.port or default
    except ValueError as error:
        raise Unreachable("the URL has no valid port") from error


def _ask(
    where: str, question: bytes, *, host: str, port: int, path: str, tls: bool = False
) -> bytes:
    try:
        with closing(_connect(host, port, path=path)) as plain:
            plain.settimeout(PATIENCE)
            server = _encrypted(plain, host) if tls else plain
            with closing(server):
                server.sendall(question)
                return server.recv(64)
    except TimeoutError as error:
        raise Unreachable(f"{where} does not answer within {PATIENCE:g} s") from error
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unreachable(f"{where} cannot be reached ({reason})") from error


def _connect(host: str, port: int, *, path: str) -> socket.socket:
    if not path:
        return socket.create_connection((host, port), timeout=PATIENCE)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(PATIENCE)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _encrypted(plain: socket.socket, host: str) -> socket.socket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
