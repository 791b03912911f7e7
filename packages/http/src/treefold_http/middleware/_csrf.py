"""CSRF: refuse requests that another site makes a browser send with the cookies of this one.

A browser names the origin of a request in Fetch Metadata, else in `Origin`, else in `Referer`. A
client that sends none of them needs the token of its session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_http._bodies.forms import URLENCODED
from treefold_http._responses.endpoints import CallNext
from treefold_http._session_keepers.origins import is_own_or_trusted_origin, validate_origins
from treefold_http._wire.errors import Forbidden
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._responses.response import Response

# safe methods (RFC 9110, 9.2.1)
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class CSRF:
    """Guard requests with cookies that change something: not GET, HEAD, OPTIONS or TRACE.

    A request without a cookie, such as one with a bearer token, passes, and so does one whose route
    takes another credential than the session (`one_of`) and which sends it. A WebSocket handshake
    is guarded by the setting `ws_allowed_origins`.

    Args:
        trusted_origins: other origins whose pages may send requests, such as
            `https://app.example.com`.
        header: the field that carries the token of `request.session.csrf_token()`.
        field: the form field that carries it, in urlencoded forms.
        cookies: guard only requests that carry one of these cookies; None guards those with any.

    Attributes:
        trusted: the other origins.
        cookies: the argument.
        safe_methods: those that change nothing and are not guarded.

    Raises:
        ValueError: for an origin that is not one.
    """

    safe_methods = _SAFE
    is_for_requests = True  # the origin of a socket is checked before any middleware

    def __init__(
        self,
        *,
        trusted_origins: Sequence[str] = (),
        header: str = "X-CSRF-Token",
        field: str = "csrf_token",
        cookies: Sequence[str] | None = None,
    ) -> None:
        self.trusted = validate_origins(trusted_origins, "CSRF trusted_origins")
        self._header = header
        self._field = field
        self.cookies = cookies

    def for_route(self, route: Route | None, entries: Sequence[Any]) -> Any:
        """Return the middleware for one route: none for safe methods, which need no check."""
        if route is None:
            return self
        return _NOTHING if route.method in _SAFE else _RouteGuard(self, entries)

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Check that this site sent the request, or that it carries a token."""
        if b"cookie" in request.fields and request.method not in _SAFE:
            await self.check_request(request)
        return await call_next(request)

    async def check_request(self, request: Request) -> None:
        """Refuse a request that another site made a browser send.

        Raises:
            Forbidden: unless the browser names a trusted origin, or the request has the token.
        """
        if self.cookies is not None and not any(n in request.cookies for n in self.cookies):
            return
        trusted = is_own_or_trusted_origin(request, self.trusted)
        # a browser that names another site is believed, whatever token the request has
        if trusted is False:
            raise Forbidden("A page of another site sent this request")
        if trusted is None and not await self._has_valid_token(request):
            message = f"This request needs the token of its session: send it as {self._header}"
            raise Forbidden(message)

    async def _has_valid_token(self, request: Request) -> bool:
        token = request.headers.get(self._header, "")
        # A multipart form may have files of any size, which the handler reads: it sends the token
        # in the field of the header.
        if not token and request.content_type == URLENCODED:
            token = (await request.form()).get(self._field, "")
        return bool(token) and await _matches_session(request, token)


class _RouteGuard:
    """The guard of one route, which lets requests pass that the session cannot decide."""

    websocket = None

    def __init__(self, guard: CSRF, entries: Sequence[Any]) -> None:
        self._guard = guard
        self._entries = entries
        self._choices: list[Any] | None = None

    async def http(self, request: Request, call_next: CallNext) -> Response:
        if b"cookie" in request.fields and not self._is_decided_without_session(request):
            await self._guard.check_request(request)
        return await call_next(request)

    def _is_decided_without_session(self, request: Request) -> bool:
        """Return True if a credential that no browser sends by itself comes with the request.

        A route that takes one or the session then serves the one alone, and refuses both.
        """
        if self._choices is None:
            contract = getattr(request.plan, "contract", None)
            functions = [*self._entries, *(contract.dependency_functions if contract else ())]
            can_choose = [each for each in functions if hasattr(each, "is_in_header")]
            is_mixed = any(each.reads_session for each in can_choose)
            self._choices = [] if is_mixed else [e for e in can_choose if e.is_choice]
        return any(each.is_in_header(request) for each in self._choices)


class _Nothing:
    """An entry without a side that runs."""

    websocket = None


_NOTHING = _Nothing()


async def _matches_session(request: Request, token: str) -> bool:
    if not hasattr(request, "session_keeper"):
        return False  # without Sessions only the header fields of the browser count
    session = await request.session.load()
    return session.has_csrf_token(token)
