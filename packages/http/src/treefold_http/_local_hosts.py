"""The host names that a development server accepts: this machine and this network (S-117).

A foreign web page can resolve its own host name to this machine (DNS rebinding) and read the
responses of a development server. Production lists its hosts with `TrustedHosts`; so may a project
that is developed under a public name, and then this middleware is not used.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from treefold_http._errors import BadRequest

if TYPE_CHECKING:
    from treefold_http._request import Request
    from treefold_http._websocket import WebSocket

_LOCAL_NAMES = (".localhost", ".local")


class LocalHosts:
    """The outermost middleware with `dev=True`, if the project has no `TrustedHosts`."""

    def before(self, request: Request) -> None:
        """Refuse a request whose host is neither a local name nor an address."""
        _check(request.host)

    async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
        """Refuse a socket whose host is neither a local name nor an address."""
        _check(websocket.host)
        await call_next(websocket)


def _check(host: str) -> None:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not _is_local(name.lower().removesuffix(".")):
        raise BadRequest(
            f"In development only local names and addresses are answered, not {name!r};"
            " list it in TrustedHosts in Middleware/"
        )


def _is_local(name: str) -> bool:
    if "." not in name and ":" not in name:
        return True  # localhost or a machine of this network: public names have two or more labels
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.endswith(_LOCAL_NAMES)
    return True
