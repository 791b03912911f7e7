"""Cookies both ways: the `Cookie` field to values, a value to a `Set-Cookie` field (RFC 6265bis).

Parsing is one linear pass that never percent-decodes a name and never raises; formatting refuses
characters that would end the cookie early or add an attribute, at the line that sets it:

    parse_cookies('a=1; b="two"; ; =x')    [("a", "1"), ("b", "two")]

    format_cookie("a", "1", max_age=60)    a=1; Max-Age=60; Path=/; Secure; HttpOnly; SameSite=Lax
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Literal

from treefold_http._headers.header_fields import is_token

MAX_COOKIES = 100
"""Cookies of one field: twice what a browser must be able to keep for a site (RFC 6265bis, 6.1)."""

# cookie-octet of RFC 6265bis: visible ASCII without the quote, the comma, `;` and the backslash
_value = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*").fullmatch
# path-value: printable ASCII without `;`, which would begin another attribute
_attribute = re.compile(r"[\x20-\x3a\x3c-\x7e]*").fullmatch

SameSite = Literal["lax", "strict", "none"]


def parse_cookies(field: str) -> list[tuple[str, str]]:
    """Split a `Cookie` field into (name, value) pairs in the order sent, at most 100.

    A pair without a name, or whose name is no token, is dropped; a quoted value loses its quotes
    and keeps the rest as it was sent. Nothing is decoded: `%5F%5FHost-id` would become a
    `__Host-id` that the browser protects from other sites (S-45).
    """
    found: list[tuple[str, str]] = []
    for part in field.split(";"):
        name, equals, value = part.partition("=")
        name = name.strip(" \t")
        if not equals or not is_token(name):
            continue
        value = value.strip(" \t")
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        found.append((name, value))
        if len(found) == MAX_COOKIES:
            break
    return found


def format_cookie(
    name: str,
    value: str,
    *,
    max_age: int | None = None,
    expires: datetime | None = None,
    path: str | None = "/",
    domain: str | None = None,
    secure: bool = True,
    httponly: bool = True,
    samesite: SameSite | None = "lax",
    partitioned: bool = False,
) -> str:
    """Write one `Set-Cookie` field value.

    Args:
        max_age: life in seconds; 0 or less deletes the cookie.
        expires: end of life; a naive time is taken as UTC.
        partitioned: the CHIPS attribute, which needs `secure`.

    Raises:
        ValueError: for a name, value or attribute that cannot stand in the field, a `__Host-` or
            `__Secure-` name without the attributes that the prefix requires, and `none` or
            `partitioned` without `secure`.
    """
    _check_cookie(name, value, path, domain, samesite)
    if not secure and (samesite == "none" or partitioned):
        raise ValueError(f"Cookie {name!r} with samesite='none' or partitioned needs secure=True")
    _check_name_prefix(name, path, domain, secure)
    parts = [f"{name}={value}"]
    if max_age is not None:
        parts.append(f"Max-Age={max_age:d}")
    if expires is not None:
        aware = expires.replace(tzinfo=UTC) if expires.tzinfo is None else expires.astimezone(UTC)
        parts.append(f"Expires={format_datetime(aware, usegmt=True)}")
    if domain is not None:
        parts.append(f"Domain={domain}")
    if path is not None:
        parts.append(f"Path={path}")
    if secure:
        parts.append("Secure")
    if httponly:
        parts.append("HttpOnly")
    if samesite is not None:
        parts.append(f"SameSite={samesite.capitalize()}")
    if partitioned:
        parts.append("Partitioned")
    return "; ".join(parts)


# A browser drops a cookie whose name promises attributes that it does not have:
#   __Secure-   Secure
#   __Host-     Secure, Path=/ and no Domain
def _check_name_prefix(name: str, path: str | None, domain: str | None, secure: bool) -> None:
    # browsers compare the prefix without regard to case (RFC 6265bis)
    lowered = name.lower()
    if lowered.startswith("__secure-") and not secure:
        raise ValueError(
            f"Cookie {name!r} must be secure because of its prefix; set secure=True or rename it"
        )
    if lowered.startswith("__host-") and not (secure and path == "/" and domain is None):
        raise ValueError(
            f"Cookie {name!r} must have secure=True, path='/' and no domain because of its"
            " prefix; set these or rename it"
        )


def _check_cookie(
    name: str, value: str, path: str | None, domain: str | None, samesite: str | None
) -> None:
    if not is_token(name):
        message = f"A cookie name must consist of letters, digits, - or _ (RFC 6265), got {name!r}"
        raise ValueError(message)
    if not _value(value):
        raise ValueError(
            f"The value of cookie {name!r} must not contain a space, quote, comma,"
            " semicolon, backslash or control character; encode it first"
        )
    for label, text in (("path", path), ("domain", domain)):
        if text is not None and not _attribute(text):
            raise ValueError(
                f"Cookie {label} must not contain a semicolon or a control character, got {text!r}"
            )
    if samesite not in (None, "lax", "strict", "none"):
        raise ValueError(f"Cookie samesite must be 'lax', 'strict' or 'none', got {samesite!r}")
