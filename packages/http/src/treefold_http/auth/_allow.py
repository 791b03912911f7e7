"""`allow`: a credential that also requires scopes and roles of its principal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from treefold_http._injection.secured import Security, read_security
from treefold_http._requests.connection import Connection
from treefold_http._requests.principal import (
    Principal,
    Verified,
    find_verified,
    get_verified,
    require_access,
)
from treefold_http._wire.interpreter import format_caller_location
from treefold_http.auth._credential import Credential, set_security

T = TypeVar("T")


@overload
def allow(*scopes: str, roles: Sequence[str] = (), by: Credential[T]) -> Credential[T]: ...
@overload
def allow(*scopes: str, roles: Sequence[str] = ()) -> Credential[Principal]: ...
def allow(
    *scopes: str, roles: Sequence[str] = (), by: Credential[object] | None = None
) -> Credential[Any]:
    """Return a credential that requires scopes or roles: `allow("book:write", by=signed_in)`.

    A caller who lacks one gets 403 and a message that names it; no caller at all is 401.

    Args:
        scopes: the scopes that a caller must have, all of them.
        roles: the roles of which a caller must have one.
        by: the credential that verifies the caller; a handler gets its result. Without it the
            caller is the one that an earlier dependency or a middleware has verified, and a handler
            gets its `Principal`.

    Raises:
        ValueError: without a scope and a role, or for a scope with a blank in it.
        TypeError: for roles that are one text.
    """
    if isinstance(roles, str):
        raise TypeError(f"allow roles must be a list of texts, got {roles!r}")
    if not scopes and not roles:
        raise ValueError("allow must name a scope or a role, got neither")
    for scope in scopes:
        if scope.split() != [scope]:
            raise ValueError(f"A scope must be one word, got {scope!r}")
    return _Allow(scopes, tuple(roles), by, format_caller_location(1))


class _Allow(Credential[object]):
    """Requires scopes and roles of what another credential has verified."""

    error_statuses = frozenset({401, 403})

    def __init__(
        self,
        scopes: tuple[str, ...],
        roles: tuple[str, ...],
        by: Credential[object] | None,
        place: str,
    ) -> None:
        self._scopes, self._roles, self._by = scopes, roles, by
        if by is not None:
            self.name, self.hint, self.challenge = by.name, by.hint, by.challenge
            self.reads_session, self.is_choice = by.reads_session, by.is_choice
            self.error_statuses |= by.error_statuses
            set_security(self, [self._require_also(each, place) for each in read_security(by)])

    def _require_also(self, demand: Security, place: str) -> Security:
        scopes = tuple(dict.fromkeys((*demand.scopes, *self._scopes)))
        roles = (*demand.roles, self._roles) if self._roles else demand.roles
        made = demand._replace(scopes=scopes, roles=roles, optional=False)
        return made._replace(place=place, is_checked=True)

    def is_in_header(self, connection: Connection) -> bool:
        return self._by is not None and self._by.is_in_header(connection)

    async def check_sent(self, connection: Connection) -> Verified:
        return await self.verify(connection)

    async def identify_replacement(self, value: object) -> Verified:
        if self._by is None:
            return await super().identify_replacement(value)
        return await self._by.identify_replacement(value)

    async def verify(self, connection: Connection) -> Verified:
        if self._by is None:
            if (found := find_verified(connection)) is None:
                raise RuntimeError(
                    "allow() found no credential before it; name one with by=, or list one among"
                    " the middleware"
                )
            outcome = found._replace(value=found.principal)
        else:
            await self._by(connection)
            outcome = get_verified(connection)[self._by]
        if outcome.principal is None:
            if outcome.value is not None:
                raise TypeError(
                    f"app.overrides of {self.name!r} must return a Principal behind allow, got"
                    f" {outcome.value!r}; or replace one of the credentials that it is made of"
                )
            raise self.build_missing_error()
        require_access(outcome.principal, self._scopes, self._roles)
        return outcome
