"""`jwt_issuer`: tokens of an issuer whose keys change, such as an OpenID provider.

The keys are those of the issuer's discovery document, and of nothing that a token says. They are
fetched in a worker thread, by one task that all waiting requests share and none can cancel:

| keys that are known | a token names | the request |
|---|---|---|
| none | any | waits for a fetch; 503 without one, and no other fetch for `RETRY` seconds |
| fetched | one of them | is served; after `REFRESH` seconds a fetch begins, for later requests |
| fetched | another key | waits for a fetch if there was none for `INTERVAL` seconds, else 401 |
| older than `OLDEST` | any | 503: the issuer is away for too long |
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from socket import SHUT_RDWR, socket
from time import monotonic
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from treefold_http._requests.connection import Connection
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.errors import ServiceUnavailable
from treefold_http._wire.interpreter import format_caller_location
from treefold_http.auth._credential import Credential, Identify, Naming
from treefold_http.auth._jwt import TokenDecoder, build_claims_credential
from treefold_logging import get_logger

PublicAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
REFRESH, INTERVAL, RETRY, OLDEST = 600.0, 60.0, 5.0, 24 * 3600.0
"""Seconds; see the table above."""
TIMEOUT = 5.0
"""Seconds that one document may take."""
MAX_DOCUMENT = 256 * 1024
"""Bytes of one document."""
MAX_KEYS = 100
MAX_SAME_ID = 4
"""Keys of one `kid` that are tried."""
_RSA_BITS = 2048, 8192
"""Fewer are too weak; more only cost the time of a check."""
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Mapping[tuple[object, object], Sequence[str]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""By type and curve of a key; a symmetric one (`oct`) is in no set that the public can read."""


def jwt_issuer(
    issuer: str,
    *,
    audience: str,
    algorithms: Sequence[PublicAlgorithm] = ("RS256", "ES256", "EdDSA"),
    leeway: float = 30,
    scheme: str = "Bearer",
    name: str = "bearer",
    optional: bool = False,
    identify: Identify[JSONObject] | None = None,
) -> Credential[JSONObject]:
    """Return a credential that requires a JSON Web Token of an issuer and returns its claims.

    The keys are fetched from `ISSUER/.well-known/openid-configuration`, followed by no redirect.
    `exp`, `iss` and `aud` are required.

    Args:
        issuer: the required `iss`, an https URL; http is for an issuer on this machine.
        audience: the required value in `aud`: the name under which the issuer knows this API.
        algorithms: the accepted ones, of which a key and its token must have the same.
        leeway: seconds by which clocks may differ.
        scheme, name, optional, identify: as those of `jwt`.

    Raises:
        TreefoldError: without the `jwt` extra.
        ValueError: for a URL that is no issuer, no audience, or an algorithm with a shared secret.
    """
    _require_trusted_url(issuer)
    if "?" in issuer or "#" in issuer:
        raise ValueError(f"jwt_issuer issuer must be a URL without a query, got {issuer!r}")
    if not audience:
        raise ValueError("jwt_issuer audience must be a text, got an empty one")
    if not algorithms:
        raise ValueError("jwt_issuer algorithms must name one or more, got none")
    known = [each for every in _ALGORITHMS.values() for each in every]
    for each in algorithms:
        if each not in known:
            raise ValueError(f"jwt_issuer algorithms must be public ones, got {each!r}")
    decode = TokenDecoder(audience=audience, issuer=issuer, leeway=leeway)
    find = _IssuerKeys(issuer, algorithms, decode).find_claims
    made = build_claims_credential(find, issuer, scheme, Naming(name, optional, identify))
    return made.made_at(format_caller_location(1))


class _PublicKey(NamedTuple):
    """One key of an issuer, and the algorithms of the tokens that it verifies."""

    id: str | None
    key: Any
    algorithms: Sequence[str]


class _IssuerKeys:
    """The keys of an issuer, and the tokens that are signed with one of them."""

    def __init__(self, issuer: str, algorithms: Sequence[str], decode: TokenDecoder) -> None:
        self._issuer = issuer
        self._algorithms = algorithms
        self._decode = decode
        self._library = decode.library
        self._keys: Mapping[str | None, Sequence[_PublicKey]] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    async def find_claims(self, connection: Connection, token: str) -> JSONObject | None:
        """Return the claims of a token; None for an invalid one.

        Raises:
            ServiceUnavailable: if the issuer is away and no keys are known.
        """
        try:
            header = self._library.get_unverified_header(token)
        except (self._library.PyJWTError, ValueError, TypeError, RecursionError):
            return None
        algorithm = header.get("alg")
        if algorithm not in self._algorithms:
            return None
        keys = await self._find_keys(connection, header.get("kid"))
        fitting = [each.key for each in keys if algorithm in each.algorithms]
        outcomes = (self._decode(token, key, algorithm) for key in fitting[:MAX_SAME_ID])
        return next((claims for claims in outcomes if claims is not None), None)

    async def _find_keys(self, connection: Connection, kid: str | None) -> Sequence[_PublicKey]:
        """Return the keys of an id; errors and waiting as the table of this module says."""
        is_old = monotonic() - self._fetched_at > REFRESH
        if kid not in self._keys or is_old:
            interval = INTERVAL if self._keys else RETRY
            task = self._task
            if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
                task = None
                if monotonic() - self._tried_at >= interval:
                    self._tried_at = monotonic()
                    task = self._task = asyncio.create_task(self._fetch_keys(connection))
            if task is not None and kid not in self._keys:
                # a client that leaves cancels its request, and not the fetch of all others
                await asyncio.shield(task)
        if monotonic() - self._fetched_at > OLDEST:
            headers = {"Retry-After": f"{RETRY:.0f}"}
            raise ServiceUnavailable("Tokens cannot be verified now", headers=headers)
        return self._keys.get(kid, ())

    async def _fetch_keys(self, connection: Connection) -> None:
        try:
            found = await connection.app.run_in_thread(self._read_key_set)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            text = "keys of %s cannot be fetched, those that are known stay: %s"
            get_logger().warning(text, self._issuer, error)
            return
        self._keys, self._fetched_at = found, monotonic()

    def _read_key_set(self) -> Mapping[str | None, Sequence[_PublicKey]]:
        """Return the keys of the issuer by id; that of None is the only key.

        Raises:
            ValueError: for documents that are not those of this issuer, or without a usable key.
        """
        found = _fetch_document(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != self._issuer:
            raise ValueError(f"the issuer of its document is {found.get('issuer')!r}")
        address: Any = found.get("jwks_uri")
        _require_trusted_url(address)
        if address.startswith("http:") and self._issuer.startswith("https:"):
            raise ValueError(f"jwks_uri must be an https URL, got {address!r}")
        listed: Any = _fetch_document(address).get("keys")
        if not isinstance(listed, list) or len(cast("list[object]", listed)) > MAX_KEYS:
            raise ValueError(f"the key set must be a list of at most {MAX_KEYS} keys")
        keys: dict[str | None, list[_PublicKey]] = {}
        for each in cast("list[object]", listed):
            if (made := self._build_key(each)) is not None:
                keys.setdefault(made.id, []).append(made)
        if not keys:
            raise ValueError("the key set has no usable key")
        if len(keys) == 1 and None not in keys:  # a token may then leave the id out
            keys[None] = next(iter(keys.values()))
        return keys

    def _build_key(self, listed: object) -> _PublicKey | None:
        """Return a key that verifies signatures; None for any other, and for what is no key."""
        if not isinstance(listed, dict):
            return None
        given = cast("JSONObject", listed)
        curve = None if given.get("kty") == "RSA" else given.get("crv")
        try:
            usable = [
                each
                for each in _ALGORITHMS.get((given.get("kty"), curve), ())
                if each in self._algorithms and given.get("alg", each) == each
            ]
            is_for_others = given.get("use", "sig") != "sig" or "d" in given
            if not usable or is_for_others or "verify" not in given.get("key_ops", ["verify"]):
                return None
            key = self._library.PyJWK(given, algorithm=usable[0]).key
        # also of a list as the type of a key, and of a number in place of a list
        except (self._library.PyJWTError, ValueError, TypeError, KeyError, OverflowError):
            return None
        if curve is None and not _RSA_BITS[0] <= key.key_size <= _RSA_BITS[1]:
            return None
        kid = given.get("kid")
        return _PublicKey(kid if isinstance(kid, str) else None, key, usable)


def _require_trusted_url(url: object) -> None:
    """Refuse a URL whose answer can be replaced on the way.

    Raises:
        ValueError: the message names it.
    """
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not (parts.scheme == "https" or is_local) or not parts.hostname or "@" in parts.netloc:
        raise ValueError(
            f"An issuer and its jwks_uri must be https URLs, got {url!r}; http is for localhost"
        )


def _fetch_document(url: str) -> JSONObject:
    """Return the JSON object at a URL, within the limits of this module.

    Raises:
        OSError, http.client.HTTPException: if the server is away, or too slow.
        ValueError: for another answer, redirects included.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT)
    timer: threading.Timer | None = None
    try:
        connection.connect()
        # The timeout of a socket is that of one read: a server that sends a byte each second has to
        # be cut off.
        timer = threading.Timer(TIMEOUT, _cut_off, [connection.sock])
        timer.daemon = True
        timer.start()
        target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        connection.request("GET", target, headers={"Accept": "application/json"})
        with connection.getresponse() as response:
            if response.status != 200:
                raise ValueError(f"{url} answers with status {response.status}")
            body = response.read(MAX_DOCUMENT + 1)
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    if len(body) > MAX_DOCUMENT:
        raise ValueError(f"{url} has more than {MAX_DOCUMENT} bytes")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError(f"{url} is no JSON object")
    return cast("JSONObject", document)


def _cut_off(sock: socket) -> None:
    with suppress(OSError):
        sock.shutdown(SHUT_RDWR)
