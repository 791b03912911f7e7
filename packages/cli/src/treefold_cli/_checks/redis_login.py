"""Check that a Redis server answers at a URL and accepts the login, over one short connection.

Databases are asked by the extension that owns them. User names and passwords are never printed: of
errors, only the reasons that the operating system and TLS give reach a finding.
"""

import importlib
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from treefold_http import Settings

TIMEOUT = 2.0
"""Seconds for connecting, and for each reply, until a server counts as unreachable."""

_SCHEMES = ("redis://", "rediss://", "unix://")
_MEND = "mend the URL"
_START = f"start it, or {_MEND}"
_NO_PASSWORD = ("has no password, and the URL names one", "take it out of the URL")
_GIVE_PASSWORD = "put it into the URL: redis://:password@host"  # noqa: S105 - advice
_REFUSALS = (
    ("Authentication required", ("wants a password", _GIVE_PASSWORD)),
    ("without any password configured", _NO_PASSWORD),
    ("no password is set", _NO_PASSWORD),
    ("password", ("refuses the user or the password", _MEND)),
    ("DB index", ("has no database of that number", "mend the number at the end of the URL")),
    ("DENIED", ("takes connections from its own machine only", "see its protected-mode")),
    ("closed by server", ("answers, but not as Redis does", f"{_MEND}, or see its protected-mode")),
)
"""Texts of a server or its driver, each with the finding: the first one that occurs counts."""


class Unreachable(Exception):
    """No server answers, it is of another kind, or it refuses the login; `str()` is one clause.

    Attributes:
        advice: the remedy.
    """

    def __init__(self, message: str, advice: str = _START) -> None:
        super().__init__(message)
        self.advice = advice


class DriverMissing(Unreachable):
    """redis-py is not installed, so the server cannot be asked."""


def find_redis_urls(settings: "Settings | None") -> Iterator[tuple[str, str]]:
    """Yield each Redis of the environment and of settings once: what names it, and its URL."""
    named = [(name, os.environ.get(name)) for name in ("TREEFOLD_REDIS_URL", "REDIS_URL")]
    named = [each for each in named if each[1]][:1]
    if settings is not None:
        named.append(("setting redis_url", settings.redis_url))
        for alias, url in settings.caches.items():
            named.append((f"cache {alias!r}", _remove_shared_option(url)))
    seen: set[str] = set()
    for name, url in named:
        if url and url not in seen and not url.startswith("memory:"):
            seen.add(url)
            yield name, url


def _remove_shared_option(address: str) -> str:
    """Return the address of a cache without the option `shared`, which the driver does not know."""
    if _has_unescaped_password_delimiter(address):  # `log_in_and_ping_redis` must see it
        return address
    try:
        options = parse_qsl(urlsplit(address).query)
    except ValueError:  # `log_in_and_ping_redis` refuses it; the text of the error has the password
        return address
    rest = urlencode([option for option in options if option[0] != "shared"])
    place = address.partition("?")[0]  # urlunsplit() takes the slashes of unix:// away
    return f"{place}?{rest}" if rest else place


def log_in_and_ping_redis(url: str) -> str:
    """Log in with the credentials of the URL, select its database and send `PING`.

    Args:
        url: `redis://`, `rediss://` or `unix://`.

    Returns:
        The address of the server.

    Raises:
        DriverMissing: redis-py is not installed.
        Unreachable: no server answers, it is no Redis, or it refuses the login; or the URL is none.
    """
    if not url.startswith(_SCHEMES):  # the driver refuses it; it may begin with a password
        advice = f"let it begin with {', '.join(_SCHEMES)}"
        raise Unreachable("the URL is of no kind that Redis has", advice)
    if _has_unescaped_password_delimiter(url):
        advice = "write / ? # of a user or password as %2F %3F %23"
        raise Unreachable("the URL has an @ behind its host", advice)
    if find_spec("redis") is None:
        advice = "pip install 'treefold[redis]'"
        raise DriverMissing("cannot be asked: the driver redis is not installed", advice)
    redis: Any = importlib.import_module("redis")
    retry = importlib.import_module("redis.retry").Retry(redis.backoff.NoBackoff(), 0)
    options = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT, "protocol": 2}
    try:
        client = redis.Redis.from_url(url, retry=retry, **options)
    except ValueError as error:
        is_port = str(error).startswith("Port")
        text = "the URL has no valid port" if is_port else "the URL cannot be read"
        raise Unreachable(text) from error
    place = client.connection_pool.connection_kwargs
    where = place.get("path") or f"{place.get('host', 'localhost')}:{place.get('port', 6379)}"
    try:
        with client:
            client.ping()
    except redis.RedisError as error:
        text, advice = _explain_error(error, redis)
        raise Unreachable(f"{where} {text}", advice) from error
    except UnicodeError as error:  # its text has a character of the password
        text = f"{where} cannot be reached (a part of the URL cannot be encoded)"
        raise Unreachable(text, _MEND) from error
    except TypeError as error:  # its text has the option, which may be a part of the password
        raise Unreachable("the URL has an option that the driver does not know", _MEND) from error
    return where


def _has_unescaped_password_delimiter(url: str) -> bool:
    """Return True if a `/`, `?` or `#` in the password ends the host, which is a part of it then.

    The value of an option may have an `@`.
    """
    if url.startswith("unix://"):
        return False
    rest = url.partition("://")[2]
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    behind, _, options = rest[len(host) :].partition("?")
    return "@" in behind + options.partition("=")[0] or "@" in options.partition("#")[2]


def _explain_error(error: Exception, redis: Any) -> tuple[str, str]:
    """Return the finding for an error of the driver, and the remedy."""
    if isinstance(error, redis.TimeoutError):
        return f"does not answer within {TIMEOUT:g} s", _START
    if isinstance(error, redis.BusyLoadingError):
        return "loads its data still", "wait until it is ready"
    if isinstance(error, redis.exceptions.NoPermissionError):
        return "does not let this user do PING or SELECT", "mend its rights, or the URL"
    if isinstance(error.__context__, OSError):
        reason = error.__context__.strerror
        return f"cannot be reached ({reason})" if reason else "cannot be reached", _START
    found = (finding for text, finding in _REFUSALS if text in str(error))
    return next(found, ("answers, but not as Redis does", _START))
