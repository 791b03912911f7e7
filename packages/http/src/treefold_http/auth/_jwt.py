"""JSON Web Tokens as a dependency: one algorithm, decided here and not by the token; `exp` needed.

The library (extra `jwt`) verifies tokens; this module refuses tokens that its defaults accept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from treefold_http._requests.connection import Connection
from treefold_http._runtime.boot_report import import_extra
from treefold_http._runtime.settings import Settings
from treefold_http._wire.aliases import JSONObject
from treefold_http.auth._credentials import attach_security_scheme, build_token_dependency

Algorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
    "ES256", "ES384", "ES512", "EdDSA",
]  # fmt: skip
_SHARED_KEY_BYTES = {"HS256": 32, "HS384": 48, "HS512": 64}
_PUBLIC = ("RS", "PS", "ES", "Ed")


def jwt(
    key: str | Sequence[str] | Callable[[Settings], str | Sequence[str] | None],
    *,
    algorithm: Algorithm,
    audience: str | None = None,
    issuer: str | None = None,
    leeway: float = 0,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
) -> Callable[..., Awaitable[JSONObject]]:
    """Return a dependency that requires a JSON Web Token and returns its claims.

    Args:
        key: the shared secret, or the public key as PEM; several while keys rotate. Or a function
            that takes the settings of the application and returns them.
        algorithm: the only accepted one, independent of the header of a token.
        audience: required value in `aud`; without it a token that has an `aud` is refused.
        issuer: required value of `iss`.
        leeway: seconds by which clocks may differ.
        scheme: the word before the token, such as `Token`, where clients send another one.
        name: the name of the scheme in the OpenAPI document.
        optional: return None without the field; a wrong token is 401 all the same.

    Raises:
        TreefoldError: without the `jwt` extra.
        ValueError: for an algorithm that is not one of these, or a key that does not fit it.
    """
    library = import_extra("jwt", 'jwt() needs pyjwt; run pip install "treefold[jwt]"')
    keys_of = _build_key_loader(key, algorithm)
    # the library verifies `exp` where it is there, and accepts a token without one, which never
    # ends
    required = ["exp", *(["iss"] if issuer is not None else ())]
    required += ["aud"] if audience is not None else []

    def make_verifier(connection: Connection) -> Callable[[str], Awaitable[JSONObject | None]]:
        keys = keys_of(connection.app.settings)

        async def decode_claims(token: str) -> JSONObject | None:
            for one in keys:
                try:
                    return library.decode(
                        token,
                        one,
                        # Never that of the header: a token with `none`, or one that is signed by
                        # HS256 with a public key as its secret, would be valid (RFC 8725, 3.1).
                        algorithms=[algorithm],
                        audience=audience,
                        issuer=issuer,
                        leeway=leeway,
                        options={"require": required},
                    )
                except (library.PyJWTError, ValueError, TypeError, OverflowError):
                    continue  # hostile claims raise more than the library's own errors
            return None

        return decode_claims

    documented = {"type": "http", "scheme": scheme.lower()}
    if documented["scheme"] == "bearer":  # the only scheme of which OpenAPI knows a format
        documented["bearerFormat"] = "JWT"
    dependency = build_token_dependency(make_verifier, scheme, optional=optional)
    return attach_security_scheme(dependency, documented, name, optional)


def _build_key_loader(
    key: str | Sequence[str] | Callable[[Settings], str | Sequence[str] | None], algorithm: str
) -> Callable[[Settings], Sequence[str]]:
    if not callable(key):
        keys = _require_valid_keys(key, algorithm)
        return lambda _: keys
    return lambda settings: _require_valid_keys(key(settings), algorithm)


def _require_valid_keys(key: str | Sequence[str] | None, algorithm: str) -> Sequence[str]:
    keys = [key] if isinstance(key, str) else list(key or ())
    _check_keys(keys, algorithm)
    return keys


def _check_keys(keys: Sequence[str], algorithm: str) -> None:
    if algorithm not in _SHARED_KEY_BYTES and not algorithm.startswith(_PUBLIC):
        raise ValueError(f"jwt algorithm must be one such as 'HS256' or 'RS256', got {algorithm!r}")
    if not keys:
        raise ValueError("jwt key must be a key, or a list of at least one")
    for key in keys:
        is_pem = "-----BEGIN" in key
        if algorithm in _SHARED_KEY_BYTES:
            # a key has the size of the hash at least (RFC 7518, 3.2)
            least = _SHARED_KEY_BYTES[algorithm]
            # a public key is no secret: clients that have it could sign tokens
            if is_pem:
                raise ValueError(f"jwt for {algorithm!r} needs a shared secret, got a PEM key")
            if len(key.encode()) < least:
                raise ValueError(
                    f"jwt key for {algorithm!r} must have at least {least} bytes, got"
                    f" {len(key.encode())}"
                )
        elif not is_pem or "PRIVATE" in key:
            raise ValueError(f"jwt for {algorithm!r} needs the public key as PEM")
