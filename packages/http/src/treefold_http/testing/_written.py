"""Requests with path, query and method exactly as the test wrote them.

httpx normalises URLs: it resolves `..`, drops leading slashes, encodes some characters, and
capitalises methods. A test of routing must bypass that (S-01). Characters that a request line
cannot hold (spaces, controls, other than ASCII) are percent-encoded as UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

_EXTENSION = "treefold.written"

_origin = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*").match
_unsendable = re.compile(r"[^\x21-\x7e]")


@dataclass(frozen=True, slots=True)
class _Written:
    """A request target and its URL, since redirects copy it to requests for another URL."""

    url: httpx.URL
    target: bytes


def build_verbatim_request(
    build: Callable[..., httpx.Request],
    method: str,
    url: httpx.URL | str,
    *,
    base: httpx.URL,
    options: dict[str, Any],
) -> httpx.Request:
    """Build a request with httpx, and keep method and target as they were written.

    Args:
        build: `build_request` of an httpx client.
        url: relative to `base`, or absolute; a `httpx.URL` is sent as httpx encodes it.
        options: further arguments of `build`.
    """
    if not isinstance(url, str):
        return build(method, url, **options)
    origin, target = _split_origin_and_target(url, base)
    address = origin.copy_with(raw_path=target)
    request = build(method, address, **options)
    request.method = method
    if request.url.query != address.query:  # from `params`
        target = target.partition(b"?")[0] + b"?" + request.url.query
    request.extensions[_EXTENSION] = _Written(request.url, target)
    return request


def split_request_target(request: httpx.Request) -> tuple[bytes, bytes]:
    """Return path and query of a request as they are sent."""
    written: _Written | None = request.extensions.get(_EXTENSION)
    target = request.url.raw_path
    if written is not None and written.url == request.url:
        target = written.target
    path, _, query = target.partition(b"?")
    return path, query


def _split_origin_and_target(url: str, base: httpx.URL) -> tuple[httpx.URL, bytes]:
    text = url.partition("#")[0]
    if match := _origin(text):
        origin, prefix, rest = httpx.URL(match[0]), b"", text[match.end() :]
    else:
        origin, prefix, rest = base, base.raw_path.partition(b"?")[0].rstrip(b"/"), text
    rest = rest if rest.startswith("/") else f"/{rest}"
    return origin, prefix + _unsendable.sub(lambda found: quote(found[0]), rest).encode("ascii")
