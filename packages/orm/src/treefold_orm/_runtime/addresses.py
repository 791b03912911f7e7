"""Database addresses in settings: checked before anything connects, never quoted with a secret."""

from __future__ import annotations

import os
import re

from treefold_orm._base.errors import ConfigurationError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}")
SYNCHRONOUS = ("normal", "full")
_FORMS = "give sqlite:///file.sqlite3 or postgresql://user@host/name"


def mask_address(address: str) -> str:
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
        ConfigurationError: the message names the alias and the fault, and holds no secret.
    """
    scheme, found, rest = address.partition("://")
    if not found or not _SCHEME.fullmatch(scheme):
        raise _build_configuration_error(alias, f"is not an address; {_FORMS}")
    if scheme == "sqlite":
        _check_sqlite_address(alias, rest)
    elif scheme in ("postgres", "postgresql"):
        _check_postgres_address(alias, address)
    else:
        raise _build_configuration_error(
            alias, f"has the scheme {scheme!r}, which is not known; {_FORMS}"
        )


def parse_sqlite_address(path_and_query: str) -> tuple[str, dict[str, str]]:
    """Split the text after `sqlite://` into a path and its options.

    Raises:
        ConfigurationError: an option that SQLite does not take, or a value that it does not have.
    """
    path, _, query = path_and_query.partition("?")
    options: dict[str, str] = {}
    if query:
        from urllib.parse import parse_qsl  # with all that it imports a tenth of this package

        options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if name != "synchronous":
            raise ConfigurationError(f"SQLite takes no option {name!r}: it takes synchronous=full")
        check_synchronous_option(value)
    return path, options


def check_synchronous_option(value: object) -> None:
    """Raise `ConfigurationError` unless `value` says how far a commit is written."""
    if value not in SYNCHRONOUS:
        raise ConfigurationError(
            f"synchronous must be one of {', '.join(map(repr, SYNCHRONOUS))}, got {value!r}"
        )


def _check_sqlite_address(alias: str, path_and_query: str) -> None:
    try:
        path_and_query, _ = parse_sqlite_address(path_and_query)
    except ConfigurationError as error:
        failure = _build_configuration_error(alias, f"cannot be used: {error}")
    else:
        failure = None
    if failure is not None:
        raise failure
    if path_and_query in (":memory:", "/:memory:"):
        return
    if not path_and_query.startswith("/") or path_and_query == "/":
        raise _build_configuration_error(
            alias, "names no file; give sqlite:///file.sqlite3, or sqlite:////srv/file.sqlite3"
        )
    folder = os.path.dirname(os.path.join(os.getcwd(), path_and_query[1:]))
    if not os.path.isdir(folder):
        raise _build_configuration_error(
            alias, f"lies in {folder!r}, which is not a folder; make it first"
        )


def _check_postgres_address(alias: str, address: str) -> None:
    from urllib.parse import parse_qsl, urlsplit

    try:
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        # a "#" in a password that is not percent-encoded begins a fragment, and a second "@" leaves
        # open where the password ends
        readable = parts.port != 0 and address.count("@") < 2 and not parts.fragment
    except ValueError:
        readable, options = False, {}
    if not readable:
        raise _build_configuration_error(
            alias,
            f"cannot be read ({mask_address(address)}); percent-encode '/', ':', '@' and '#' in"
            " user and password, and give the port as a number",
        )
    size = options.get("pool_size", "1")
    # "²".isdigit() is True and int("²") fails; int() refuses text of more than 4300 digits, and
    # nine are too many already
    if not (size.isascii() and size.isdigit() and 1 <= int(size[:9]) <= 10_000):
        raise _build_configuration_error(
            alias, f"has pool_size={size!r}; give a whole number from 1 to 10000"
        )


def _build_configuration_error(alias: str, message: str) -> ConfigurationError:
    return ConfigurationError(f"Database {alias!r} {message}")
