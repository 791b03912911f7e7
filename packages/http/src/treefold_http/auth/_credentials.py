"""API keys and bearer tokens: credentials that a client sends in a header field.

Each one checks and documents itself: `Depends(bearer(find))` puts the security scheme and the 401
into the OpenAPI document. They serve requests and WebSocket handshakes alike.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from treefold_http._headers.header_fields import is_token
from treefold_http._requests.connection import Connection
from treefold_http._requests.principal import Principal, Verified
from treefold_http._wire.errors import Unauthorized
from treefold_http._wire.interpreter import format_caller_location
from treefold_http.auth._credential import (
    Credential,
    Identify,
    Naming,
    OwnCredential,
    call_async_or_threaded,
    hash_secret,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LONGEST = 8192
"""Characters of a token or a key; a longer one is refused unread.

Far more than a JSON Web Token with many claims has: a longer text would only cost a hash, a lookup
or the check of a signature.
"""
SHORTEST_KEY = 16
"""Fewest characters of an API key: 16 out of 64 signs are 96 bits, too many to try out."""


@overload
def api_key(
    keys: Mapping[str, str],
    *,
    header: str = "X-Api-Key",
    name: str = "apiKey",
    optional: bool = False,
    identify: Identify[str] | None = None,
) -> Credential[str]: ...
@overload
def api_key(
    keys: Callable[[str], Awaitable[T | None]],
    *,
    header: str = "X-Api-Key",
    name: str = "apiKey",
    optional: bool = False,
    identify: Identify[T] | None = None,
) -> Credential[T]: ...
@overload
def api_key(
    keys: Callable[[str], T | None],
    *,
    header: str = "X-Api-Key",
    name: str = "apiKey",
    optional: bool = False,
    identify: Identify[T] | None = None,
) -> Credential[T]: ...
def api_key(
    keys: Mapping[str, str] | Callable[[str], Any],
    *,
    header: str = "X-Api-Key",
    name: str = "apiKey",
    optional: bool = False,
    identify: Identify[Any] | None = None,
) -> Credential[Any]:
    """Return a credential that requires an API key.

    Args:
        keys: client to key, compared in constant time; the dependency then returns the client. Or
            a function, plain or async, that takes the key and returns the result of the dependency,
            None for an invalid key.
        header: the field that carries it.
        name: the name of the scheme in the OpenAPI document.
        optional: return None without a key; a wrong one is 401 all the same.
        identify: takes the result and returns its `Principal`; may be async. Without it the id is
            the result, if that is text or a number, or its attribute `id`.

    Raises:
        ValueError: for a key of less than 16 characters.
    """
    made = _ApiKey(keys, header, Naming(name, optional, identify))
    return made.made_at(format_caller_location(1))


class _ApiKey(OwnCredential[object]):
    """An API key in a field of its own."""

    challenge = "ApiKey"

    def __init__(
        self, keys: Mapping[str, str] | Callable[[str], Any], header: str, naming: Naming
    ) -> None:
        if isinstance(keys, Mapping):
            self._known = _check_and_hash_keys(cast("Mapping[str, str]", keys))
        self._find = None if isinstance(keys, Mapping) else keys
        self.field = header.lower()
        self.hint = f"Send an API key as {header}"
        super().__init__({"type": "apiKey", "in": "header", "name": header}, naming)

    def is_in_header(self, connection: Connection) -> bool:
        return bool(connection.headers.getlist(self.field))

    async def verify(self, connection: Connection) -> Verified:
        sent = connection.headers.getlist(self.field)
        # two keys: a proxy may have checked the one that is not read here
        if len(sent) != 1 or not 0 < len(sent[0]) <= LONGEST:
            raise self.build_missing_error()
        if self._find is None:
            found: object = _find_client_by_key(self._known, sent[0])
        else:
            found = await call_async_or_threaded(connection, self._find, sent[0])
        if found is None:
            headers = {"WWW-Authenticate": self.challenge}
            raise Unauthorized("This API key is not valid", headers=headers)
        return await self.identify(found, self.build_principal(found, sent[0]))


@overload
def bearer(
    verify: Callable[[str], Awaitable[T | None]],
    *,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
    identify: Identify[T] | None = None,
) -> Credential[T]: ...
@overload
def bearer(
    verify: Callable[[str], T | None],
    *,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
    identify: Identify[T] | None = None,
) -> Credential[T]: ...
def bearer(
    verify: Callable[[str], Any],
    *,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
    identify: Identify[Any] | None = None,
) -> Credential[Any]:
    """Return a credential that requires `Authorization: Bearer TOKEN`.

    Args:
        verify: a function, plain or async, that takes the token and returns the result of the
            dependency, None for an invalid token.
        scheme: the word before the token, such as `Token`, where clients send another one.
        name: the name of the scheme in the OpenAPI document.
        optional: return None without the field; a wrong token is 401 all the same.
        identify: as that of `api_key`.

    Raises:
        ValueError: for a scheme that is no token of HTTP (RFC 9110, 5.6.2).
    """

    async def find(connection: Connection, token: str) -> object:
        return await call_async_or_threaded(connection, verify, token)

    made = TokenCredential[object](find, scheme, Naming(name, optional, identify))
    return made.made_at(format_caller_location(1))


class TokenCredential(OwnCredential[T_co]):
    """A token in the field `Authorization`.

    Args:
        find: returns what a handler gets for a token; None for an invalid one.
        scheme: the word before the token.
        definition: further members of the scheme in the document.
        build_principal: makes the principal of that and of the token, without `identify`.

    Raises:
        ValueError: for a scheme that is no token of HTTP (RFC 9110, 5.6.2).
    """

    def __init__(
        self,
        find: Callable[[Connection, str], Awaitable[object]],
        scheme: str,
        naming: Naming,
        definition: Mapping[str, str] = {},
        build_principal: Callable[[Any, str], Principal] | None = None,
    ) -> None:
        if not is_token(scheme):
            raise ValueError(f"scheme must be one word such as 'Bearer' or 'Token', got {scheme!r}")
        self._find = find
        self._build_own_principal = build_principal
        self.scheme = self.challenge = scheme
        self.field = f"authorization {scheme.lower()}"
        self.hint = f"Send Authorization: {scheme} TOKEN"
        super().__init__({"type": "http", "scheme": scheme.lower(), **definition}, naming)

    def is_in_header(self, connection: Connection) -> bool:
        return "authorization" in connection.headers

    def has_own_scheme(self, connection: Connection) -> bool:
        """Return True if a field `Authorization` begins with the scheme of this credential."""
        fields = connection.headers.getlist("authorization")
        return any(field.partition(" ")[0].lower() == self.scheme.lower() for field in fields)

    async def verify(self, connection: Connection) -> Verified:
        if (token := read_authorization_token(connection, self.scheme)) is None:
            raise self.build_missing_error()
        found = await self._find(connection, token)
        if found is None:
            # without the reason, which would help an attacker
            headers = {"WWW-Authenticate": f'{self.scheme} error="invalid_token"'}
            raise Unauthorized("This token is not valid", headers=headers)
        return await self.identify(found, self.build_principal(found, token))

    def build_principal(self, value: object, secret: str) -> Principal:
        if self._build_own_principal is None:
            return super().build_principal(value, secret)
        return self._build_own_principal(value, secret)


def read_authorization_token(connection: Connection, scheme: str) -> str | None:
    """Return the one token of a request; None for anything else (RFC 6750, 2.1)."""
    fields = connection.headers.getlist("authorization")
    if len(fields) != 1:
        return None
    sent, _, token = fields[0].partition(" ")
    token = token.strip(" ")
    good = sent.lower() == scheme.lower() and 0 < len(token) <= LONGEST and " " not in token
    return token if good else None


def _check_and_hash_keys(keys: Mapping[str, str]) -> Sequence[tuple[str, bytes]]:
    for client, key in keys.items():
        if len(key) < SHORTEST_KEY:
            raise ValueError(
                f"The API key of {client!r} must have at least {SHORTEST_KEY} characters, got"
                f' {len(key)}; make one with: python -c "import secrets;'
                ' print(secrets.token_urlsafe(32))"'
            )
    # digests have one length; `compare_digest` would tell the length of a key by its time
    return [(client, hash_secret(key)) for client, key in keys.items()]


def _find_client_by_key(known: Sequence[tuple[str, bytes]], sent: str) -> str | None:
    digest, found = hash_secret(sent), None
    for client, expected in known:  # all of them: the time does not tell which one is near
        if hmac.compare_digest(digest, expected):
            found = client
    return found
