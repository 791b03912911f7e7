"""`secured`: declares the credentials that a function requires, for the OpenAPI document.

It marks a dependency, a handler or a middleware: the marked object is returned unchanged and checks
the credentials itself. `openapi` reads the mark; of its scopes the plan of a route makes a
`ScopeCheck`, which runs behind the marked dependency or middleware, or before the marked handler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from treefold_http._requests.connection import Connection
from treefold_http._requests.principal import find_verified, require_access
from treefold_http._wire.errors import Unauthorized
from treefold_http._wire.interpreter import format_caller_location

MARK = "__treefold_security__"

_T = TypeVar("_T")


class Security(NamedTuple):
    """One declaration of required credentials.

    Attributes:
        name: the name of the scheme in the document.
        scheme: a Security Scheme Object (OpenAPI 3.1, 4.8.27).
        scopes: the scopes that the credentials must have.
        optional: True if credentials are not required.
        place: the file and line of the declaration.
        any_of: the name of a group of which one suffices; empty for credentials of their own.
        is_checked: True if the function checks the scopes itself.
        roles: sets of roles, of each of which the credentials must have one.
    """

    name: str
    scheme: Mapping[str, Any]
    scopes: tuple[str, ...] = ()
    optional: bool = False
    place: str = ""
    any_of: str = ""
    is_checked: bool = False
    roles: tuple[tuple[str, ...], ...] = ()


_HTTP = ("basic", "bearer", "digest")
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "apiKey": ("in", "name"),
    "http": ("scheme",),
    "mutualTLS": (),
    "oauth2": ("flows",),
    "openIdConnect": ("openIdConnectUrl",),
}
_match_scheme_name = re.compile(r"[A-Za-z0-9._-]+").fullmatch


def secured(
    scheme: str | Mapping[str, Any],
    *,
    name: str | None = None,
    scopes: Sequence[str] = (),
    optional: bool = False,
) -> Callable[[_T], _T]:
    """Document the credentials that a function requires in OpenAPI: `@secured("bearer")`.

    On a dependency it applies to every handler that depends on it, on a middleware to every handler
    behind it, on a handler to that one. The function checks the credentials itself; the scopes are
    checked here, against the principal of the scheme: a request whose principal lacks one is 403. A
    credential of `auth` has such a principal, another function calls `identify`.

    Args:
        scheme: `basic`, `bearer` or `digest`, or a Security Scheme Object of OpenAPI such as
            `{"type": "apiKey", "in": "header", "name": "X-Api-Key"}`.
        name: the name in the document; by default that of the scheme. One name must have one
            scheme: `check --strict` and the log report conflicts.
        scopes: the scopes that the principal must have.
        optional: True if the function also serves requests without credentials.

    Raises:
        ValueError: for an unknown scheme, one that lacks a member, or a name that is invalid in the
            document.
    """
    if isinstance(scheme, str):
        if scheme not in _HTTP:
            raise ValueError(
                f"A security scheme must be one of {', '.join(_HTTP)}, or an object of"
                f" OpenAPI, got {scheme!r}"
            )
        name, scheme = name or scheme, {"type": "http", "scheme": scheme}
    kind = scheme.get("type")
    if not isinstance(kind, str) or kind not in _NEEDS:
        message = f"The type of a security scheme must be one of {', '.join(_NEEDS)}, got {kind!r}"
        raise ValueError(message)
    missing = [key for key in _NEEDS[kind] if key not in scheme]
    if missing:
        raise ValueError(f"A security scheme of type {kind!r} has no {missing[0]!r}; add it")
    name = name or kind
    if not _match_scheme_name(name):
        message = f"A security name must consist of letters, digits, '.', '_' and '-', got {name!r}"
        raise ValueError(message)
    made = Security(name, dict(scheme), tuple(scopes), optional, format_caller_location(1))

    def mark_function(target: _T) -> _T:
        # a new tuple, as a subclass reads the mark of its base class
        setattr(target, MARK, (*read_security(target), made))
        return target

    return mark_function


def read_security(target: object) -> tuple[Security, ...]:
    """Return the declarations on a function, class or middleware object."""
    return getattr(target, MARK, ())


def read_middleware_security(entry: object) -> list[Security]:
    """Return the declarations on a middleware; an attribute of another kind is not one."""
    marks = cast("object", read_security(entry))
    found = cast("tuple[object, ...]", marks) if isinstance(marks, tuple) else ()
    return [mark for mark in found if isinstance(mark, Security)]


def merge_security_requirements(demands: Iterable[Security]) -> tuple[Security, ...]:
    """Merge security requirements by scheme: all scopes and roles, optional if all are."""
    found: dict[tuple[str, str, str], Security] = {}
    for demand in demands:
        key = (*build_security_key(demand), demand.any_of)
        known = found.get(key, demand)
        found[key] = known._replace(
            scopes=tuple(dict.fromkeys((*known.scopes, *demand.scopes))),
            roles=tuple(dict.fromkeys((*known.roles, *demand.roles))),
            optional=known.optional and demand.optional,
        )
    return tuple(found.values())


def build_security_key(demand: Security) -> tuple[str, str]:
    """Return the name and the content of a scheme, which identify it."""
    return demand.name, json.dumps(demand.scheme, sort_keys=True, default=repr)


class ScopeCheck:
    """Checks the scopes that `secured` has declared, as a dependency or as middleware.

    Attributes:
        error_statuses: of its errors, for the document.
    """

    decides_access = True  # a cache around it would pass it by
    error_statuses = frozenset({403})

    def __init__(self, demands: Sequence[Security]) -> None:
        self._demands = demands

    async def __call__(self, connection: Connection) -> None:
        """Check a connection; errors as `before`."""
        self.before(connection)

    def before(self, connection: Connection) -> None:
        """Check the principals of a connection.

        Raises:
            Forbidden: if the principal of a scheme lacks a scope.
            Unauthorized: if the principal is required and an optional credential was not sent.
            RuntimeError: if nothing has verified a required scheme.
        """
        for demand in self._demands:
            outcome = find_verified(connection, demand.name)
            if outcome is None and not demand.optional:
                raise RuntimeError(
                    f"secured({demand.name!r}, scopes=...) at {demand.place} found no principal;"
                    f" call identify(request, Principal(..., source={demand.name!r})) in the"
                    " function that checks the credentials"
                )
            if outcome is not None and outcome.principal is not None:
                require_access(outcome.principal, demand.scopes, ())
            elif not demand.optional:
                raise Unauthorized("Log in first", headers={"WWW-Authenticate": demand.name})


def build_scope_checks(target: object) -> list[ScopeCheck]:
    """Return the check of the scopes that a function is marked with, or none."""
    marks = read_middleware_security(target)
    demands = [each for each in marks if each.scopes and not each.is_checked]
    return [ScopeCheck(demands)] if demands else []
