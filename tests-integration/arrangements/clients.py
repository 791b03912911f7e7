"""Who asks: the clients of an arrangement, and what each of them sends.

`mallory` is the sharpest of them: she has all that ann has, her key included, except for the one
thing that the guard of the arrangement looks at.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import jwt

from arrangements.arrangement import (
    OWN_GUARDS,
    UNVERIFIED,
    Arrangement,
    Credential,
    Guard,
    Rule,
)

SECRET = "the secret of all arrangements, which has 32 bytes"
HOST = "localhost"
FOREIGN_HOST = "elsewhere.example"
NETWORK = "127.0.0.0/27"
OUTSIDE = "127.0.0.66"
LANGUAGES = {"ann": "en", "bob": "de", "rex": "fr", "stranger": "xx"}
Fields = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client.

    Attributes:
        name: in reports.
        caller: whose credential it sends; None for none, `stranger` for one that is not valid.
        has_gate: it sends the field that guards of the author look at.
        takes_gzip: it accepts compressed responses.
        forwarded: the address that it claims to be forwarded for.
        site: the value of `Sec-Fetch-Site`.
    """

    name: str
    caller: str | None
    address: str
    host: str = HOST
    has_gate: bool = True
    site: str = "same-origin"
    takes_gzip: bool = False
    forwarded: str | None = None

    @property
    def tag(self) -> str | None:
        """The value of `X-Tag`."""
        return None if self.caller is None else f"tag-of-{self.caller}"


ANN = Client(name="ann", caller="ann", address="127.0.0.11")
BOB = Client(name="bob", caller="bob", address="127.0.0.12", takes_gzip=True)
ANONYMOUS = Client(name="anonymous", caller=None, address="127.0.0.13")
STRANGER = Client(name="wrong key", caller="stranger", address="127.0.0.14")
REX = Client(name="rex, later revoked", caller="rex", address="127.0.0.15")
DORA = Client(name="dora, later logged out", caller="dora", address="127.0.0.16")
PEOPLE = ("ann", "bob", "rex", "dora")
"""Callers whose credentials are valid, until they are revoked."""


def clients_of(arrangement: Arrangement) -> list[Client]:
    """Return the clients that make sense in an arrangement."""
    clients = [ANN, BOB, ANONYMOUS, STRANGER]
    if arrangement.credential not in UNVERIFIED:
        clients.append(REX)
    if arrangement.credential is Credential.SESSION:
        clients.append(DORA)
    if arrangement.guard is not Guard.NONE:
        clients.append(_refused_client(arrangement))
    return clients


def is_refused_client(client: Client) -> bool:
    """Return True for the client that guards refuse."""
    return client.name == "mallory"


def _refused_client(arrangement: Arrangement) -> Client:
    guard, name = arrangement.guard, "mallory"
    is_own = guard in OWN_GUARDS or guard is Guard.DEPENDENCY
    if guard is Guard.ALLOWLIST or (is_own and arrangement.rule is Rule.PEER):
        return Client(name=name, caller="ann", address=OUTSIDE, forwarded=ANN.address)
    if guard is Guard.HOSTS:
        return Client(name=name, caller="ann", address=ANN.address, host=FOREIGN_HOST)
    if guard is Guard.CSRF:
        return Client(name=name, caller="ann", address=ANN.address, site="cross-site")
    return Client(name=name, caller="ann", address=ANN.address, has_gate=False)


def key_of(caller: str) -> str:
    """Return the key of a caller."""
    return f"{caller}-key-0123456789abcdef"


def fields_of(arrangement: Arrangement, client: Client, jar: Mapping[str, str]) -> Fields:
    """Return the header fields of a client's requests, `Host` left out.

    Args:
        jar: the cookies that it has been given.
    """
    fields = [("Sec-Fetch-Site", client.site)]
    if client.has_gate:
        fields.append(("X-Gate", "open"))
    if client.takes_gzip:
        fields.append(("Accept-Encoding", "gzip"))
    if client.forwarded is not None:
        fields.append(("X-Forwarded-For", client.forwarded))
    if client.tag is not None:
        fields.append(("X-Tag", client.tag))
    if client.caller is not None:
        fields += [("X-Account", client.caller), *_credential_fields(arrangement, client.caller)]
    cookies = dict(jar)
    if arrangement.guard is Guard.CSRF:
        cookies["seen"] = "1"
    if arrangement.credential is Credential.COOKIE_KEY and client.caller is not None:
        cookies["api_key"] = key_of(client.caller)
    if cookies:
        fields.append(("Cookie", "; ".join(f"{name}={value}" for name, value in cookies.items())))
    return fields


def query_of(arrangement: Arrangement, client: Client, pairs: Fields) -> str:
    """Return the query of a request, with the credential where it is sent there."""
    sent = list(pairs)
    if arrangement.credential is Credential.QUERY_KEY and client.caller is not None:
        sent.append(("api_key", key_of(client.caller)))
    return urlencode(sent)


def _credential_fields(arrangement: Arrangement, caller: str) -> Fields:
    match arrangement.credential:
        case Credential.BEARER:
            return [("Authorization", f"Bearer {key_of(caller)}")]
        case Credential.JWT:
            return [("Authorization", f"Bearer {_sign_token(caller)}")]
        case Credential.BASIC:
            pair = base64.b64encode(f"{caller}:{key_of(caller)}".encode()).decode()
            return [("Authorization", f"Basic {pair}")]
        case Credential.HEADER_KEY:
            return [("X-Api-Key", key_of(caller))]
        case Credential.LANGUAGE:
            return [("Accept-Language", LANGUAGES[caller]), *_tenant_field(caller)]
        case _:
            return _tenant_field(caller)


def _tenant_field(caller: str) -> Fields:
    return [("X-Tenant", tenant_of(caller))]


def tenant_of(caller: str) -> str:
    """Return the value of `X-Tenant` of a caller."""
    return f"tenant-of-{caller}"


def _sign_token(caller: str) -> str:
    secret = SECRET if caller in PEOPLE else SECRET[::-1]
    day = int(time.time()) // 86400 + 2  # one token for all requests of a client
    return jwt.encode({"sub": caller, "exp": day * 86400}, secret, "HS256")
