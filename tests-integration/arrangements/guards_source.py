"""The source of `Services/guards.py`: the guards that authors write, in each of their forms."""

from __future__ import annotations

from arrangements.arrangement import Arrangement, Guard, Rule
from arrangements.clients import HOST, NETWORK, OUTSIDE

_RULES = {
    Rule.GATE: 'connection.headers.get("x-gate") == "open"',
    Rule.PEER: f"connection.client.host != {OUTSIDE!r}",
}

_GUARDS = '''
"""The gate of the project."""
from treefold import Forbidden, Request, WebSocket


def require_gate(connection):
    if not ({rule}):
        raise Forbidden("The gate is shut")


async def check_gate(request: Request) -> None:
    require_gate(request)


async def check_socket_gate(websocket: WebSocket) -> None:
    require_gate(websocket)


async def gate(request, call_next):
    require_gate(request)
    return await call_next(request)


class GateBefore:
    def before(self, request):
        require_gate(request)


class GateHttp:
    async def http(self, request, call_next):
        require_gate(request)
        return await call_next(request)


class GateSocket:
    async def websocket(self, websocket, call_next):
        require_gate(websocket)
        await call_next(websocket)


class GateBoth(GateHttp, GateSocket):
    pass
'''

_EXPRESSIONS = {
    Guard.ALLOWLIST: f"IPAllowlist([{NETWORK!r}])",
    Guard.HOSTS: f"TrustedHosts([{HOST!r}])",
    Guard.CSRF: "CSRF()",
    Guard.FUNCTION: "gate",
    Guard.BEFORE: "GateBefore()",
    Guard.HTTP: "GateHttp()",
    Guard.WEBSOCKET: "GateSocket()",
    Guard.BOTH: "GateBoth()",
}


def write_guards(arrangement: Arrangement) -> str:
    """Return the module of the author's guards."""
    return _GUARDS.format(rule=_RULES[arrangement.rule])


def guard_expression(arrangement: Arrangement) -> str:
    """Return the guard as it stands in a list of middleware."""
    return _EXPRESSIONS[arrangement.guard]
