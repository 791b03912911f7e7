"""`Principal`: the caller of a request, the same record from every kind of credential.

Credentials (room `auth`) and `identify` store what they verified at the connection; caches, limits
and permissions read it there and derive no caller of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from treefold_http._wire.errors import Forbidden

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection


@dataclass(frozen=True, slots=True, init=False)
class Principal:
    """The caller of a request.

    Args:
        id: the key of a user or a client, text or a number.
        source: what verified it; a credential fills in its name. One id of two sources is two
            principals.
        scopes: what it may do, such as `book:write`.
        roles: what it is, such as `editor`.

    Raises:
        TypeError: for an id of another type, or scopes or roles that are one text.
    """

    id: str | int
    source: str
    scopes: frozenset[str]
    roles: frozenset[str]

    def __init__(
        self,
        id: str | int,
        source: str = "",
        *,
        scopes: Iterable[str] = (),
        roles: Iterable[str] = (),
    ) -> None:
        if type(cast("object", id)) not in (str, int):
            raise TypeError(f"The id of a Principal must be text or a number, got {id!r}")
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "source", source)
        for name, names in (("scopes", scopes), ("roles", roles)):
            # the set of a text is one of its letters
            if isinstance(names, str):
                message = f"The {name} of a Principal must be a list of texts, got {names!r}"
                raise TypeError(message)
            object.__setattr__(self, name, frozenset(names))

    def with_source(self, source: str) -> Principal:
        """Return the same with a source, if it has none of its own."""
        if self.source:
            return self
        return Principal(self.id, source, scopes=self.scopes, roles=self.roles)

    @property
    def key(self) -> str:
        """A text that no other caller has, for keys of caches and limits: `session:7`."""
        return f"{self.source}:{self.id!r}"


class Verified(NamedTuple):
    """The outcome of a credential at one request.

    Attributes:
        name: that of its scheme in the document.
        value: what a handler gets.
        principal: the caller; None where an optional credential was not sent.
    """

    name: str
    value: Any
    principal: Principal | None


def identify(connection: Connection, principal: Principal) -> None:
    """Set the caller of a request, in a dependency or a middleware that checks credentials itself.

    The first principal of a request is its `principal`; `secured(..., scopes=)` checks the one
    whose source is the name of its scheme.

    Raises:
        ValueError: for a principal without a source.
    """
    if not principal.source:
        raise ValueError("identify needs a Principal with a source, such as the name of the scheme")
    name = principal.source
    get_verified(connection)[name] = Verified(name, principal, principal)


def get_verified(connection: Connection) -> dict[object, Verified]:
    """Return what was verified at a connection, by credential; later ones are added to it."""
    try:
        return connection.verified
    except AttributeError:
        connection.verified = {}
        return connection.verified


def find_verified(connection: Connection, name: str | None = None) -> Verified | None:
    """Return the outcome of the first credential of a request, or of the first one of a scheme.

    One with a principal comes before one without. None if no credential has run.
    """
    outcomes = [v for v in get_verified(connection).values() if name in (None, v.name)]
    return next((v for v in outcomes if v.principal), outcomes[0] if outcomes else None)


def principal_key(connection: Connection) -> str | None:
    """Return the key of the caller, None without one: `RateLimit("9/min", key=principal_key)`.

    For `RateLimit` and `cached`, behind a credential in the list of middleware.
    """
    principal = connection.principal
    return None if principal is None else principal.key


def require_access(principal: Principal, scopes: Sequence[str], roles: Sequence[str]) -> None:
    """Refuse a caller that lacks a scope, or has none of the roles.

    Raises:
        Forbidden: the message names what is missing.
    """
    missing = [repr(scope) for scope in scopes if scope not in principal.scopes]
    if missing:
        word = "scope" if len(missing) == 1 else "scopes"
        raise Forbidden(f"This needs the {word} {', '.join(missing)}")
    if roles and principal.roles.isdisjoint(roles):
        raise Forbidden(f"This needs the role {' or '.join(map(repr, roles))}")
