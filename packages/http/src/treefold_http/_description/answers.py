"""The answers of a handler: statuses, media types and types, of its annotation, module and source.

    async def handler() -> list[Book]:                       200 application/json list[Book]
    async def handler() -> tuple[Book, Literal[201]]:        201 application/json Book
    async def handler() -> None:                             204, no body
    async def handler() -> AsyncIterator[Book]:              200 application/x-ndjson Book
    async def handler():                                     2XX, not known

Statuses come from the source only: an annotation, `status_code`, a `raise` in the code, an input
that is validated. A handler that does not declare its response is described by `2XX`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treefold_http._description.made_responses import EVENTS, JSON, PLAIN_TEXT
from treefold_http._description.routes import RouteDescription
from treefold_http._headers.media_types import OTHER
from treefold_http._responses.events import EventStream
from treefold_http._responses.files import FileResponse
from treefold_http._responses.lines import (
    NDJSON,
    STREAMS,
    find_declared_item_type,
    find_stream_item_type,
)
from treefold_http._responses.response import BODILESS, Response
from treefold_http._responses.return_types import read_return_annotation
from treefold_http._responses.streams import StreamingResponse
from treefold_http._types import tree
from treefold_http._types.discriminators import (
    is_discriminated,
    list_options_merging_discriminated,
)
from treefold_http._types.parameters import EMPTY
from treefold_http._types.read import parse_annotation
from treefold_http.middleware._csrf import CSRF

SUCCESS = "2XX"
"""The status of an answer that the code does not declare."""
PLAIN_MEDIA_TYPES: Mapping[Any, str] = {
    str: PLAIN_TEXT,
    **dict.fromkeys((bytes, bytearray, memoryview), OTHER),
}
"""The media types of answers that are sent as they are."""


@dataclass(frozen=True, slots=True)
class AnswerDescription:
    """One way in which a handler answers.

    Attributes:
        status: a status, or the range `2XX`.
        media_type: without parameters; empty for no body, None if the code does not say it.
        type: of the JSON value, or of the item of a stream; None where only the media type is
            known.
    """

    status: str
    media_type: str | None = None
    type: tree.TypeNode | None = None

    @property
    def has_content(self) -> bool:
        """True if the answer has a body of a known media type."""
        return bool(self.media_type) and not is_bodiless(self.status)


def is_bodiless(status: str) -> bool:
    """Return True for a status whose answers have no body."""
    return status.isdigit() and int(status) in BODILESS


def list_success_answers(described: RouteDescription) -> list[AnswerDescription]:
    """Return the answers of a handler that raises nothing, and those that it passes on."""
    own = _list_own_answers(described)
    if not described.bases:
        return own
    passed = (answer for base in described.bases for answer in _list_own_answers(base))
    return [*own, *(each for each in passed if each.status[0] in "345")]


def _list_own_answers(described: RouteDescription) -> list[AnswerDescription]:
    module, model = described.module, described.contract.find_output_type(None)
    node = read_return_type(described)
    if model is None or is_event_stream(node):
        status = None if module.status_code is None else str(module.status_code)
        return list(_iter_type_answers(node, status, described))
    statuses = [module.status_code] if module.status_code else _list_tuple_statuses(node)
    item = find_declared_item_type(described.handler_function, module.response_model)
    if item is not None and find_stream_item_type(model) is None:
        return [AnswerDescription(str(status or 200), NDJSON, model) for status in statuses]
    return [
        answer
        for status in statuses
        for option in list_options_merging_discriminated(model)
        # without a status None is documented as 204
        for answer in _iter_type_answers(
            option,
            None if tree.is_none(option) and status is None else str(status or 200),
            described,
        )
    ]


def read_return_type(described: RouteDescription) -> tree.TypeNode:
    """Return the type of the response: the annotation, else EventStream or EMPTY."""
    annotation = read_return_annotation(described.handler_function)
    if annotation is EMPTY and described.reading.events:
        return parse_annotation(EventStream)
    return parse_annotation(annotation)


def is_event_stream(node: tree.TypeNode) -> bool:
    """Return True if a type is an event stream."""
    return isinstance(node, tree.ForeignType) and _is_subclass(node.kind, EventStream)


def _is_subclass(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _list_tuple_statuses(node: tree.TypeNode) -> Sequence[int | None]:
    """Return the statuses that a tuple in the annotation names; None alone if it names none."""
    if not isinstance(node, tree.TupleType) or len(node.items) < 2:
        return [None]
    codes = _read_literal_values(node.items[1])
    return [int(code) for code in codes if isinstance(code, int)] or [None]


def _read_literal_values(node: tree.TypeNode) -> tuple[Any, ...]:
    return node.members if isinstance(node, tree.Choice) and node.kind is None else ()


def _iter_type_answers(
    node: tree.TypeNode, status: str | None, described: RouteDescription
) -> Iterator[AnswerDescription]:
    """Yield the answers for a type of the annotation."""
    kind: Any = getattr(node, "kind", None)
    if isinstance(node, tree.AnyType) and node.bare_annotation is not object:
        yield AnswerDescription(status or SUCCESS)
    elif tree.is_none(node):
        yield AnswerDescription(status or "204", "")
    elif isinstance(node, tree.TupleType) and node.items:
        yield from _iter_tuple_answers(node.items, described)
    elif isinstance(node, tree.ListType) and kind is tuple and node.bare_annotation is not tuple:
        yield AnswerDescription(SUCCESS)
    elif isinstance(node, tree.ForeignType) and _is_subclass(kind, Response):
        shown_status = SUCCESS if kind is Response else status or "200"
        for media_type in _list_media_types(node.kind, described) or [None]:
            yield AnswerDescription(shown_status, media_type)
    elif kind in PLAIN_MEDIA_TYPES:
        yield AnswerDescription(status or "200", PLAIN_MEDIA_TYPES[kind])
    elif (item := find_stream_item_type(node)) is not None:
        yield AnswerDescription(status or "200", NDJSON, item)
    elif kind in STREAMS:
        yield AnswerDescription(status or "200", OTHER)
    elif isinstance(node, tree.UnionType) and not is_discriminated(node):
        for option in list_options_merging_discriminated(node):
            yield from _iter_type_answers(option, status, described)
    else:
        yield AnswerDescription(status or "200", JSON, node)


def _iter_tuple_answers(
    items: Sequence[tree.TypeNode], described: RouteDescription
) -> Iterator[AnswerDescription]:
    if len(items) not in (2, 3):
        yield AnswerDescription(SUCCESS)
        return
    for code in _read_literal_values(items[1]) or (SUCCESS,):
        text = str(int(code)) if isinstance(code, int) else SUCCESS
        yield from _iter_type_answers(items[0], text, described)


def _list_media_types(kind: type[Response], described: RouteDescription) -> list[str]:
    """Return the media types of a class of response: those that the handler writes, if it does."""
    if issubclass(kind, EventStream):
        return [EVENTS]
    if not issubclass(kind, (FileResponse, StreamingResponse)):
        return []
    written = dict.fromkeys(described.reading.media_types)
    known = [each for each in written if each is not None]
    return known if known and len(known) == len(written) else [OTHER]


def collect_error_statuses(described: RouteDescription) -> set[int]:
    """Return the statuses of errors that the framework or the reachable code can raise."""
    statuses = described.contract.error_statuses | described.statuses
    calls = described.reading.calls
    if described.place.parameters:
        statuses.add(400)
    if calls & {"json", "form", "files", "parts"}:
        statuses |= {400, 413, 415}
    if calls & {"body", "stream"}:
        statuses.add(413)
    if described.module.timeout is not None:
        statuses.add(503)
    if any(not demand.optional for demand in described.security):
        statuses.add(401)
    if _is_guarded_session_change(described):
        statuses.add(403)
    return statuses


def _is_guarded_session_change(described: RouteDescription) -> bool:
    """Return True if the guard of sessions can refuse a request that a cookie authenticates."""
    cookies = [each for each in described.security if each.scheme.get("in") == "cookie"]
    guards = [each for each in described.entries if isinstance(each, CSRF)]
    return bool(cookies and guards) and described.route.method not in CSRF.safe_methods
