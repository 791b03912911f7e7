"""Cached responses: which are kept, for which requests, and under which key.

Only a response that is the same for all clients is kept: to a GET or HEAD without a cookie and
without `Authorization` (or with a `key` of the author), with status 200, and without a field that
forbids it (`Set-Cookie`, `private`, `no-store`, `Vary` of a field that is not in the key).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import TYPE_CHECKING, Any, cast

from treefold_http._responses.response import Response
from treefold_http._wire.conditionals import Outcome, decide
from treefold_http._wire.json import dumps, loads

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http.cache._cached import Cached

_PERSONAL = (b"cookie", b"authorization")
_PRIVATE = frozenset({"private", "no-store", "no-cache"})


class Answers:
    """The answers of one `cached`."""

    def __init__(self, given: Cached) -> None:
        self._given = given

    async def answer(self, request: Request, call_next: CallNext) -> Response:
        """Return the answer that is kept, or the handler's; 304 if the client has it already."""
        key = self._key(request)
        if key is None:
            return await call_next(request)
        backend, tags = self._given.cache.backend, self._given.tags_of(request)
        flights = self._given.cache.answers
        flight = flights.get(key)
        if flight is not None and flight.get_loop() is asyncio.get_running_loop():
            response = await asyncio.shield(flight)
            return await call_next(request) if response is None else _fresh(response, request)
        loop = asyncio.get_running_loop()
        flight = flights[key] = loop.create_future()
        made: Response | None = None
        try:
            found, number = await backend.aread(key, tags)
            response = _decoded(found)
            if response is None:
                response = await call_next(request)
                if self._may_keep(request, response):
                    self._complete(response)
                    await backend.awrite(key, _encoded(response), self._given.ttl, tags, number)
                    made = _copy(response)
            else:
                made = _copy(response)
        finally:
            if flights.get(key) is flight:
                del flights[key]
            if not flight.done():
                flight.set_result(made)
        return response if made is None else _fresh(response, request)

    def _key(self, request: Request) -> str | None:
        """Return the cache key of a request, or None for a request that is not cached."""
        fields = request.fields
        if request.method not in ("GET", "HEAD") or b"range" in fields or request.plan is None:
            return None
        own = "" if self._given.key is None else self._given.key(request)
        personal = [n for n in _PERSONAL if n in fields and n.decode() not in self._given.vary]
        if own is None or (personal and self._given.key is None):
            return None
        parts = [request.method, request.scheme, request.host.lower(), request.route or "", own]
        parts += [request.scope.get("root_path", "")]
        for pairs in (sorted(request.path_params.items()), sorted(request.query.multi_items())):
            parts += [str(len(pairs)), *(text for pair in pairs for text in pair)]
        for name in self._given.vary:
            values = request.headers.getlist(name)
            parts += [str(len(values)), *values]
        if request.app.dev:
            parts.append(str(id(request.plan)))  # a reload makes other answers
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data))
            digest.update(data)
        return f"answer:{digest.hexdigest()}"

    def _may_keep(self, request: Request, response: Response) -> bool:
        if type(response) is not Response or response.status != 200:
            return False
        if response.background is not None or request.work is not None:
            return False
        session = getattr(request, "opened_session", None)
        if session is not None and session.is_touched:
            return False
        headers = response.headers
        directives = _words(headers.getlist("cache-control"))
        if "set-cookie" in headers or not _PRIVATE.isdisjoint(directives):
            return False
        return set(_words(headers.getlist("vary"))) <= set(self._given.vary)

    def _complete(self, response: Response) -> None:
        headers = response.headers
        if "etag" not in headers:
            headers["etag"] = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
        named = _words(headers.getlist("vary"))
        for name in self._given.vary:
            if name not in named:
                headers.append("vary", name)


def _words(fields: list[str]) -> list[str]:
    """The members of a list field, in lower case and without their values."""
    members = ",".join(fields).split(",")
    return [word for m in members if (word := m.partition("=")[0].strip(' \t"').lower())]


def _fresh(response: Response, request: Request) -> Response:
    """A copy for one client, or 304 without a body if it has the answer."""
    copy = _copy(response)
    etag = copy.headers.get("etag")
    outcome = decide(request.method, request.headers, etag=etag, modified=None)
    if outcome in (Outcome.NOT_MODIFIED, Outcome.FAILED):
        copy.status, copy.body = outcome.value, b""
    return copy


def _copy(response: Response) -> Response:
    copy = Response(None, response.status)
    copy.body = response.body
    copy.raw_headers.extend(response.raw_headers)
    return copy


def _encoded(response: Response) -> bytes:
    fields = [[n.decode("latin-1"), v.decode("latin-1")] for n, v in response.raw_headers]
    return dumps({"headers": fields, "body": base64.b64encode(response.body).decode("ascii")})


def _decoded(found: bytes | None) -> Response | None:
    """The answer of `_encoded`; None for anything else."""
    if found is None:
        return None
    try:
        document = cast("dict[str, Any]", loads(found))
        response = Response(None, 200)
        response.body = base64.b64decode(document["body"], validate=True)
        for name, value in document["headers"]:
            response.raw_headers.append((name.encode("latin-1"), value.encode("latin-1")))
    except Exception:  # bytes of another writer are a miss
        return None
    return response
