"""Defaults and types of both clients: header fields, timeouts, and the cookies that they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http.cookiejar import Cookie, CookieJar
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import httpx

from treefold_http.testing._contract.findings import ContractMode
from treefold_http.testing._server import Replacements, Served, Server

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Api = TypeVar("Api", default=Any)
else:  # before Python 3.13 without a default, which checkers alone need
    from typing import TypeVar

    Api = TypeVar("Api")
"""The type of `api` of a client: that of a generated client, else `Any`."""

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


class ClientOptions(TypedDict, total=False):
    """The options of both clients; `AsyncTestClient` says what they do."""

    overrides: Replacements | None
    base_url: str
    raise_app_errors: bool
    headers: Headers | None
    cookies: Cookies | None
    contract: ContractMode | None


class SocketOptions(TypedDict, total=False):
    """The options of `websocket_connect` of both clients."""

    subprotocols: Sequence[str]
    headers: Headers | None
    timeout: float | None


def build_server(app: Served, options: ClientOptions) -> Server:
    """Return the server of a client."""
    raises = options.get("raise_app_errors", True)
    return Server(
        app,
        overrides=options.get("overrides"),
        raise_app_errors=raises,
        contract=options.get("contract"),
    )


def build_client_options(options: ClientOptions) -> dict[str, Any]:
    """Return what both clients pass to httpx; initial cookies are sent to every host and path."""
    jar = _Jar()
    httpx.Cookies(jar).update(options.get("cookies"))
    headers = httpx.Headers(_DEFAULT_HEADERS)
    headers.update(options.get("headers"))
    base_url = options.get("base_url", "http://testserver")
    common: dict[str, Any] = {"base_url": base_url, "timeout": _TIMEOUT, "trust_env": False}
    return {"headers": headers, "cookies": jar, **common}
