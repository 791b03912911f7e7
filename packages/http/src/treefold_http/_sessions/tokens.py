"""Tokens against cross-site requests, and the check of a request's origin.

A token is a random text and its signature over the session's id: a token of another session, or one
from a cookie, is invalid. Every token is a different text, so that a compressed page does not
reveal it (BREACH).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from treefold_http._sessions.signing import Signer

if TYPE_CHECKING:
    from treefold_http._connection import Connection

_PORTS = {"http": 80, "https": 443}


class CsrfTokens:
    """Makes and verifies tokens for sessions.

    Args:
        given: the secrets, the newest first.
        cookie: the name of the session's cookie.
    """

    __slots__ = ("_signer",)

    def __init__(self, given: Sequence[bytes], cookie: str) -> None:
        self._signer = Signer(given, ("csrf", cookie))

    def make(self, session_id: str) -> str:
        """Return a new token for a session."""
        salt = secrets.token_urlsafe(16)
        return f"{salt}.{self._signer.sign(_message(salt, session_id))}"

    def verify(self, session_id: str, token: str) -> bool:
        """Return True for a token of this session."""
        salt, _, signature = token.rpartition(".")
        return bool(salt) and self._signer.verify(_message(salt, session_id), signature)


def _message(salt: str, session_id: str) -> bytes:
    return f"{len(session_id)}:{session_id}{salt}".encode("utf-8", "replace")


def check_origins(origins: Sequence[str], name: str) -> frozenset[str]:
    """Return origins as a set.

    Raises:
        ValueError: for one that is not `scheme://host` or `scheme://host:port`.
    """
    for origin in [origins] if isinstance(origins, str) else origins:
        if isinstance(origins, str) or _parsed(origin) is None or origin != origin.lower():
            raise ValueError(
                f"{name} must be a list of origins such as 'https://app.example.com',"
                f" got {origin!r}"
            )
    return frozenset(origins)


def source_is_trusted(connection: Connection, trusted: frozenset[str]) -> bool | None:
    """Check that a request comes from this site, by Fetch Metadata, `Origin` or `Referer`.

    Args:
        trusted: other origins that may send requests, such as `https://app.example.com`.

    Returns:
        True for this site or a trusted origin, False for another one, None if the client sends none
        of these fields, such as one that is not a browser.
    """
    headers = connection.headers
    origins = headers.getlist("origin")
    if len(origins) == 1 and origins[0] in trusted:
        return True
    sites = headers.getlist("sec-fetch-site")
    if sites:
        return sites in (["same-origin"], ["none"])
    if origins:
        return len(origins) == 1 and _is_own(connection, origins[0])
    referers = headers.getlist("referer")
    if referers:
        origin = _origin_of(referers[0])
        return len(referers) == 1 and (origin in trusted or _is_own(connection, origin))
    return None


def _origin_of(address: str) -> str:
    return "/".join(address.split("/", 3)[:3])


def _is_own(connection: Connection, origin: str) -> bool:
    own = _parsed(f"{connection.scheme}://{connection.host}")
    return own is not None and _parsed(origin) == own


def _parsed(origin: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    if not parts.hostname or parts.username is not None:
        return None
    if parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, parts.hostname, port
