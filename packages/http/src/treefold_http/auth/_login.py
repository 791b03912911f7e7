"""Login and logout of users of sessions, and the dependency that requires a user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from treefold_http._requests.connection import Connection
from treefold_http._requests.principal import Principal, Verified
from treefold_http._wire.interpreter import format_caller_location
from treefold_http.auth._credential import (
    Credential,
    Identify,
    Naming,
    OwnCredential,
    call_async_or_threaded,
)

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._sessions.records import UserId

T = TypeVar("T")


def login(request: Request, user: UserId) -> None:
    """Make the session of a request that of a user, under a new id.

    Call it once the credentials are verified. Values that the session has stay, unless they are of
    another user.

    Args:
        user: the key of the user, text or a number; `request.session.user` returns it.

    Raises:
        Forbidden: if a page of another site sent the request: it could log a visitor in as someone
            else.
        RuntimeError: without the middleware `Sessions`.
    """
    if type(cast("object", user)) not in (str, int):
        raise TypeError(f"The id of a user must be text or a number, got {user!r}; use its key")
    session = request.session
    # before anything changes: a refused login leaves the session of the visitor as it is
    request.session_keeper.require_trusted_login_origin(request)
    session.begin_for(user)
    request.session_keeper.warn_of_dropped_login_cookie(request)


def logout(request: Request) -> None:
    """End the session of a request: in the store, and in the client.

    Raises:
        RuntimeError: without the middleware `Sessions`.
    """
    request.session.end()


@overload
def current_user(
    load: Callable[[Any], Awaitable[T | None]],
    *,
    optional: Literal[False] = False,
    name: str = "session",
    cookie: str = "__Host-session",
    identify: Identify[T] | None = None,
) -> Credential[T]: ...
@overload
def current_user(
    load: Callable[[Any], Awaitable[T | None]],
    *,
    optional: Literal[True],
    name: str = "session",
    cookie: str = "__Host-session",
    identify: Identify[T] | None = None,
) -> Credential[T | None]: ...
@overload
def current_user(
    load: Callable[[Any], T | None],
    *,
    optional: bool = False,
    name: str = "session",
    cookie: str = "__Host-session",
    identify: Identify[T] | None = None,
) -> Credential[T]: ...
def current_user(
    load: Callable[[Any], Any],
    *,
    optional: bool = False,
    name: str = "session",
    cookie: str = "__Host-session",
    identify: Identify[Any] | None = None,
) -> Credential[Any]:
    """Return a credential that requires a logged-in user.

    Args:
        load: a function, plain or async, that takes the argument of `login` and returns the user;
            None for a deleted user, which ends the session.
        optional: return None without a user, instead of 401.
        name: the name of the scheme in the OpenAPI document.
        cookie: the cookie that the document names.
        identify: takes the user and returns its `Principal`; may be async. Without it the id is the
            argument of `login`.
    """
    scheme = {"type": "apiKey", "in": "cookie", "name": cookie}
    made = SessionCredential(load, scheme, Naming(name, optional, identify))
    return made.made_at(format_caller_location(1))


class SessionCredential(OwnCredential[object]):
    """The login of a session. Without one, a request with the cookie has sent no credential."""

    field = "session"
    reads_session = True

    def __init__(
        self, load: Callable[[Any], Any], scheme: Mapping[str, str], naming: Naming
    ) -> None:
        self._load = load
        super().__init__(scheme, naming)

    async def is_sent(self, connection: Connection) -> bool:
        return (await connection.session.load()).user is not None

    async def verify(self, connection: Connection) -> Verified:
        session = connection.session
        if (id := session.user) is None:
            raise self.build_missing_error()
        user = await call_async_or_threaded(connection, self._load, id)
        if user is not None:
            return await self.identify(user, Principal(id, self.name))
        # a socket cannot set a cookie; the next request of HTTP ends the session
        if not session.is_read_only:
            session.end()
        return self.accept_missing()
