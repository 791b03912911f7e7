"""Login and logout of users of sessions, and the dependency that requires a user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from treefold_http._requests.connection import Connection
from treefold_http._wire.errors import Unauthorized
from treefold_http.auth._credentials import attach_security_scheme, call_async_or_threaded

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
) -> Callable[..., Awaitable[T]]: ...
@overload
def current_user(
    load: Callable[[Any], Awaitable[T | None]],
    *,
    optional: Literal[True],
    name: str = "session",
    cookie: str = "__Host-session",
) -> Callable[..., Awaitable[T | None]]: ...
@overload
def current_user(
    load: Callable[[Any], T | None],
    *,
    optional: bool = False,
    name: str = "session",
    cookie: str = "__Host-session",
) -> Callable[..., Awaitable[T]]: ...
def current_user(
    load: Callable[[Any], Any],
    *,
    optional: bool = False,
    name: str = "session",
    cookie: str = "__Host-session",
) -> Callable[..., Awaitable[Any]]:
    """Return a dependency that requires a logged-in user.

    Args:
        load: a function, plain or async, that takes the argument of `login` and returns the user;
            None for a deleted user, which ends the session.
        optional: return None without a user, instead of 401.
        name: the name of the scheme in the OpenAPI document.
        cookie: the cookie that the document names.
    """

    async def find_user(connection: Connection) -> Any:
        session = await connection.session.load()
        id = session.user
        user = None if id is None else await call_async_or_threaded(connection, load, id)
        # a socket cannot set a cookie; the next request of HTTP ends the session
        if user is None and id is not None and not session.is_read_only:
            session.end()
        if user is None and not optional:
            raise Unauthorized("Log in first", headers={"WWW-Authenticate": "Session"})
        return user

    scheme = {"type": "apiKey", "in": "cookie", "name": cookie}
    return attach_security_scheme(find_user, scheme, name, optional)
