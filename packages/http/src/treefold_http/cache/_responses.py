"""The layer that keeps answers: looks up, lets one request make a missing answer, keeps it.

`_keys` has the rule that decides a key, `_answer` which answers are kept. A request goes through
these steps:

1. Dependencies that see the request run, recorded; they may refuse it.
2. The key is made from the parts of the request that answers of this route depend on. They are
   learned: declared fields at the boot, the others from every answer that was kept. An answer is
   stored under all names that decided it, so a request that finds it agrees in each of them.
3. Without an answer, the first request of a key makes it, recorded; the others wait for it.

Nothing of a path without a route is kept unless the answer says `public`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from treefold_http._chains.cache_place import CacheLayer
from treefold_http._requests.read_notes import ReadNotes
from treefold_http._requests.recording_request import record_reads
from treefold_http._responses.response import Response, copy_response
from treefold_http._wire.errors import ServiceUnavailable
from treefold_http.cache._answer import (
    PUBLIC,
    Answer,
    apply_preconditions,
    decode_answer,
    encode_answer,
    is_cacheable,
    is_session_unchanged,
    read_cache_directives,
    read_vary_names,
    with_cache_headers,
)
from treefold_http.cache._keys import (
    PERSONAL,
    RequestParts,
    find_changed_context_variables,
    hash_parts,
)
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http._wire.asgi import RawHeaders
    from treefold_http.cache._cache import CacheState
    from treefold_http.cache._cached import Cached
    from treefold_router import Route

MAX_NAMES = 64
"""Names that answers of one route may depend on together; more are not told apart."""


# What a request that waits for a flight does at its end:
#   Answer      sends a copy of it
#   UNSHARED    runs the handler by itself
#   LEARNED     builds its key again, with the names that were learned
#   ABANDONED   looks again; the first request to do so makes the answer
#   _Failure    one request tries again and the others wait for it; if that fails too, 503
class _Outcome(Enum):
    """How a flight without an answer for the waiting requests ended."""

    UNSHARED = "the answer is for one request"
    LEARNED = "the answer has another key"
    ABANDONED = "the request was cancelled"


class _Failure:
    """The outcome of a flight whose handler failed; one of the waiting requests tries it again.

    Attributes:
        retry: the second flight, which all others wait for, however early it ends.
    """

    retry: _Flight | None = None


_Flight: TypeAlias = "asyncio.Future[Answer | _Outcome | _Failure]"


@dataclass(slots=True)
class _Visit:
    """One request at the cache.

    Attributes:
        notes: what it was seen to read.
        parts: its parts, from before.
        base: the part of the key that every answer of its address has.
        state: what the cache keeps for the application.
        tags: those of its answer.
    """

    request: Request
    notes: ReadNotes
    parts: RequestParts
    base: list[str]
    state: CacheState
    tags: Sequence[str]

    def find_in_memory(self, key: str) -> Answer | None:
        """Return an answer that is found without waiting.

        `_read_or_make_answer` reads other backends.
        """
        backend = self.state.backend
        return None if backend.waits else decode_answer(backend.read_entry(key, self.tags)[0])


class AnswerLayer(CacheLayer):
    """The answers of one `cached` at one route; None for paths without a route."""

    def __init__(self, given: Cached, route: Route | None) -> None:
        self._given = given
        self._is_miss = route is None
        self._where = "paths without a route" if route is None else route.template
        self._learned: set[str] = set()
        self._has_warned = False

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Return the answer that is kept, or the handler's; 304 if the client has it already."""
        visit = await self._run_dependencies_prepare_lookup(request)
        if visit is None:
            return await call_next(request)
        failure: _Failure | None = None
        while True:
            # in the loop, because a flight may have taught the layer more names meanwhile
            names = self._collect_key_part_names(visit)
            if (key := await self._build_key(visit, names)) is None:
                return await call_next(request)
            if (kept := visit.find_in_memory(key)) is not None:
                return kept.build_response(request)
            # A retry may end before all that waited have run, and is then gone from `answers`: they
            # find its outcome at the failure, and make no third attempt.
            flight = visit.state.answers.get(key) if failure is None else failure.retry
            # There is no await between the look-up of the flight and the line in
            # `_read_or_make_answer` that stores one, so no two requests of a loop make the same
            # answer.
            if flight is None or flight.get_loop() is not asyncio.get_running_loop():
                return await self._read_or_make_answer(visit, key, names, call_next, failure)
            outcome = await asyncio.shield(flight)
            if isinstance(outcome, Answer):
                return outcome.build_response_copy(request)
            if outcome is _Outcome.UNSHARED:
                return await call_next(request)
            if isinstance(outcome, _Failure):
                if failure is not None:
                    message = "This answer could not be made; try again later"
                    raise ServiceUnavailable(message, headers={"Retry-After": "1"})
                failure = outcome
            elif outcome is _Outcome.LEARNED:
                failure = None
            elif failure is not None and failure.retry is flight:
                failure.retry = None

    async def _run_dependencies_prepare_lookup(self, request: Request) -> _Visit | None:
        """Run the dependencies that see the request; return None for one that is not cached."""
        notes: ReadNotes = getattr(request, "notes", None) or ReadNotes()
        request.notes = notes
        parts = RequestParts(request)
        if self.early is not None:
            if notes.context is None:
                notes.context = copy_context()
            with record_reads(request, notes):
                notes.early = await self.early(request)
        if request.method not in ("GET", "HEAD") or b"range" in request.fields:
            return None
        given = self._given
        own = "" if given.key is None else given.key(request)
        if own is None:
            return None
        base = [request.method, request.scheme, request.host.lower(), own]
        base += self._collect_url_key_parts(request)
        for name in (*given.vary, *(() if given.key is not None else PERSONAL)):
            values = parts.read_header_values(name)
            # with their number in front: `Cookie: a` without `Authorization` and the reverse
            # would be the same list of texts
            base += [str(len(values)), *values]
        if (variables := self._collect_variable_key_parts(notes)) is None:
            return None
        base += variables
        state = given.cache.get_state(request.app)
        return _Visit(request, notes, parts, base, state, given.compute_tags(request))

    def _collect_url_key_parts(self, request: Request) -> list[str]:
        scope = request.scope
        parts = [scope.get("root_path", ""), request.route or ""]
        # no template and no parameters tell these addresses apart; `%2F` and `/` differ for mounts
        if self._is_miss:
            parts += [request.path, request.raw_path.decode("latin-1")]
        # a stable sort by name: `a=1&b=2` is `b=2&a=1`, but `a=1&a=2` is not `a=2&a=1`
        query = sorted(request.query.multi_items(), key=lambda pair: pair[0])
        for pairs in (sorted(request.path_params.items()), query):
            parts += [str(len(pairs)), *(text for pair in pairs for text in pair)]
        if request.app.dev:
            parts.append(str(id(request.plan)))  # a reload makes other answers
        return parts

    def _collect_variable_key_parts(self, notes: ReadNotes) -> list[str] | None:
        """The context variables that the project set; None if one of them has no text."""
        if notes.context is None or self._given.key is not None:
            return []
        texts: list[str] = []
        for name, token in sorted(find_changed_context_variables(notes.context).items()):
            if token is None:
                self._warn_once(
                    f"the context variable {name!r} is set to an object, or another has its name"
                )
                return None
            texts += [name, token]
        return [str(len(texts)), *texts]

    def _collect_key_part_names(self, visit: _Visit) -> set[str]:
        if self._given.key is not None:
            return set(self._learned)
        return {*self.declared, *self._learned, *visit.notes.collect_names()}

    async def _build_key(self, visit: _Visit, part_names: Collection[str]) -> str | None:
        """The key of an answer that depends on the named parts; None if one has no text."""
        parts = list(visit.base)
        # sorted, because workers share keys and a set of texts has another order in each process
        for name in sorted(part_names):
            if (token := await visit.parts.compute_key_text(name)) is None:
                return None
            parts += [name, token]
        return f"answer:{hash_parts(parts)}"

    async def _read_or_make_answer(
        self,
        visit: _Visit,
        key: str,
        part_names: set[str],
        call_next: CallNext,
        failure: _Failure | None,
    ) -> Response:
        """Return the kept answer or make it, for this request and those that wait for it."""
        request, backend, tags = visit.request, visit.state.backend, visit.tags
        flights = visit.state.answers
        flight: _Flight = asyncio.get_running_loop().create_future()
        flights[key] = flight
        if failure is not None:
            failure.retry = flight
        # remains for a cancellation: CancelledError is no Exception
        outcome: Answer | _Outcome | _Failure = _Outcome.ABANDONED
        try:
            # `number` is of before the handler runs: after an invalidation nothing is stored with
            # it
            found, number = await backend.aread_entry(key, tags)
            if (answer := decode_answer(found)) is not None:
                outcome = answer
                return answer.build_response_copy(request)
            former = request.answer_fields
            visit.parts.take_snapshot()
            response = await self._call_next_recording_reads(visit, call_next)
            outcome = _Failure() if response.status >= 500 else _Outcome.UNSHARED
            deciding = self._find_deciding_part_names(visit, response)
            added = _find_added_fields(former or [], request.answer_fields or [])
            if deciding is None or added is None:
                return response
            # a cookie that inner middleware sets is of one client
            if any(name == b"set-cookie" for name, _ in added):
                return response
            response = with_cache_headers(
                response, deciding, self._given.vary, query_names=list(request.query)
            )
            own = await self._build_key(visit, deciding | part_names)
            if own is None:
                self._warn_of_uncacheable_state(deciding)
                return response
            # Learned from kept answers only: the name of a part without text would be in the key of
            # every later request of the route, and none of them would be kept.
            self._learned |= deciding
            answer = Answer(response, added)
            await backend.awrite_entry(own, encode_answer(answer), self._given.ttl, tags, number)
            # those that wait agree in the names of `key` only, and may differ in the later ones
            outcome = answer if own == key else _Outcome.LEARNED
            # a copy, since a 304 empties the body, which the requests that wait still need
            return apply_preconditions(copy_response(response), request)
        except Exception:
            outcome = _Failure()
            raise
        finally:
            # an invalidation may have cleared it, and a later request may have stored its own
            if flights.get(key) is flight:
                del flights[key]
            if not flight.done():
                flight.set_result(outcome)

    async def _call_next_recording_reads(self, visit: _Visit, call_next: CallNext) -> Response:
        if self._given.key is not None:
            return await call_next(visit.request)
        with record_reads(visit.request, visit.notes):
            return await call_next(visit.request)

    def _find_deciding_part_names(self, visit: _Visit, response: Response) -> set[str] | None:
        """The names of what decided an answer; None for one that is not kept."""
        request = visit.request
        if not is_cacheable(response, request) or not is_session_unchanged(request):
            return None
        names = read_vary_names(response)
        vary = {f"header:{name}" for name in names if name not in self._given.vary}
        if self._is_miss:
            return vary if PUBLIC in read_cache_directives(response) else None
        if self._given.key is not None:
            return vary
        deciding = {*self.declared, *visit.notes.collect_names(), *vary}
        return None if len(deciding | self._learned) > MAX_NAMES else deciding

    def _warn_of_uncacheable_state(self, part_names: Collection[str]) -> None:
        states = sorted(name for name in part_names if name == "id" or name.startswith("state"))
        if states:
            self._warn_once(f"the handler reads {states[0].replace(':', '.')!r}, which has no text")

    def _warn_once(self, reason: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            get_logger().warning(
                "cached keeps no answer of %s: %s; pass key= to cached", self._where, reason
            )


def _find_added_fields(former: RawHeaders, fields: RawHeaders) -> RawHeaders | None:
    """Return the fields that were added; None if others were taken away."""
    return fields[len(former) :] if fields[: len(former)] == former else None
