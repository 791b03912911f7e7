"""Write the responses of an operation: each answer of the description, and what the module says.

A handler that does not declare its response is documented with `2XX`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from treefold_http._description.answers import (
    PLAIN_MEDIA_TYPES,
    AnswerDescription,
    collect_error_statuses,
    is_bodiless,
    list_success_answers,
    read_return_type,
)
from treefold_http._description.constraint_keywords import to_json_value
from treefold_http._description.made_responses import JSON
from treefold_http._description.routes import RouteDescription
from treefold_http._headers.status_phrases import find_status_phrase
from treefold_http._types import tree
from treefold_http._types.read import parse_annotation
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import Schema, any_of
from treefold_http.openapi._examples import encode_example
from treefold_http.openapi._media_types import build_untyped_schema
from treefold_http.openapi._problems import build_error_content
from treefold_http.openapi._schemas import Schemas


def build_operation_responses(described: RouteDescription, schemas: Schemas) -> JSONObject:
    """Return the Responses Object of an operation."""
    found = _Answers(schemas)
    for answer in list_success_answers(described):
        found.add_answer(answer)
    for status in sorted(collect_error_statuses(described)):
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

    def add_answer(self, answer: AnswerDescription) -> None:
        content = self._content.setdefault(answer.status, {})
        if answer.media_type and answer.has_content:
            content.setdefault(answer.media_type, []).append(self._build_schema(answer))

    def _build_schema(self, answer: AnswerDescription) -> Schema:
        if answer.type is not None:
            return self.schemas.build_type_schema(answer.type, "output")
        return build_untyped_schema(answer.media_type or "", None)

    def add_error(self, status: str) -> None:
        content = self._content.setdefault(status, {})
        for media_type, made in build_error_content(self.schemas, status).items():
            content.setdefault(media_type, []).append(made["schema"])
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
    if is_bodiless(status):
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
    plain = PLAIN_MEDIA_TYPES.get(model)
    media_type = declared.get("media_type") or plain or JSON
    if model is None:
        schema = build_untyped_schema(media_type, detected)
    elif plain is not None:
        schema = build_untyped_schema(plain, None)
    else:
        schema = schemas.build_type_schema(parse_annotation(model), "output")
    return {media_type: {"schema": schema}}


def _build_header(declared: Any, schemas: Schemas) -> JSONObject:
    if isinstance(declared, str):
        return {"description": declared, "schema": {"type": "string"}}
    if isinstance(declared, Mapping):
        return dict(to_json_value(declared) or {"schema": {}})
    return {"schema": schemas.build_type_schema(parse_annotation(declared), "output")}
