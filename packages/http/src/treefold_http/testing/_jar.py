"""Cookies that a test client keeps between requests."""

from __future__ import annotations

from http.cookiejar import Cookie, CookieJar
from typing import TypeAlias

import httpx

Cookies: TypeAlias = "httpx.Cookies | CookieJar | dict[str, str] | list[tuple[str, str]]"


class _Jar(CookieJar):
    """Cookie jar that sends `Secure` cookies over plain HTTP as well.

    The application sets `Secure` by default. A test calls it without a network, where nothing can
    be intercepted, and could not stay logged in without these cookies.
    """

    def set_cookie(self, cookie: Cookie) -> None:
        cookie.secure = False
        super().set_cookie(cookie)


def jar_of(cookies: Cookies | None) -> CookieJar:
    """Return a jar with initial cookies, which are sent to every host and path."""
    jar = _Jar()
    if cookies is not None:
        httpx.Cookies(jar).update(cookies)
    return jar
