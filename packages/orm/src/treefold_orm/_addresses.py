"""Database addresses in settings: checked before anything connects, never quoted with a secret."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from treefold_orm._errors import ConfigurationError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}")
_FORMS = "give sqlite:///file.sqlite3 or postgresql://user@host/name"


def masked(address: str) -> str:
    """Return an address without its user, password and options.

    Everything up to the last `@` goes: in a password that is not percent-encoded, the first one may
    be in its middle.
    """
    scheme, _, rest = address.partition("://")
    _, found, place = rest.rpartition("@")
    return f"{scheme}://{'***@' if found else ''}{place.partition('?')[0]}"


def check_address(alias: str, address: str) -> None:
    """Refuse an address that no database can be at.

    Raises:
        ConfigurationError: the message names the alias and what is wrong, and holds no secret.
    """
    scheme, found, rest = address.partition("://")
    if not found or not _SCHEME.fullmatch(scheme):
        raise _wrong(alias, f"is no address; {_FORMS}")
    if scheme == "sqlite":
        _check_sqlite(alias, rest)
    elif scheme in ("postgres", "postgresql"):
        _check_postgres(alias, address)
    else:
        raise _wrong(alias, f"has the scheme {scheme!r}, which is not known; {_FORMS}")


def _check_sqlite(alias: str, rest: str) -> None:
    if rest in (":memory:", "/:memory:"):
        return
    if not rest.startswith("/") or rest == "/":
        raise _wrong(
            alias, "names no file; give sqlite:///file.sqlite3, or sqlite:////srv/file.sqlite3"
        )
    if "?" in rest:
        raise _wrong(alias, "has options, and SQLite takes none; leave out what follows the '?'")
    folder = Path(rest[1:]).absolute().parent
    if not folder.is_dir():
        raise _wrong(alias, f"lies in {str(folder)!r}, which is no folder; make it first")


def _check_postgres(alias: str, address: str) -> None:
    try:
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        readable = parts.port != 0 and address.count("@") < 2 and not parts.fragment
    except ValueError:
        readable, options = False, {}
    if not readable:
        raise _wrong(
            alias,
            f"cannot be read ({masked(address)}); percent-encode '/', ':', '@' and '#' in user and"
            " password, and give the port as a number",
        )
    size = options.get("pool_size", "1")
    if not (size.isascii() and size.isdigit() and 1 <= int(size[:9]) <= 10_000):
        raise _wrong(alias, f"has pool_size={size!r}; give a whole number from 1 to 10000")


def _wrong(alias: str, message: str) -> ConfigurationError:
    return ConfigurationError(f"Database {alias!r} {message}")
