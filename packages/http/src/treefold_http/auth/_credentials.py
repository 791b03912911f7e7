"""Dependencies that take credentials from a request: API keys, bearer tokens, JSON Web Tokens.

Each one checks and documents itself: `Depends(bearer(find))` puts the security scheme and the 401
into the OpenAPI document. They serve requests and WebSocket handshakes alike.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from treefold_http._headers.header_fields import is_token
from treefold_http._injection.secured import MARK, read_security, secured
from treefold_http._requests.connection import Connection
from treefold_http._wire.errors import Unauthorized
from treefold_http._wire.interpreter import format_caller_location

T = TypeVar("T")

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
) -> Callable[..., Awaitable[str]]: ...
@overload
def api_key(
    keys: Callable[[str], Awaitable[T | None]],
    *,
    header: str = "X-Api-Key",
    name: str = "apiKey",
    optional: bool = False,
) -> Callable[..., Awaitable[T]]: ...
@overload
def api_key(
    keys: Callable[[str], T | None],
    *,
    header: str = "X-Api-Key",
    name: str = "apiKey",
    optional: bool = False,
) -> Callable[..., Awaitable[T]]: ...
def api_key(
    keys: Mapping[str, str] | Callable[[str], Any],
    *,
    header: str = "X-Api-Key",
    name: str = "apiKey",
    optional: bool = False,
) -> Callable[..., Awaitable[Any]]:
    """Return a dependency that requires an API key.

    Args:
        keys: client to key, compared in constant time; the dependency then returns the client. Or
            a function, plain or async, that takes the key and returns the result of the dependency,
            None for an invalid key.
        header: the field that carries it.
        name: the name of the scheme in the OpenAPI document.
        optional: return None without a key; a wrong one is 401 all the same.

    Raises:
        ValueError: for a key of less than 16 characters.
    """
    known = None
    if isinstance(keys, Mapping):
        known = _check_and_hash_keys(cast("Mapping[str, str]", keys))

    async def check_key(connection: Connection) -> Any:
        sent = connection.headers.getlist(header)
        if not sent and optional:
            return None
        # two keys: a proxy may have checked the one that is not read here
        if len(sent) != 1 or not 0 < len(sent[0]) <= LONGEST:
            raise Unauthorized(f"Send an API key as {header}", headers=_build_challenge("ApiKey"))
        if known is not None:
            found: Any = _find_client_by_key(known, sent[0])
        else:
            found = await call_async_or_threaded(connection, keys, sent[0])
        if found is None:
            raise Unauthorized("This API key is not valid", headers=_build_challenge("ApiKey"))
        return found

    scheme = {"type": "apiKey", "in": "header", "name": header}
    return attach_security_scheme(check_key, scheme, name, optional)


@overload
def bearer(
    verify: Callable[[str], Awaitable[T | None]],
    *,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
) -> Callable[..., Awaitable[T]]: ...
@overload
def bearer(
    verify: Callable[[str], T | None],
    *,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
) -> Callable[..., Awaitable[T]]: ...
def bearer(
    verify: Callable[[str], Any],
    *,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
) -> Callable[..., Awaitable[Any]]:
    """Return a dependency that requires `Authorization: Bearer TOKEN`.

    Args:
        verify: a function, plain or async, that takes the token and returns the result of the
            dependency, None for an invalid token.
        scheme: the word before the token, such as `Token`, where clients send another one.
        name: the name of the scheme in the OpenAPI document.
        optional: return None without the field; a wrong token is 401 all the same.

    Raises:
        ValueError: for a scheme that is no token of HTTP (RFC 9110, 5.6.2).
    """
    dependency = build_token_dependency(lambda _: verify, scheme, optional=optional)
    definition = {"type": "http", "scheme": scheme.lower()}
    return attach_security_scheme(dependency, definition, name, optional)


def build_token_dependency(
    verifier: Callable[[Connection], Callable[[str], Any]], scheme: str, *, optional: bool
) -> Callable[..., Awaitable[Any]]:
    """Return a dependency that verifies the token of a request.

    Args:
        verifier: takes the request and returns the function that verifies its token.
        scheme: the word before the token.
        optional: return None without the field.

    Raises:
        ValueError: for a scheme that is no token of HTTP (RFC 9110, 5.6.2).
    """
    if not is_token(scheme):
        raise ValueError(f"scheme must be one word such as 'Bearer' or 'Token', got {scheme!r}")

    async def check_token(connection: Connection) -> Any:
        if (token := read_authorization_token(connection, scheme)) is None:
            if optional and "authorization" not in connection.headers:
                return None
            message = f"Send Authorization: {scheme} TOKEN"
            raise Unauthorized(message, headers=_build_challenge(scheme))
        found = await call_async_or_threaded(connection, verifier(connection), token)
        if found is None:
            # Without the reason, which would help an attacker.
            headers = _build_challenge(scheme, "invalid_token")
            raise Unauthorized("This token is not valid", headers=headers)
        return found

    return check_token


def read_authorization_token(connection: Connection, scheme: str) -> str | None:
    """Return the one token of a request; None for anything else (RFC 6750, 2.1)."""
    fields = connection.headers.getlist("authorization")
    if len(fields) != 1:
        return None
    sent, _, token = fields[0].partition(" ")
    token = token.strip(" ")
    good = sent.lower() == scheme.lower() and 0 < len(token) <= LONGEST and " " not in token
    return token if good else None


def _build_challenge(scheme: str, error: str = "") -> Mapping[str, str]:
    return {"WWW-Authenticate": f'{scheme} error="{error}"' if error else scheme}


def _check_and_hash_keys(keys: Mapping[str, str]) -> Sequence[tuple[str, bytes]]:
    for client, key in keys.items():
        if len(key) < SHORTEST_KEY:
            raise ValueError(
                f"The API key of {client!r} must have at least {SHORTEST_KEY} characters, got"
                f' {len(key)}; make one with: python -c "import secrets;'
                ' print(secrets.token_urlsafe(32))"'
            )
    # digests have one length; `compare_digest` would tell the length of a key by its time
    return [(client, _hash_api_key(key)) for client, key in keys.items()]


def _find_client_by_key(known: Sequence[tuple[str, bytes]], sent: str) -> str | None:
    digest, found = _hash_api_key(sent), None
    for client, expected in known:  # all of them: the time does not tell which one is near
        if hmac.compare_digest(digest, expected):
            found = client
    return found


def _hash_api_key(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


async def call_async_or_threaded(connection: Connection, function: Any, value: Any) -> Any:
    """Call a function of the application; a plain one in a worker thread."""
    if inspect.iscoroutinefunction(function):
        return await function(value)
    return await connection.app.run_in_thread(function, value)


def attach_security_scheme(
    dependency: Callable[..., Awaitable[Any]], scheme: Mapping[str, Any], name: str, optional: bool
) -> Callable[..., Awaitable[Any]]:
    """Mark a dependency with its security scheme, as if the author of the line that called the
    caller had written `secured`.
    """
    secured(scheme, name=name, optional=optional)(dependency)
    place = format_caller_location(2)
    setattr(dependency, MARK, tuple(d._replace(place=place) for d in read_security(dependency)))
    return dependency
