"""Databases and Redis: what goes over a network, and who may log in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from treefold_http._deploy.deployment import Deployment
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.reach import is_loopback
from treefold_http.auth._common_passwords import is_common

KINDS = make_kinds(
    """
    severe database-plain: a database is reached over a network without TLS;
      an attacker reads and changes what goes between the machines
    severe database-password: the password of a database can be guessed;
      an attacker tries it first
    severe database-tests: tests use the database that serves;
      an attacker needs to do nothing: the next run of the tests changes or empties it
    warning redis-plain: Redis is reached over a network without TLS;
      an attacker reads and changes sessions, limits and kept answers between the machines
    warning redis-open: a Redis on a network has no password;
      an attacker connects from any machine of the network, and writes a session of any user
    warning redis-unreachable: a Redis of the settings does not answer, or refuses the login;
      an attacker gains nothing by it; but limits that let requests pass without Redis count nobody
    """
)
PLAIN, PASSWORD, TESTS, REDIS_PLAIN, REDIS_OPEN, UNREACHABLE = KINDS

_POSTGRES = ("postgres", "postgresql")
# `allow` and `prefer` go on without TLS where the server refuses it, and an attacker between the
# two can make it seem so
_WITHOUT_TLS = ("disable", "allow", "prefer")


def check_databases(deployment: Deployment) -> Iterator[Finding]:
    """Find connections that others can read, and logins that others can guess."""
    settings, sources = deployment.settings, deployment.sources
    for alias, url in settings.databases.items():
        parts = _split_url(url)
        if parts is None or parts.scheme not in _POSTGRES:
            continue
        file = sources.find_setting_file("databases", alias)
        mode = dict(parse_qsl(parts.query)).get("sslmode", "")
        if mode in _WITHOUT_TLS and _is_remote(parts):
            text = f"database {alias!r} at {parts.hostname} has sslmode={mode}"
            yield PLAIN.make_finding(file, text, f'{alias} = "...?sslmode=verify-full"')
        password = unquote(parts.password or "")
        names = {unquote(parts.username or "").lower(), (parts.path or "/")[1:].lower()}
        if password and (password.lower() in names or is_common(password)):
            text = f"the password of database {alias!r} is a common one, or its name"
            write = "ALTER ROLE ... PASSWORD '...'  # a long, random one"
            yield PASSWORD.make_finding(file, text, write)
    yield from _check_test_databases(deployment)
    urls = {("redis_url", ""): settings.redis_url or ""}
    urls |= {("caches", alias): url for alias, url in settings.caches.items()}
    yield from _check_redis(deployment, urls)


def _check_test_databases(deployment: Deployment) -> Iterator[Finding]:
    settings = deployment.settings
    serving = {_build_database_identity(url): alias for alias, url in settings.databases.items()}
    for alias, url in settings.test_databases.items():
        if (same := serving.get(_build_database_identity(url))) is not None:
            text = f"tests use {alias!r} of test.databases, which is the database {same!r}"
            file = deployment.sources.find_setting_file("test_databases", alias)
            write = "[test.databases]  # leave it out: tests make their own"
            yield TESTS.make_finding(file, text, write)


def _check_redis(deployment: Deployment, urls: Mapping[tuple[str, str], str]) -> Iterator[Finding]:
    for (setting, alias), url in urls.items():
        parts = _split_url(url)
        if parts is None or parts.scheme not in ("redis", "rediss") or not _is_remote(parts):
            continue
        file = deployment.sources.find_setting_file(setting, alias or None)
        shown = f"{setting}.{alias}".rstrip(".")
        if parts.scheme == "redis":
            text = f"{shown} is at {parts.hostname}, over redis://"
            yield REDIS_PLAIN.make_finding(file, text, f'{shown} = "rediss://..."')
        if not parts.password:
            text = f"{shown} is at {parts.hostname}, without a password"
            write = f'{shown} = "rediss://:password@{parts.hostname}"'
            yield REDIS_OPEN.make_finding(file, text, write)


def _split_url(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _is_remote(parts: SplitResult) -> bool:
    return bool(parts.hostname) and not is_loopback(parts.hostname or "")


def _build_database_identity(url: str) -> tuple[str, str, str]:
    """Return the parts of a URL that name a database; the user is none of them."""
    if (parts := _split_url(url)) is None:
        return "", "", url
    scheme = "postgresql" if parts.scheme in _POSTGRES else parts.scheme
    return scheme, f"{parts.hostname}:{parts.port or 5432}", parts.path
