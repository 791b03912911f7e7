"""The site that a request comes from, by Fetch Metadata, `Origin` or `Referer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treefold_http._headers.origins import parse_origin

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection


def validate_origins(origins: Sequence[str], option_name: str) -> frozenset[str]:
    """Return origins as a set.

    Raises:
        ValueError: for one that is not `scheme://host` or `scheme://host:port`.
    """
    # a text is a sequence of texts, and "*" or an origin would be taken letter by letter
    for origin in [origins] if isinstance(origins, str) else origins:
        if isinstance(origins, str) or parse_origin(origin) is None or origin != origin.lower():
            raise ValueError(
                f"{option_name} must be a list of origins such as 'https://app.example.com',"
                f" got {origin!r}"
            )
    return frozenset(origins)


def is_own_or_trusted_origin(connection: Connection, trusted: frozenset[str]) -> bool | None:
    """Check that a request comes from this site, by Fetch Metadata, `Origin` or `Referer`.

    Args:
        trusted: other origins that may send requests, such as `https://app.example.com`.

    Returns:
        True for this site or a trusted origin, False for another one, None if the client sends none
        of these fields, such as one that is not a browser.
    """
    headers = connection.headers
    origins = headers.getlist("origin")
    # before Fetch Metadata, which calls a listed origin `cross-site` as well
    if len(origins) == 1 and origins[0] in trusted:
        return True
    if sites := headers.getlist("sec-fetch-site"):
        # Pages cannot set a field that begins with `Sec-`. `none` is an address that the user
        # typed; `same-site` is refused, since a subdomain may belong to another tenant.
        return sites in (["same-origin"], ["none"])
    if origins:
        return len(origins) == 1 and _is_own_origin(connection, origins[0])
    if referers := headers.getlist("referer"):
        # `https://a.example/path` without its path
        origin = "/".join(referers[0].split("/", 3)[:3])
        return len(referers) == 1 and (origin in trusted or _is_own_origin(connection, origin))
    return None


def _is_own_origin(connection: Connection, origin: str) -> bool:
    # both are parsed, so that `https://a.example:443` is `https://a.example`
    own = parse_origin(f"{connection.scheme}://{connection.host}")
    return own is not None and parse_origin(origin) == own
