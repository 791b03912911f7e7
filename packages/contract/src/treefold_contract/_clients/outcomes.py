"""What a call returns: one outcome for each status that a lock declares, in no language.

The runtimes tell bodies apart by `Content-Type`, so that they need no facts of a route. Here is the
same rule for the media types of a lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from treefold_contract._facts.facts import Answer, AnswerField, Lock, RouteFacts
from treefold_contract._facts.paths import TEXT
from treefold_contract._types.nodes import (
    Definitions,
    ListType,
    Record,
    Reference,
    Scalar,
    TypeNode,
    UnionType,
    find_definition,
)

BodyKind: TypeAlias = Literal[
    "json", "problem", "text", "bytes", "nothing", "lines", "events", "unknown"
]
NO_BODY = ("204", "205", "304")
PROXY_STATUSES = (500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer of a call.

    Attributes:
        status: its status; None for one of a range, or any that has no outcome of its own.
        kind: what the body is after it was read.
        type: the type of JSON, or of an item of a stream; None if it is not known.
        events: the named events of a stream.
        range: the first digit of the statuses that it may have; empty for a single one.
    """

    status: int | None
    kind: BodyKind
    type: TypeNode | None = None
    events: tuple[AnswerField, ...] = ()
    range: str = ""

    @property
    def is_success(self) -> bool:
        """True for the statuses 200 to 299."""
        return self.range == "2" or (self.status is not None and 200 <= self.status < 300)


def list_outcomes(route: RouteFacts, lock: Lock) -> list[Outcome]:
    """Return the outcomes of a route by status, with the 422 that its inputs imply."""
    outcomes = [_read_answer(each, route) for each in route.answers]
    statuses = {each.status for each in outcomes}
    if 422 not in statuses and is_validated(route):
        outcomes.append(Outcome(422, find_error_kind(lock)))
    return sorted(dict.fromkeys(outcomes), key=_outcome_order)


def _outcome_order(outcome: Outcome) -> tuple[int, str, str]:
    return outcome.status or 999, outcome.range, outcome.kind


def list_other_statuses(outcomes: Iterable[Outcome]) -> list[int]:
    """Return the statuses that a client gets of a proxy, without those that a route declares."""
    declared = {each.status for each in outcomes}
    return [status for status in PROXY_STATUSES if status not in declared]


def find_error_kind(lock: Lock) -> BodyKind:
    """Return what the body of an error is that no route declares."""
    return "problem" if lock.settings.errors in ("", "problem") else "unknown"


def is_validated(route: RouteFacts) -> bool:
    """Return True if a request can have a value that is refused with 422."""
    is_typed = any(each.is_parameter and each.type != TEXT for each in route.path)
    return is_typed or bool(route.inputs) or any(body.media != "bytes" for body in route.bodies)


def _read_answer(answer: Answer, route: RouteFacts) -> Outcome:
    status = int(answer.status) if answer.status.isdecimal() else None
    statuses = answer.status[0] if answer.status.endswith("XX") else ""
    if answer.status in NO_BODY or route.method == "HEAD":
        return Outcome(status, "nothing", range=statuses)
    kind = find_kind(answer.media)
    events = tuple(
        each for each in route.fields if each.place == "event" and each.status == answer.status
    )
    return Outcome(status, kind, answer.type, events if kind == "events" else (), statuses)


def find_kind(media: str) -> BodyKind:
    """Return what a body of a media type of a lock is after it was read."""
    match media:
        case "":
            return "nothing"
        case "problem" | "application/problem+json":
            return "problem"
        case "ndjson" | "application/x-ndjson":
            return "lines"
        case "events" | "text/event-stream":
            return "events"
        case "bytes":
            return "bytes"
        case "file" | "any":
            return "unknown"  # as many as there are files: the type of the file decides
        case _ if "json" in media:
            return "json"
        case _:
            return "text" if media.startswith("text") else "bytes"


def is_paged(route: RouteFacts, lock: Lock) -> bool:
    """Return True for a list whose pages can be followed.

    Such a route has a query `after`, and answers with `items` and the cursor `next`.
    """
    if not any(each.place == "query" and each.name == "after" for each in route.inputs):
        return False
    found = [each for each in route.answers if each.status == "200" and each.media == "json"]
    return bool(found) and all(_is_page(each.type, lock.definitions) for each in found)


def _is_page(node: TypeNode | None, definitions: Definitions) -> bool:
    if not isinstance(node, Reference):
        return False
    record = find_definition(definitions, node.name, "response")
    if not isinstance(record, Record):
        return False
    items, cursor = record.get_member("items"), record.get_member("next")
    if items is None or cursor is None or not isinstance(items.type, ListType):
        return False
    options = cursor.type.options if isinstance(cursor.type, UnionType) else (cursor.type,)
    return all(isinstance(each, Scalar) and each.kind in ("str", "null") for each in options)
