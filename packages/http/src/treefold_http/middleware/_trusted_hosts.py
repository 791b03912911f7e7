"""Refuse requests whose host is not one of the application's hosts (S-15, D-08).

Names are compared whole, in lower case and label by label, never by pattern. The host that a proxy
forwards is read by `ProxyHeaders`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treefold_http._headers.host_names import split_host
from treefold_http._runtime.unhandled import is_from_test_client
from treefold_http._wire.errors import BadRequest
from treefold_http._wire.request_guard import is_host

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_TEST = "testserver"
_KNOWN_LIMIT = 1024
"""Hosts below a wildcard that were found trusted, and need no second comparison."""


class TrustedHosts:
    """Refuse every other `Host` with 400, HTTP and WebSocket alike.

    Args:
        allowed: names such as `api.example.com`; `*.example.com` matches subdomains only. A name
            without a port matches every port. The names of this machine (`localhost`, `127.0.0.1`,
            `[::1]`) are allowed with `dev=True`; they are the only ones when none are given.

    Attributes:
        allowed: the argument.

    Raises:
        ValueError: for an invalid host name.
    """

    checks_hosts = True  # development then adds no check of its own

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        if isinstance(allowed, str):
            raise ValueError(f"TrustedHosts must have a list of names, got the text {allowed!r}")
        self.allowed = tuple(allowed)
        self._exact: set[str] = set()
        self._below: list[tuple[str, str]] = []
        for name in allowed or LOOPBACK:
            self._add_host(name)
        self._known: set[bytes] = set()

    def _add_host(self, name: str) -> None:
        below = name.startswith("*.")
        host = name.removeprefix("*.") if below else name
        if not host.isascii() or not is_host(host.encode()):
            raise ValueError(
                "A trusted host must be a name such as 'api.example.com' or"
                f" '*.example.com', got {name!r}"
            )
        host, port = split_host(host)
        if below:
            self._below.append((f".{host}", port))
        else:
            self._exact.add(f"{host}:{port}" if port else host)

    def allows(self, host: str) -> bool:
        """Return True if the value of a `Host` field, with or without a port, is allowed."""
        encoded = host.encode("latin-1", "replace")
        if encoded in self._known:
            return True
        if not host.isascii() or not is_host(encoded):
            return False
        name, port = split_host(host)
        if name.startswith(".") or ".." in name:  # an empty label
            return False
        is_below = any(name.endswith(end) and own in ("", port) for end, own in self._below)
        if is_below or name in self._exact or f"{name}:{port}" in self._exact:
            # clients can send any number of names below `*.example.com`
            if len(self._known) < _KNOWN_LIMIT:
                self._known.add(encoded)
            return True
        return False

    def _check_host(self, connection: Connection) -> None:
        host = connection.host
        if self.allows(host) or (connection.app.dev and split_host(host)[0] in LOOPBACK):
            return
        # the name alone is no proof: a client of a real server can send it
        if host == _TEST and is_from_test_client(connection.scope):
            return
        raise BadRequest("This host is not served here")

    def before(self, connection: Connection) -> None:
        """Refuse a request for any other host."""
        # a host that was allowed before costs one look-up in a set
        if connection.fields.get(b"host") not in self._known:
            self._check_host(connection)
