"""Write the responses of an operation, from return annotation, module and possible errors.

Statuses come from the source only: an annotation, `status_code`, `responses`, a `raise` in the
code, an input that is validated. A handler that does not declare its response is documented with
`2XX`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

from treefold_http._headers.media_types import OTHER
from treefold_http._headers.status_phrases import find_status_phrase
from treefold_http._responses.events import EventStream
from treefold_http._responses.files import FileResponse
from treefold_http._responses.lines import (
    NDJSON,
    STREAMS,
    find_declared_item_type,
    find_stream_item_type,
)
from treefold_http._responses.response import BODILESS, Response
from treefold_http._responses.streams import StreamingResponse
from treefold_http._types import tree
from treefold_http._types.parameters import EMPTY
from treefold_http._types.read import ANY, parse_annotation, resolve_annotation
from treefold_http._wire.aliases import JSONObject
from treefold_http.middleware._csrf import CSRF
from treefold_http.openapi._components import Schema, any_of
from treefold_http.openapi._constraints import to_json_value
from treefold_http.openapi._definitions import is_discriminated, list_options_merging_discriminated
from treefold_http.openapi._examples import encode_example
from treefold_http.openapi._media_types import BINARY, EVENTS, JSON, TEXT, build_untyped_schema
from treefold_http.openapi._problems import build_error_content
from treefold_http.openapi._routes import RouteDescription
from treefold_http.openapi._schemas import Schemas

_OCTETS = (OTHER, BINARY)
_PLAIN: Mapping[Any, tuple[str, Schema]] = {
    str: ("text/plain", TEXT),
    **dict.fromkeys((bytes, bytearray, memoryview), _OCTETS),
}
_ANY = "2XX"


def build_operation_responses(described: RouteDescription, schemas: Schemas) -> JSONObject:
    """Return the Responses Object of an operation."""
    found = _Answers(schemas)
    _add_success(described, found)
    for status in sorted(_collect_error_statuses(described)):
        found.add_error(str(status))
    responses = found.build_responses()
    of_middleware = _collect_middleware_attribute(described, "openapi_responses")
    for said in (*of_middleware, described.module.responses or {}):
        for status, each in said.items():
            known = responses.get(str(status))
            responses[str(status)] = _merge_response(str(status), each, known, schemas)
            _add_examples(responses[str(status)], each, described)
    for status, response in responses.items():
        fields = described.contract.find_output_headers(status)
        own = {name: _build_header(words, schemas) for name, words in fields}
        response.update({"headers": own | response.get("headers", {})} if own else {})
    if common := _build_common_headers(described, schemas):
        for response in responses.values():
            response["headers"] = common | response.get("headers", {})
    return dict(sorted(responses.items()))


def _collect_middleware_attribute(
    described: RouteDescription, name: str
) -> list[Mapping[Any, Any]]:
    """Return an attribute of each middleware of a route that has it."""
    said = [getattr(entry, name, None) for entry in described.entries]
    return [one for one in said if one]


def _build_common_headers(described: RouteDescription, schemas: Schemas) -> JSONObject:
    """Return the header fields that middleware adds to every response."""
    made: JSONObject = {}
    for said in _collect_middleware_attribute(described, "openapi_headers"):
        for name, value in said.items():
            header = _build_header(value, schemas)
            made[name] = schemas.components.add_and_reference_header(name, header)
    return made


class _Answers:
    """Collects the content of each status by media type."""

    def __init__(self, schemas: Schemas) -> None:
        self.schemas = schemas
        self._content: dict[str, dict[str, list[Schema]]] = {}
        self._examples: dict[tuple[str, str], Any] = {}

    def add_content(
        self, status: str, media_type: str | None, schema: Schema | None = None
    ) -> None:
        content = self._content.setdefault(status, {})
        if media_type is not None and not _is_bodiless(status):
            content.setdefault(media_type, []).append(schema or {})

    def add_error(self, status: str) -> None:
        for media_type, made in build_error_content(self.schemas, status).items():
            self.add_content(status, media_type, made["schema"])
            if "example" in made:
                self._examples[status, media_type] = made["example"]

    def build_responses(self) -> JSONObject:
        return {status: self._build_response(status) for status in self._content}

    def _build_response(self, status: str) -> JSONObject:
        made: JSONObject = {"description": describe_status(status)}
        if content := self._content[status]:
            each = content.items()
            made["content"] = {media: _build_media_type(schemas) for media, schemas in each}
        for media, schemas in content.items():
            if (status, media) in self._examples and len(schemas) == 1:
                made["content"][media]["example"] = self._examples[status, media]
        return made


def _build_media_type(schemas: list[Schema]) -> JSONObject:
    # a media type always has a schema: generators of clients drop one without
    return {"schema": any_of(schemas)}


def describe_status(status: str) -> str:
    """Return the reason phrase of a status, as the description that OpenAPI requires."""
    if status in _RANGES:
        return _RANGES[status]
    return find_status_phrase(int(status), f"Status {status}")


_RANGES = {
    "1XX": "Information",
    "2XX": "Success",
    "3XX": "Redirection",
    "4XX": "Client error",
    "5XX": "Server error",
    "default": "Any other answer",
}


def _is_bodiless(status: str) -> bool:
    return status.isdigit() and int(status) in BODILESS


def _add_success(described: RouteDescription, found: _Answers) -> None:
    module, model = described.module, described.contract.find_output_type(None)
    node = read_return_type(described)
    if model is not None and not is_event_stream(node):
        status = module.status_code or _read_literal_tuple_status(node)
        item = find_declared_item_type(described.handler_function, module.response_model)
        if item is not None and find_stream_item_type(model) is None:
            schema = found.schemas.build_type_schema(model, "output")
            found.add_content(str(status or 200), NDJSON, schema)
            return
        for option in list_options_merging_discriminated(model):
            empty = tree.is_none(option) and status is None  # documented as 204
            _add_type_responses(found, option, None if empty else str(status or 200), described)
        return
    status = None if module.status_code is None else str(module.status_code)
    _add_type_responses(found, node, status, described)


def read_return_type(described: RouteDescription) -> tree.TypeNode:
    """Return the type of the response: the annotation, else EventStream or EMPTY."""
    handler = described.handler_function
    try:
        given = getattr(handler, "__annotations__", None)
        if given is None or hasattr(handler, "__wrapped__"):
            given = {"return": inspect.signature(handler).return_annotation}
        annotation: Any = given.get("return", EMPTY)
        if annotation is EMPTY and described.reading.events:
            return parse_annotation(EventStream)
        kind = inspect.Parameter.KEYWORD_ONLY
        answer = inspect.Parameter("answer", kind, annotation=annotation)
        return parse_annotation(resolve_annotation(answer, handler))
    except Exception:  # the annotation may use a name imported for the type checker only
        return ANY


def is_event_stream(node: tree.TypeNode) -> bool:
    """Return True if a type is an event stream."""
    return isinstance(node, tree.ForeignType) and _is_subclass(node.kind, EventStream)


def _is_subclass(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _read_literal_tuple_status(node: tree.TypeNode) -> int | None:
    if not isinstance(node, tree.TupleType) or len(node.items) < 2:
        return None
    codes = _read_literal_values(node.items[1])
    return int(codes[0]) if len(codes) == 1 and isinstance(codes[0], int) else None


def _read_literal_values(node: tree.TypeNode) -> tuple[Any, ...]:
    return node.members if isinstance(node, tree.Choice) and node.kind is None else ()


def _add_type_responses(
    found: _Answers, node: tree.TypeNode, status: str | None, described: RouteDescription
) -> None:
    """Add the responses for a type of the annotation."""
    kind: Any = getattr(node, "kind", None)
    if isinstance(node, tree.AnyType) and node.bare_annotation is not object:
        found.add_content(status or _ANY, None)
    elif tree.is_none(node):
        found.add_content(status or "204", None)
    elif isinstance(node, tree.TupleType) and node.items:
        _add_tuple_responses(found, node.items, described)
    elif isinstance(node, tree.ListType) and kind is tuple and node.bare_annotation is not tuple:
        found.add_content(_ANY, None)
    elif isinstance(node, tree.ForeignType) and _is_subclass(kind, Response):
        shown_status = _ANY if kind is Response else status or "200"
        for media_type in _list_media_types(node.kind, described):
            found.add_content(shown_status, media_type, build_untyped_schema(media_type, None))
        found.add_content(shown_status, None)
    elif kind in _PLAIN:
        found.add_content(status or "200", *_PLAIN[kind])
    elif (item := find_stream_item_type(node)) is not None:
        found.add_content(status or "200", NDJSON, found.schemas.build_type_schema(item, "output"))
    elif kind in STREAMS:
        found.add_content(status or "200", *_OCTETS)
    elif isinstance(node, tree.UnionType) and not is_discriminated(node):
        for option in list_options_merging_discriminated(node):
            _add_type_responses(found, option, status, described)
    else:
        found.add_content(status or "200", JSON, found.schemas.build_type_schema(node, "output"))


def _add_tuple_responses(
    found: _Answers, items: Sequence[tree.TypeNode], described: RouteDescription
) -> None:
    if len(items) not in (2, 3):
        found.add_content(_ANY, None)
        return
    for code in _read_literal_values(items[1]) or (_ANY,):
        text = str(int(code)) if isinstance(code, int) else _ANY
        _add_type_responses(found, items[0], text, described)


def _list_media_types(kind: type[Response], described: RouteDescription) -> list[str]:
    """Return the media types of a class of response: those that the handler writes, if it does."""
    if issubclass(kind, EventStream):
        return [EVENTS]
    if not issubclass(kind, (FileResponse, StreamingResponse)):
        return []
    written = dict.fromkeys(described.reading.media_types)
    known = [each for each in written if each is not None]
    return known if known and len(known) == len(written) else [OTHER]


def _collect_error_statuses(described: RouteDescription) -> set[int]:
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


def _merge_response(
    status: str, declared: Any, detected: JSONObject | None, schemas: Schemas
) -> JSONObject:
    """Merge the description of a status in the module into the detected one."""
    made: JSONObject = dict(detected or {"description": describe_status(status)})
    if isinstance(declared, str):
        declared = {"description": declared}
    elif not isinstance(declared, Mapping):
        declared = {"model": declared}
    table = cast("Mapping[str, Any]", declared)
    if table.get("description"):
        made["description"] = table["description"]
    if detected is None and "model" not in table and "media_type" not in table:
        if status[0] in "45":
            made["content"] = build_error_content(schemas, status)
    elif "model" in table or "media_type" in table:
        made["content"] = _build_declared_content(table, detected, schemas)
    if _is_bodiless(status):
        made.pop("content", None)
    if table.get("headers"):
        given = table["headers"].items()
        headers = {str(name): _build_header(value, schemas) for name, value in given}
        made["headers"] = made.get("headers", {}) | headers
    return made


def _add_examples(response: JSONObject, declared: Any, described: RouteDescription) -> None:
    """Add the examples of a status in the module, with the names of its model in JSON."""
    if not isinstance(declared, Mapping) or not declared.keys() & {"example", "examples"}:
        return
    table = cast("Mapping[str, Any]", declared)
    model = table.get("model")
    node = (
        parse_annotation(model) if model is not None else described.contract.find_output_type(None)
    )
    node = read_return_type(described) if node is None else node
    if isinstance(node, tree.TupleType) and node.items:
        node = node.items[0]
    made: JSONObject = {}
    if "example" in table:
        made["example"] = encode_example(node, table["example"])
    if "examples" in table:
        made["examples"] = _encode_named_examples(node, table["examples"])
    for media in response.get("content", {}).values():
        media.pop("example", None)
        media |= made


def _encode_named_examples(node: tree.TypeNode, examples: Any) -> Any:
    if not isinstance(examples, Mapping):
        return to_json_value(examples)
    made: JSONObject = {}
    for name, example in cast("Mapping[str, Any]", examples).items():
        made[str(name)] = to_json_value(example)
        if isinstance(example, Mapping) and "value" in example:
            value = cast("Any", example)["value"]
            made[str(name)] = to_json_value({**example, "value": encode_example(node, value)})
    return made


def _build_declared_content(
    declared: Mapping[str, Any], detected: JSONObject | None, schemas: Schemas
) -> JSONObject:
    model = declared.get("model")
    media_type, schema = _PLAIN.get(model, (JSON, None))
    media_type = declared.get("media_type") or media_type
    if model is None:
        schema = build_untyped_schema(media_type, detected)
    elif schema is None:
        schema = schemas.build_type_schema(parse_annotation(model), "output")
    return {media_type: {"schema": schema}}


def _build_header(declared: Any, schemas: Schemas) -> JSONObject:
    if isinstance(declared, str):
        return {"description": declared, "schema": {"type": "string"}}
    if isinstance(declared, Mapping):
        return dict(to_json_value(declared) or {"schema": {}})
    return {"schema": schemas.build_type_schema(parse_annotation(declared), "output")}
