"""Cookies between the requests of a test."""

from __future__ import annotations

from http.cookiejar import Cookie, CookieJar
from typing import TypeAlias

import httpx

Cookies: TypeAlias = "httpx.Cookies | CookieJar | dict[str, str] | list[tuple[str, str]]"


class _Jar(CookieJar):
    """A jar that gives back `Secure` cookies over plain HTTP as well.

    The application sets them so by default and a test speaks to it without a network: there is
    nothing to eavesdrop on, and a login that is lost on the way would help nobody.
    """

    def set_cookie(self, cookie: Cookie) -> None:
        cookie.secure = False
        super().set_cookie(cookie)


def jar_of(cookies: Cookies | None) -> CookieJar:
    """Give a jar with cookies to start with; those go to every host and path."""
    jar = _Jar()
    if cookies is not None:
        httpx.Cookies(jar).update(cookies)
    return jar
