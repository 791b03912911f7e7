"""Check that a Redis server answers at a URL and accepts the login, over one short connection.

Databases are asked by the extension that owns them. User names and passwords are never printed.
"""

import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

PATIENCE = 2.0
"""Seconds until a server that does not answer counts as unreachable."""

_START = "start it, or mend the URL"


class Unreachable(Exception):
    """No server answers, it is of another kind, or it refuses the login; `str()` is one clause.

    Attributes:
        advice: the remedy.
    """

    def __init__(self, message: str, advice: str = _START) -> None:
        super().__init__(message)
        self.advice = advice


def check_redis(url: str) -> str:
    """Log in with the credentials of the URL, select its database and send `PING`.

    Args:
        url: `redis://`, `rediss://` or `unix://`.

    Returns:
        Where it answers.

    Raises:
        Unreachable: nothing is there, it is no Redis, or it does not let us in; or the URL is none.
    """
    if not url.startswith(_REDIS_SCHEMES):  # the client refuses it; it may begin with a password
        schemes = ", ".join(_REDIS_SCHEMES)
        raise Unreachable("the URL is of no kind that Redis has", f"let it begin with {schemes}")
    parts = _split(url)
    path = parts.path if parts.scheme == "unix" else ""
    host, port = parts.hostname or "localhost", _port(parts, 6379)
    where = path or f"{host}:{port}"
    commands = _redis_commands(parts)
    answer = _ask(
        where,
        b"".join(map(_redis_command, commands)),
        host=host,
        port=port,
        path=path,
        tls=parts.scheme == "rediss",
        lines=len(commands),
    )
    for line in answer.splitlines():
        known = (r for r in _REDIS_REFUSALS if line.startswith(r))
        if (start := next(known, None)) is not None:
            text, advice = _REDIS_REFUSALS[start]
            raise Unreachable(f"{where} {text}", advice)
    if answer.splitlines()[-1:] != [b"+PONG"]:
        raise Unreachable(f"{where} answers, but not as Redis does")
    return where


_REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
_REDIS_REFUSALS: Mapping[bytes, tuple[str, str]] = {
    b"-NOAUTH": ("wants a password", "put it into the URL: redis://:password@host"),
    b"-WRONGPASS": ("refuses the user or the password", "mend the URL"),
    b"-ERR invalid password": ("refuses the user or the password", "mend the URL"),
    b"-ERR AUTH": ("has no password, and the URL names one", "take it out of the URL"),
    b"-ERR Client sent AUTH": ("has no password, and the URL names one", "take it out of the URL"),
    b"-NOPERM": ("does not let this user do PING or SELECT", "mend its rights, or the URL"),
    b"-ERR DB index": ("has no database of that number", "mend the number at the end of the URL"),
    b"-ERR invalid DB": ("has no database of that number", "mend the number at the end of the URL"),
    b"-DENIED": ("takes connections from its own machine only", "see its protected-mode"),
    b"-LOADING": ("loads its data still", "wait until it is ready"),
}


def _redis_commands(parts: SplitResult) -> list[list[str]]:
    """`AUTH` and `SELECT`, if the URL needs them, and `PING`."""
    query = parse_qs(parts.query)
    user = unquote(parts.username or "") or query.get("username", [""])[0]
    password = unquote(parts.password or "") or query.get("password", [""])[0]
    number = "" if parts.scheme == "unix" else parts.path.strip("/")
    number = query.get("db", [number])[0]
    commands = [["AUTH", user, password] if user else ["AUTH", password]] if password else []
    return [*commands, *([["SELECT", number]] if number else []), ["PING"]]


def _redis_command(words: Sequence[str]) -> bytes:
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in encoded)


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
    where: str,
    question: bytes,
    *,
    host: str,
    port: int,
    path: str,
    tls: bool = False,
    lines: int = 0,
) -> bytes:
    try:
        with closing(_connect(host, port, path=path)) as plain:
            plain.settimeout(PATIENCE)
            server = _encrypted(plain, host) if tls else plain
            with closing(server):
                server.sendall(question)
                answer = server.recv(4096)
                while answer and answer.count(b"\n") < lines and b"HTTP" not in answer:
                    more = server.recv(4096)
                    if not more:
                        break
                    answer += more
                return answer
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
