"""JSON Web Tokens as a dependency: one algorithm, decided here and not by the token; `exp` needed.

The library (extra `jwt`) verifies tokens; this module refuses tokens that its defaults accept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, cast

from treefold_http._requests.connection import Connection
from treefold_http._requests.principal import Principal
from treefold_http._runtime.boot_report import import_extra
from treefold_http._runtime.settings import Settings
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.interpreter import format_caller_location
from treefold_http.auth._credential import Credential, Identify, Naming, find_id
from treefold_http.auth._credentials import TokenCredential

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
    identify: Identify[JSONObject] | None = None,
) -> Credential[JSONObject]:
    """Return a credential that requires a JSON Web Token and returns its claims.

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
        identify: takes the claims and returns their `Principal`; may be async. Without it the id is
            `sub`, the scopes are those of `scope` and `scp`, the roles those of `roles`.

    Raises:
        TreefoldError: without the `jwt` extra.
        ValueError: for an algorithm that is not one of these, or a key that does not fit it.
    """
    keys_of = _build_key_loader(key, algorithm)
    decode = TokenDecoder(audience=audience, issuer=issuer, leeway=leeway)

    async def find(connection: Connection, token: str) -> JSONObject | None:
        keys = keys_of(connection.app.settings)
        outcomes = (decode(token, key, algorithm) for key in keys)
        return next((claims for claims in outcomes if claims is not None), None)

    made = build_claims_credential(find, issuer, scheme, Naming(name, optional, identify))
    return made.made_at(format_caller_location(1))


class TokenDecoder:
    """Verifies tokens by the library; arguments as those of `jwt`.

    Raises:
        TreefoldError: without the `jwt` extra.
    """

    def __init__(self, *, audience: str | None, issuer: str | None, leeway: float) -> None:
        self.library = import_extra("jwt", 'jwt() needs pyjwt; run pip install "treefold[jwt]"')
        # the library verifies `exp` where it is there, and accepts a token without one, which never
        # ends
        required = ["exp", *(["iss"] if issuer is not None else ())]
        required += ["aud"] if audience is not None else []
        self._options: JSONObject = {
            "audience": audience,
            "issuer": issuer,
            "leeway": leeway,
            "options": {"require": required},
        }

    def __call__(self, token: str, key: Any, algorithm: str) -> JSONObject | None:
        """Return the claims of a token; None if it is not valid under this key."""
        try:
            # Never the algorithm of the header: a token with `none`, or one that is signed by HS256
            # with a public key as its secret, would be valid (RFC 8725, 3.1).
            return self.library.decode(token, key, algorithms=[algorithm], **self._options)
        except (self.library.PyJWTError, ValueError, TypeError, OverflowError):
            return None  # hostile claims raise more than the library's own errors


def build_claims_credential(
    find: Callable[[Connection, str], Awaitable[JSONObject | None]],
    issuer: str | None,
    scheme: str,
    naming: Naming,
) -> TokenCredential[JSONObject]:
    """Return a credential whose handler gets claims; `issuer` is the source of its principals."""
    # the only scheme of which OpenAPI knows a format
    definition = {"bearerFormat": "JWT"} if scheme.lower() == "bearer" else {}

    def build_principal(claims: JSONObject, token: str) -> Principal:
        id = find_id(claims.get("sub") or claims.get("client_id"), token)
        scopes = [*_read_words(claims.get("scope")), *_read_words(claims.get("scp"))]
        roles = _read_words(claims.get("roles"))
        return Principal(id, issuer or naming.name, scopes=scopes, roles=roles)

    return TokenCredential(find, scheme, naming, definition, build_principal)


def _read_words(claim: object) -> Sequence[str]:
    """The words of a claim: a text with blanks between them (RFC 8693, 4.2), or a list."""
    if isinstance(claim, str):
        return claim.split()
    words = cast("list[object]", claim) if isinstance(claim, list) else []
    return [word for word in words if isinstance(word, str)]


def _build_key_loader(
    key: str | Sequence[str] | Callable[[Settings], str | Sequence[str] | None], algorithm: str
) -> Callable[[Settings], Sequence[str]]:
    if not callable(key):
        keys = _require_valid_keys(key, algorithm)
        return lambda _: keys
    return lambda settings: _require_valid_keys(key(settings), algorithm)


def _require_valid_keys(key: str | Sequence[str] | None, algorithm: str) -> Sequence[str]:
    keys = [key] if isinstance(key, str) else list(key or ())
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
    return keys
