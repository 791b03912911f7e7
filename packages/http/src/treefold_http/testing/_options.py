"""Defaults and types of both clients: header fields, timeouts, and the cookies that they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http.cookiejar import Cookie, CookieJar
from typing import Any, TypeAlias

import httpx

Headers: TypeAlias = "httpx.Headers | Mapping[str, str] | Sequence[tuple[str, str]]"
Cookies: TypeAlias = "httpx.Cookies | CookieJar | dict[str, str] | list[tuple[str, str]]"

_DEFAULT_HEADERS = {"user-agent": "testclient", "accept-encoding": "gzip, deflate"}
"""httpx would name its own version, and every encoding for which some package is installed."""

_TIMEOUT = httpx.Timeout(None, read=30.0)
"""Seconds to wait for an application, so that a hanging test fails with a traceback."""


class _Jar(CookieJar):
    """Cookie jar that sends `Secure` cookies over plain HTTP as well.

    The application sets `Secure` by default. A test calls it without a network, where nothing can
    be intercepted, and could not stay logged in without these cookies.
    """

    def set_cookie(self, cookie: Cookie) -> None:
        cookie.secure = False
        super().set_cookie(cookie)


def build_client_options(cookies: Cookies | None) -> dict[str, Any]:
    """Return what both clients pass to httpx; initial cookies are sent to every host and path."""
    jar = _Jar()
    if cookies is not None:
        httpx.Cookies(jar).update(cookies)
    return {"headers": _DEFAULT_HEADERS, "cookies": jar, "timeout": _TIMEOUT, "trust_env": False}
