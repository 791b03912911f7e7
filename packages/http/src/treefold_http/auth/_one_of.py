"""`one_of`: several credentials for one route, of which exactly one decides.

| sent | answer |
|---|---|
| none | 401, or None with `optional` |
| one, valid | the result of that credential |
| one or more, one of them invalid | 401, though another is valid |
| two or more, all valid | 400: which of them is meant is not guessed |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar, overload

from treefold_http._injection.secured import read_security
from treefold_http._requests.connection import Connection
from treefold_http._requests.principal import Verified, get_verified
from treefold_http._wire.errors import BadRequest
from treefold_http.auth._credential import Credential, set_security
from treefold_http.auth._credentials import TokenCredential

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@overload
def one_of(
    a: Credential[A], b: Credential[B], /, *, optional: Literal[False] = False
) -> Credential[A | B]: ...
@overload
def one_of(
    a: Credential[A], b: Credential[B], c: Credential[C], /, *, optional: Literal[False] = False
) -> Credential[A | B | C]: ...
@overload
def one_of(
    a: Credential[A], b: Credential[B], /, *, optional: Literal[True]
) -> Credential[A | B | None]: ...
@overload
def one_of(
    a: Credential[A], b: Credential[B], c: Credential[C], /, *, optional: Literal[True]
) -> Credential[A | B | C | None]: ...
@overload
def one_of(*members: Credential[A], optional: bool = False) -> Credential[A | None]: ...
def one_of(*members: Credential[object], optional: bool = False) -> Credential[object]:
    """Return a credential that takes one of several: `one_of(signed_in, partner, app_token)`.

    Exactly one decides. Two that are valid are 400; an invalid one is 401, though another is valid.
    `CSRF` guards the requests that the session decides, and no others. The principal of a request
    names the one that decided in `source`.

    Args:
        members: two credentials or more, each of another kind or with another field.
        optional: return None where none is sent, instead of 401.

    Raises:
        ValueError: for fewer than two, an optional one, or two that cannot be told apart.
    """
    if len(members) < 2:
        raise ValueError(f"one_of must have two credentials or more, got {len(members)}")
    return _OneOf(members, optional=optional)


class _OneOf(Credential[object]):
    """The one of several credentials that a client sent decides."""

    def __init__(self, members: Sequence[Credential[object]], *, optional: bool) -> None:
        self._members = members
        self.is_optional = optional
        self.is_choice = any(each.reads_session for each in members)
        self.error_statuses = frozenset({400}).union(*(each.error_statuses for each in members))
        self.name = "-or-".join(each.name for each in members)
        self.hint = "; or ".join(dict.fromkeys(each.hint for each in members))
        self.challenge = ", ".join(dict.fromkeys(each.challenge for each in members))
        _require_distinct_members(members)
        demands = [demand for each in members for demand in read_security(each)]
        own = {"any_of": self.name, "optional": optional, "is_checked": True}
        set_security(self, [each._replace(**own) for each in demands])

    def is_in_header(self, connection: Connection) -> bool:
        return any(each.is_in_header(connection) for each in self._members)

    async def is_sent(self, connection: Connection) -> bool:
        return bool(await self._find_sent_members(connection))

    async def verify(self, connection: Connection) -> Verified:
        sent = await self._find_sent_members(connection)
        # all of them, so that an invalid one is 401 whatever comes with it
        outcomes = [await each.check(connection) for each in sent]
        if len(sent) > 1:
            names = ", ".join(each.name for each in sent)
            raise BadRequest(f"Send one credential, got {len(sent)}: {names}")
        get_verified(connection)[sent[0]] = outcomes[0]
        return outcomes[0]

    async def _find_sent_members(self, connection: Connection) -> list[Credential[object]]:
        sent = [
            e for e in self._members if e.is_replaced(connection) or await e.is_sent(connection)
        ]
        tokens = [each for each in sent if isinstance(each, TokenCredential)]
        if len(tokens) < 2:
            return sent
        # they share a field, whose first word says which is meant; the first refuses another word
        meant = [each for each in tokens if each.has_own_scheme(connection)] or tokens[:1]
        return [each for each in sent if each in meant or each not in tokens]


def _require_distinct_members(members: Sequence[Credential[object]]) -> None:
    known: set[str] = set()
    for each in members:
        if each.is_optional or not each.field:
            raise ValueError(
                "The credentials of one_of must be required ones that read a session or a field,"
                f" got {each.name!r}; write one_of(..., optional=True), allow(..., by=one_of(...))"
            )
        own = {f"name {each.name}", f"field {each.field}"}
        if own & known:
            raise ValueError(
                "The credentials of one_of must differ in name and in what they read, got a second"
                f" {each.name!r} or {each.field!r}; give it another name=, header= or scheme="
            )
        known |= own
