"""Origins of pages (RFC 6454), as browsers send them in `Origin`."""

from __future__ import annotations

from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def parse_origin(origin: str) -> tuple[str, str, int] | None:
    """Return the scheme, host and port of an origin; None for an invalid one, such as `null`."""
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
