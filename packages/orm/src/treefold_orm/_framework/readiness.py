"""Readiness of a database: asked over the running pool, else over one short connection.

For the readiness of an application and for `treefold doctor`. No text holds the name of a user or
a password.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import SplitResult, parse_qs, urlsplit

from treefold_orm._base.errors import ConfigurationError, ORMError
from treefold_orm._drivers.base import Database, make_statement_operation
from treefold_orm._runtime.addresses import parse_sqlite_address
from treefold_orm._runtime.login import try_login

PATIENCE = 2.0
"""Seconds until a database that does not answer counts as unreachable."""

_SQLITE = b"SQLite format 3\0"
_MEND = "mend the URL"
_START = f"start it, or {_MEND}"


@dataclass(frozen=True, slots=True)
class Check:
    """The state of one database.

    Attributes:
        name: its alias.
        text: the finding; the kind of database and where it is, never the login.
        ok: True if it can serve.
        advice: the next step; empty if there is none.
        topic: the kind of check.
    """

    name: str
    text: str
    ok: bool = False
    advice: str = ""
    topic: str = "database"


class _Unfit(Exception):
    def __init__(self, message: str, advice: str = _START) -> None:
        super().__init__(message)
        self.advice = advice


async def check_running(alias: str, database: Database) -> Check:
    """Ask a database over its own pool, as a request would."""
    kind = "postgresql" if database.name == "postgres" else database.name
    try:
        async with asyncio.timeout(PATIENCE):
            await database.arun(make_statement_operation("SELECT 1"), write=False, read_only=True)
    except TimeoutError:
        return Check(alias, f"{kind}: does not answer within {PATIENCE:g} s")
    except ORMError as error:
        return Check(alias, f"{kind}: {error}")
    return Check(alias, f"{kind} answers", ok=True)


async def probe_address(alias: str, address: str) -> Check:
    """Look whether a database is at an address, is of its kind, and takes a login."""
    scheme = address.partition(":")[0].partition("+")[0]
    try:
        if scheme == "sqlite":
            return Check(alias, f"sqlite at {_check_and_describe_sqlite(address)}", ok=True)
        if scheme in ("postgres", "postgresql"):
            return await _probe_postgres(alias, address)
    except _Unfit as unfit:
        kind = "sqlite" if scheme == "sqlite" else "postgresql"
        return Check(alias, f"{kind}: {unfit}", advice=unfit.advice)
    advice = "give sqlite:///file or postgresql://host/name"
    return Check(alias, f"unknown kind {scheme!r}", advice=advice)


def _check_and_describe_sqlite(address: str) -> str:
    try:
        path, options = parse_sqlite_address(address.partition("://")[2])
    except ConfigurationError as error:
        raise _Unfit(str(error), _MEND) from None
    path = path.removeprefix("/")
    if path in ("", ":memory:"):
        return ":memory:"
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise _Unfit(f"{path!r} is a folder", _MEND)
    if not os.path.isdir(folder):
        raise _Unfit(f"folder {folder!r} does not exist", f"make it, or {_MEND}")
    wanted = path if os.path.exists(path) else folder
    if not os.access(wanted, os.R_OK | os.W_OK):
        raise _Unfit(f"{wanted!r} cannot be written", f"change its permissions, or {_MEND}")
    if os.path.isfile(path):
        with open(path, "rb") as file:
            start = file.read(len(_SQLITE))
        # an empty file is a new database to SQLite
        if start not in (b"", _SQLITE):
            raise _Unfit(f"{path!r} is no SQLite database", _MEND)
    if options.get("synchronous") == "full":
        return f"{path}, synchronous=full: commits survive a power cut"
    return f"{path}, synchronous=normal: a power cut may take the last commits"


async def _probe_postgres(alias: str, address: str) -> Check:
    if find_spec("asyncpg") is None:
        advice = "pip install 'treefold-orm[postgres]'"
        return Check(alias, "postgresql: the driver asyncpg is not installed", advice=advice)
    deadline = asyncio.get_running_loop().time() + PATIENCE
    found = f"postgresql at {await _probe_server(_split_address(address), deadline)}"
    # a server that was reached at the last moment still gets a try
    left = max(0.1, deadline - asyncio.get_running_loop().time())
    text, advice = await try_login(address, timeout=left)
    return Check(alias, f"{found} {text}" if text else found, ok=not text, advice=advice)


async def _probe_server(url: SplitResult, deadline: float) -> str:
    """Open a connection and close it; return the address of the server."""
    host = parse_qs(url.query).get("host", [url.hostname or "localhost"])[0]
    try:
        port = url.port or 5432
    except ValueError:
        raise _Unfit("the URL has no valid port") from None
    path = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else ""
    where = path or f"{host}:{port}"
    opening = asyncio.open_unix_connection(path) if path else asyncio.open_connection(host, port)
    try:
        async with asyncio.timeout_at(deadline):
            _, writer = await opening
            writer.close()
    except TimeoutError:
        raise _Unfit(f"{where} does not answer within {PATIENCE:g} s") from None
    # UnicodeError: a host name with a part of more than 63 letters, from the IDNA codec
    except (OSError, UnicodeError, OverflowError) as error:
        raise _Unfit(f"{where} cannot be reached ({_describe_error(error)})") from None
    return where


def _describe_error(error: Exception) -> str:
    number = getattr(error, "errno", None)
    plain = os.strerror(number) if isinstance(number, int) and number > 0 else ""
    return plain or getattr(error, "strerror", None) or str(error)


def _split_address(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        raise _Unfit("the URL cannot be read") from None
