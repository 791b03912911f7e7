"""`Credential`: a dependency that verifies one kind of credential and identifies the caller.

What all kinds have in common is here: the outcome is kept for the request, so that a credential
among the middleware and the same one of a handler verify once. `_credentials`, `_jwt` and `_login`
read credentials; `_one_of` and `_allow` are made of other credentials.
"""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeAlias, TypeVar, cast

from treefold_http._injection.secured import MARK, Security, read_security, secured
from treefold_http._requests.connection import Connection
from treefold_http._requests.principal import (
    Principal as Principal,
    Verified,
    get_verified,
    identify as identify,
    principal_key as principal_key,
)
from treefold_http._wire.errors import Unauthorized

if TYPE_CHECKING:
    from treefold_http._chains.socket_chain import WebSocketCallNext
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http._responses.response import Response
    from treefold_http._websockets.websocket import WebSocket

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Identify: TypeAlias = Callable[[T], Principal | Awaitable[Principal]]


class Credential(ABC, Generic[T_co]):
    """Verify the caller of a request or a handshake, or refuse it with 401.

    `user: User = Depends(credential)` in a handler; in a list of middleware it runs for everything
    below it.

    Attributes:
        name: that of its scheme in the OpenAPI document.
        hint: what to send, for the 401 of a request without it.
        challenge: the `WWW-Authenticate` of that answer.
        field: what it reads of a request; two that read the same cannot be told apart.
        is_optional: True if a request without it is served.
        reads_session: True if it reads a session, whatever else a request has.
        is_choice: True if it reads a session only where no other credential is sent.
        error_statuses: the statuses of its errors, for the document.
    """

    name: str = ""
    hint: str = "Log in first"
    challenge: str = "Session"
    field: str = ""
    is_optional: bool = False
    reads_session: bool = False
    is_choice: bool = False
    error_statuses: frozenset[int] = frozenset({401})

    async def __call__(self, connection: Connection) -> T_co:
        """Return what a handler gets.

        Raises:
            Unauthorized: for an invalid credential, or none where it is required.
        """
        verified = get_verified(connection)
        if (known := verified.get(self)) is None:
            known = verified[self] = await self.check(connection)
        return known.value

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Verify a request that this runs around as middleware."""
        await self(request)
        return await call_next(request)

    async def websocket(self, websocket: WebSocket, call_next: WebSocketCallNext) -> None:
        """Verify a handshake that this runs around as middleware."""
        await self(websocket)
        await call_next(websocket)

    async def check(self, connection: Connection) -> Verified:
        """Return the outcome for a connection, which is not kept; errors as `__call__`."""
        if self.is_replaced(connection):
            return await self._check_replacement(connection, connection.app.overrides[self])
        return await self.check_sent(connection)

    async def check_sent(self, connection: Connection) -> Verified:
        """Return the outcome for what the client sent; errors as `__call__`."""
        if await self.is_sent(connection):
            return await self.verify(connection)
        return self.accept_missing()

    def is_replaced(self, connection: Connection) -> bool:
        """Return True if `app.overrides` has the credential, in tests."""
        overrides = connection.app.overrides
        return bool(overrides) and self in overrides

    async def _check_replacement(self, connection: Connection, replacement: Any) -> Verified:
        if isinstance(replacement, Credential):
            return await replacement.check(connection)
        if not callable(replacement) or inspect.signature(replacement).parameters:
            raise TypeError(
                f"app.overrides of {self.name!r}, which another credential is made of, must be a"
                f" function without parameters or a credential, got {replacement!r}"
            )
        value: Any = replacement()
        if inspect.isawaitable(value):
            value = await value
        if value is None:
            return self.accept_missing()
        if isinstance(value, Principal):
            return Verified(self.name, value, value.with_source(self.name))
        return await self.identify_replacement(value)

    async def identify_replacement(self, value: object) -> Verified:
        """Return the outcome for what a replacement in a test has returned."""
        return Verified(self.name, value, None)

    async def is_sent(self, connection: Connection) -> bool:
        """Return True if the client sent such a credential, valid or not."""
        return self.is_in_header(connection)

    def is_in_header(self, connection: Connection) -> bool:
        """Return True if the client sent one in a field that no browser sends by itself."""
        del connection
        return False

    @abstractmethod
    async def verify(self, connection: Connection) -> Verified:
        """Verify the credential that a client sent.

        Raises:
            Unauthorized: if it is invalid.
        """

    def accept_missing(self) -> Verified:
        """Return the outcome of a request without the credential.

        Raises:
            Unauthorized: where it is required.
        """
        if not self.is_optional:
            raise self.build_missing_error()
        return Verified(self.name, None, None)

    def build_missing_error(self) -> Unauthorized:
        """Return the error of a request without the credential."""
        return Unauthorized(self.hint, headers={"WWW-Authenticate": self.challenge})


class Naming(NamedTuple):
    """What all functions that make credentials take: their arguments of these names."""

    name: str
    optional: bool
    identify: Identify[Any] | None


class OwnCredential(Credential[T_co]):
    """A credential with a scheme of its own in the document.

    Args:
        scheme: a Security Scheme Object.
        naming: its name, and how it identifies a caller.
    """

    def __init__(self, scheme: Mapping[str, str], naming: Naming) -> None:
        self.name, self.is_optional, self._identify = naming
        secured(scheme, name=self.name, optional=self.is_optional)(self)

    def made_at(self, place: str) -> Self:
        """Note the line of the project that made it, for messages about its scheme."""
        set_security(self, [each._replace(place=place) for each in read_security(self)])
        return self

    async def identify(self, value: object, default: Principal) -> Verified:
        """Return the outcome for what a handler gets.

        Raises:
            TypeError: if `identify` of the project returns no principal.
        """
        principal: Any = default
        if self._identify is not None:
            principal = self._identify(value)
            if inspect.isawaitable(principal):
                principal = await principal
        elif isinstance(value, Principal):
            principal = value
        if not isinstance(principal, Principal):
            message = f"identify of {self.name!r} must return a Principal, got {principal!r}"
            raise TypeError(message)
        return Verified(self.name, value, principal.with_source(default.source))

    async def identify_replacement(self, value: object) -> Verified:
        return await self.identify(value, self.build_principal(value, ""))

    def build_principal(self, value: object, secret: str) -> Principal:
        """Return the principal of what a handler gets, without `identify`."""
        return Principal(find_id(value, secret), self.name)


def set_security(target: object, demands: Sequence[Security]) -> None:
    """Mark a credential with its security requirements."""
    setattr(target, MARK, tuple(demands))


def find_id(value: object, secret: str) -> str | int:
    """Return an id for what a function of the project found for a key or a token.

    A text or a number is one, else the attribute `id` is. Without both, the hash of the secret
    tells the caller from all others.
    """
    for found in (value, getattr(value, "id", None)):
        if type(found) in (str, int):
            return cast("str | int", found)
    return hash_secret(secret).hex()[:32]


def hash_secret(secret: str) -> bytes:
    """Return the hash of a key or a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


async def call_async_or_threaded(connection: Connection, function: Any, value: Any) -> Any:
    """Call a function of the application; a plain one in a worker thread."""
    if inspect.iscoroutinefunction(function):
        return await function(value)
    return await connection.app.run_in_thread(function, value)
