"""Which names a development server answers to: those of this machine and this network (S-117).

A page of somebody else can have a name of its own lead to this machine (DNS rebinding), and read
what a development server shows. Production names its hosts with `TrustedHosts`; so may a project
that is developed under a public name, and then this stands back.
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
    """The outermost middleware with `dev=True`, where the project has no `TrustedHosts`."""

    def before(self, request: Request) -> None:
        """Let a request pass that is for a local name or an address."""
        _check(request.host)

    async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
        """Let a socket pass that is for a local name or an address."""
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
        return True  # localhost, or a machine of this network: no public name has one label
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.endswith(_LOCAL_NAMES)
    return True
