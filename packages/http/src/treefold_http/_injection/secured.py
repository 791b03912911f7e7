"""`secured`: declares the credentials that a function requires, for the OpenAPI document.

It only marks a dependency, a handler or a middleware: the marked object is returned unchanged and
checks the credentials itself. Only `openapi` reads the mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

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
    """

    name: str
    scheme: Mapping[str, Any]
    scopes: tuple[str, ...] = ()
    optional: bool = False
    place: str = ""


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
    behind it, on a handler to that one. It only documents; the function checks the credentials.

    Args:
        scheme: `basic`, `bearer` or `digest`, or a Security Scheme Object of OpenAPI such as
            `{"type": "apiKey", "in": "header", "name": "X-Api-Key"}`.
        name: the name in the document; by default that of the scheme. One name must have one
            scheme: `check --strict` and the log report conflicts.
        scopes: the scopes that the credentials must have, for OAuth 2 and OpenID Connect.
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
    """Merge security requirements by scheme: all scopes, optional if all are."""
    found: dict[tuple[str, str], Security] = {}
    for demand in demands:
        known = found.get(build_security_key(demand), demand)
        found[build_security_key(demand)] = known._replace(
            scopes=tuple(dict.fromkeys((*known.scopes, *demand.scopes))),
            optional=known.optional and demand.optional,
        )
    return tuple(found.values())


def build_security_key(demand: Security) -> tuple[str, str]:
    """Return the name and the content of a scheme, which identify it."""
    return demand.name, json.dumps(demand.scheme, sort_keys=True, default=repr)
