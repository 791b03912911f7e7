"""Tell browsers to treat answers as data: no sniffing, framing, scripts or referrers (S-49, D-14).

A field that an answer has itself is left as it is: the docs, pages of the framework and handlers
that render HTML bring a policy of their own. `X-Content-Type-Options` is on every answer anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treefold_http._headers.header_fields import encode_header
from treefold_http._responses.response import Response
from treefold_http._wire.errors import HTTPError

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._wire.asgi import RawHeaders
    from treefold_router import Route

_YEAR = 31_536_000
"""Seconds: what browsers ask for before they preload a site's HSTS."""
_NO_STORE = (b"cache-control", b"no-store")
_SECURE = ("https", "wss")


class SecurityHeaders:
    """Add security header fields to every answer, errors included.

    With `Authorization` in the request, the response gets `Cache-Control: no-store` unless it has
    its own. A mounted folder of files gets no policy about scripts and styles: its pages are the
    project's own. Routes with `CORS` get no `Cross-Origin-Resource-Policy`.

    Args:
        content_security_policy: of answers that bring none; None for no field, as for the others.
        frame_options: `DENY` or `SAMEORIGIN`.
        referrer_policy: the referrer that links in a response send to other sites.
        resource_policy: which sites may embed an answer: `same-origin`, `same-site` or
            `cross-origin`.
        hsts: on https, tell browsers to use https only, for a year.
        hsts_max_age: another number of seconds.
        hsts_subdomains: the same for every name below this one.
        more: further fields.

    Attributes:
        fields: names in small letters and values, without `Strict-Transport-Security`.
        hsts_seconds: the seconds of that field; 0 without it.

    Raises:
        ValueError: for a field that cannot be sent, or an `hsts_max_age` below 0.
    """

    is_for_requests = True

    def __init__(
        self,
        *,
        content_security_policy: str | None = "default-src 'none'; frame-ancestors 'none'",
        frame_options: str | None = "DENY",
        referrer_policy: str | None = "no-referrer",
        resource_policy: str | None = "same-origin",
        hsts: bool = False,
        hsts_max_age: int = _YEAR,
        hsts_subdomains: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> None:
        if hsts_max_age < 0:
            raise ValueError(f"hsts_max_age must be 0 or more seconds, got {hsts_max_age!r}")
        fields = {
            "content-security-policy": content_security_policy,
            "x-frame-options": frame_options,
            "referrer-policy": referrer_policy,
            "cross-origin-resource-policy": resource_policy,
            **(more or {}),
        }
        self.fields = {name.lower(): text for name, text in fields.items() if text}
        self.hsts_seconds = hsts_max_age if hsts else 0
        self._fields = [encode_header(name, text) for name, text in fields.items() if text]
        subdomains = "; includeSubDomains" if hsts_subdomains else ""
        field = encode_header("strict-transport-security", f"max-age={hsts_max_age}{subdomains}")
        self._hsts: RawHeaders = [field] if hsts else []

    def for_route(self, route: Route | None, entries: Sequence[Any]) -> Any:
        """Return the fields of a route, prepared."""
        without: set[bytes] = set()
        if any(getattr(entry, "answers_preflights", False) for entry in entries):
            # the field would keep the answer from the pages that CORS allows to read it
            without.add(b"cross-origin-resource-policy")
        made = _Fields([pair for pair in self._fields if pair[0] not in without], self._hsts)
        return made if route is not None else _OfMiss(made)


class _Fields:
    """The header fields of a response, over https or not, with credentials or not."""

    def __init__(self, fields: RawHeaders, hsts: RawHeaders) -> None:
        # all four are made at the boot: a request takes one and builds no list
        self.variants = (
            (fields, [*fields, _NO_STORE]),
            ([*fields, *hsts], [*fields, *hsts, _NO_STORE]),
        )

    def before(self, request: Request) -> None:
        variant = self.variants[request.scope["scheme"] in _SECURE]
        request.add_answer_fields(variant[b"authorization" in request.fields])


class _OfMiss:
    """The same without a route; a mounted folder or page keeps the fields that its files need."""

    def __init__(self, every: _Fields) -> None:
        fields, hsts = every.variants[0][0], every.variants[1][0][len(every.variants[0][0]) :]
        of_pages = [pair for pair in fields if pair[0] != b"content-security-policy"]
        self._every = every
        self._pages = _Fields(of_pages, hsts)

    def before(self, request: Request) -> None:
        is_answer = isinstance(request.fallback, (HTTPError, Response))
        (self._every if is_answer else self._pages).before(request)
