"""`secured`: how a function says which credentials it asks for, for the OpenAPI document.

A mark on a dependency, a handler or a middleware, and nothing else: what is marked is returned as
it is and checks the credentials itself. Only `openapi` reads the mark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

MARK = "__treefold_security__"

_T = TypeVar("_T")


class Security(NamedTuple):
    """One demand for credentials.

    Attributes:
        name: what the scheme is called in the document.
        scheme: a Security Scheme Object (OpenAPI 3.1, 4.8.27).
        scopes: what the credentials must allow.
        optional: whether it also works without.
        place: where it is written, as file and line.
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
_name = re.compile(r"[A-Za-z0-9._-]+").fullmatch


def secured(
    scheme: str | Mapping[str, Any],
    *,
    name: str | None = None,
    scopes: Sequence[str] = (),
    optional: bool = False,
) -> Callable[[_T], _T]:
    """Say in the OpenAPI document which credentials a function asks for: `@secured("bearer")`.

    On a dependency it counts for every handler that depends on it, on a middleware for every
    handler behind it, on a handler for that one. It documents; the function itself checks.

    Args:
        scheme: `basic`, `bearer` or `digest`, or a Security Scheme Object of OpenAPI such as
            `{"type": "apiKey", "in": "header", "name": "X-Api-Key"}`.
        name: what it is called in the document; the scheme's own word when not given. One name is
            one scheme: `check --strict` and the log say where two differ.
        scopes: what the credentials must allow, for OAuth 2 and OpenID Connect.
        optional: whether the function also answers without them.

    Raises:
        ValueError: for an unknown scheme, one that lacks a member, or a name that cannot stand in
            the document.
    """
    if isinstance(scheme, str):
        if scheme not in _HTTP:
            raise ValueError(
                f"Security scheme {scheme!r} is unknown; use one of {', '.join(_HTTP)},"
                " or an object of OpenAPI"
            )
        name, scheme = name or scheme, {"type": "http", "scheme": scheme}
    kind = scheme.get("type")
    if not isinstance(kind, str) or kind not in _NEEDS:
        raise ValueError(
            f"Security scheme type {kind!r} is unknown; use one of {', '.join(_NEEDS)}"
        )
    missing = [key for key in _NEEDS[kind] if key not in scheme]
    if missing:
        raise ValueError(f"A security scheme of type {kind!r} has no {missing[0]!r}; add it")
    name = name or kind
    if not _name(name):
        raise ValueError(f"Security name {name!r} is not made of letters, digits, '.', '_' and '-'")
    caller = sys._getframe(1)  # `inspect.stack` reads the sources of all of them
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    made = Security(name, dict(scheme), tuple(scopes), optional, place)

    def mark(target: _T) -> _T:
        setattr(target, MARK, (*security_of(target), made))
        return target

    return mark


def security_of(target: object) -> tuple[Security, ...]:
    """Give what a function, class or middleware object is marked with."""
    return getattr(target, MARK, ())
