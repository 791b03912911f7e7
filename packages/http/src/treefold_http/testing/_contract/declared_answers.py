"""The answers that a route may give: those of its facts, and those that the facts imply.

GET /v1/user/{id:int}       200 json User, 404 problem; implied: 400, 422, 304 and a few more
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from treefold_contract import Answer, Lock, Reference, RouteFacts
from treefold_http._chains.middleware_chain import unwrap_middleware_entry
from treefold_http._description.routes import read_error_statuses
from treefold_http._facts.access import list_guards
from treefold_http.middleware._csrf import CSRF
from treefold_http.middleware._timeout import Timeout

ANY = "any"
PROBLEM = "problem"
MEDIA_TYPES = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "events": "text/event-stream",
    PROBLEM: "application/problem+json",
}
UNKNOWN_MEDIA_TYPES = (ANY, "file", "application/octet-stream")
"""What facts say of files and streams whose media type is chosen at run time."""

_REFUSED_HEADS = frozenset((400, 405, 413, 414, 431, 505))
"""The statuses of requests that are refused before their route is known."""
REFUSALS = frozenset((401, 403, 429, 503))
"""The statuses of guards and credentials; 503 while what they ask is away."""
_PARTS_OF_FILES = frozenset((206, 304, 412, 416))


def list_declared(route: RouteFacts, status: int) -> list[Answer]:
    """Return the answers that a route declares for a status, the most exact ones only."""
    for text in (str(status), f"{status // 100}XX", "default"):
        if found := [answer for answer in route.answers if answer.status == text]:
            return found
    return []


def list_implied(route: RouteFacts, *, has_conditions: bool) -> frozenset[int]:
    """Return the statuses that other facts than the answers imply.

    Args:
        route: the facts.
        has_conditions: True if the request asks for a part of a file, or has an entity tag.
    """
    found = set(_REFUSED_HEADS)
    if has_conditions or route.offers:
        found |= _PARTS_OF_FILES
    is_typed = any(segment.is_parameter for segment in route.path)
    if route.inputs or route.bodies or route.is_opaque or is_typed:
        found |= {415, 422}
    if route.auth or route.guards:
        found |= REFUSALS
    limits = {limit.name for limit in route.limits}
    if "rate" in limits:
        found |= {429, 503}
    if "timeout" in limits:
        found |= {408, 503}
    return frozenset(found)


def list_middleware_statuses(entries: Iterable[Any]) -> frozenset[int]:
    """Return the statuses with which middleware of all routes answers."""
    found: set[int] = set()
    for entry in map(unwrap_middleware_entry, entries):
        documented: Mapping[Any, Any] = getattr(entry, "openapi_responses", None) or {}
        found.update(status for status in documented if isinstance(status, int))
        found |= read_error_statuses(entry)
        if isinstance(entry, CSRF):
            found.add(403)
        if isinstance(entry, Timeout):
            found |= {408, 503}
        if list_guards([entry]):
            found |= REFUSALS
    return frozenset(found)


def find_error_type(lock: Lock) -> Answer:
    """Return the body of errors that no route declares: a problem, or the format of a project."""
    errors = lock.settings.errors
    if errors == PROBLEM:
        return Answer("default", PROBLEM)
    known = errors in lock.definitions or f"{errors} out" in lock.definitions
    return Answer("default", ANY, Reference(errors) if known else None)


def is_media_type(answer: Answer, media_type: str) -> bool:
    """Return True if an answer has a media type, which has no parameters."""
    if answer.media in UNKNOWN_MEDIA_TYPES:
        return True
    return MEDIA_TYPES.get(answer.media, answer.media).lower() == media_type


def describe_answer(answer: Answer, type_text: str) -> str:
    """Return an answer as a lock has it, such as `json [User]`."""
    return f"{answer.media or 'no body'} {type_text}".strip()
