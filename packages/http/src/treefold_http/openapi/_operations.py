"""Write the Operation Object of a route: parameters, body and responses (OpenAPI 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from treefold_http._description.credentials import build_security_requirements
from treefold_http._description.made_responses import EVENTS, JSON
from treefold_http._description.routes import RouteDescription
from treefold_http._headers.media_types import OTHER
from treefold_http._injection.contract import Input
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import Schema, add_keywords, build_object_schema
from treefold_http.openapi._constraints import with_default
from treefold_http.openapi._media_types import BINARY, TEXT
from treefold_http.openapi._metadata import build_operation_metadata
from treefold_http.openapi._responses import build_operation_responses
from treefold_http.openapi._schemas import Schemas

# The characters that the router accepts in a path segment.
_SEGMENT: Schema = {"type": "string", "minLength": 1, "pattern": "^[^\\u0000-\\u001f\\u007f]+$"}
# Names of parts that every client can send; not all clients escape quotes.
_PART_NAMES: Schema = {"pattern": '^[^\\u0000-\\u001f\\u007f"\\\\]+$'}


def build_operation(described: RouteDescription, schemas: Schemas) -> JSONObject:
    """Return the Operation Object of a route."""
    made = build_operation_metadata(described)
    if described.module.summary is None and "summary" not in made:
        made["summary"] = f"{described.route.method} {described.place.path}"
    if parameters := build_parameters(described, schemas):
        made["parameters"] = parameters
    if (body := _build_request_body(described, schemas)) is not None:
        made["requestBody"] = body
    made["responses"] = build_operation_responses(described, schemas)
    made["security"] = build_security_requirements(described.security)
    if any(EVENTS in answer.get("content", ()) for answer in made["responses"].values()):
        made["x-event-stream"] = {"data": schemas.build_output_schema(described.contract)}
    return made


def build_parameters(described: RouteDescription, schemas: Schemas) -> list[JSONObject]:
    """Return the Parameter Objects of a route: path parameters in order, then the others."""
    typed = {found.name: found for found in described.select_inputs("path")}
    made: list[JSONObject] = []
    for name, known in described.place.parameters.items():
        found = typed.get(known)
        schema = TEXT if found is None else _build_input_schema(found, schemas)
        if schema == TEXT:
            schema = _SEGMENT
        made.append(_build_parameter(name, "path", schema, required=True))
        if name != known:  # a spelling that templates of paths cannot have
            made[-1].setdefault("description", known)
    for found in described.select_inputs("query", "header", "cookie"):
        if found.place == "header" and found.name.lower() in _NO_PARAMETERS:
            continue
        schema = _build_input_schema(found, schemas)
        made.append(_build_parameter(found.name, found.place, schema, required=found.is_required))
    return made


_NO_PARAMETERS = ("accept", "content-type", "authorization")
"""Header fields that OpenAPI describes elsewhere; it ignores parameters of these names."""


def _build_parameter(name: str, place: str, schema: Schema, *, required: bool) -> JSONObject:
    made: JSONObject = {"name": name, "in": place, "required": required}
    if "$ref" not in schema:
        schema = dict(schema)
        if description := schema.pop("description", None):
            made["description"] = description
        if schema.pop("deprecated", False):
            made["deprecated"] = True
    made["schema"] = schema
    return made


def _build_input_schema(found: Input, schemas: Schemas) -> Schema:
    schema = without_null(schemas.build_type_schema(found.type, "input"))
    if "uniqueItems" in schema:  # a set takes repeated texts as one
        schema = {key: value for key, value in schema.items() if key != "uniqueItems"}
    if found.is_required or found.default is None:
        return _require_items(schema, found)
    return with_default(schema, found.default)


def without_null(schema: Schema) -> Schema:
    """Remove null from the options of a schema: a text in a URL or header field cannot be null."""
    options: list[Schema] = schema.get("anyOf", [])
    kept = [option for option in options if option.get("type") != "null"]
    if len(kept) == len(options):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(kept) == 1:
        return add_keywords(kept[0], rest)
    return {**rest, "anyOf": kept}


def _build_request_body(described: RouteDescription, schemas: Schemas) -> JSONObject | None:
    models = described.select_inputs("json")
    fields = described.select_inputs("form", "file")
    content: JSONObject = {}
    if models:
        found = [schemas.build_body_schema(model.type) for model in models]
        content[JSON] = {"schema": found[0] if len(found) == 1 else {"allOf": found}}
    if fields:
        form = {"schema": _build_form_schema(fields, schemas)}
        if not any(field.place == "file" for field in fields):
            content["application/x-www-form-urlencoded"] = form
        parts = {**form["schema"], "propertyNames": _PART_NAMES}
        content["multipart/form-data"] = {"schema": parts}
    if content:
        required = any(sent.is_required for sent in (*models, *fields))
        return {"required": required, "content": content}
    return _build_inferred_body(described.reading.calls)


def _build_form_schema(fields: Sequence[Input], schemas: Schemas) -> Schema:
    properties: dict[str, Schema] = {}
    for field in fields:
        is_file = field.place == "file"
        properties[field.name] = (
            _build_file_schema(field) if is_file else _build_input_schema(field, schemas)
        )
    made = build_object_schema(properties, [field.name for field in fields if field.is_required])
    closed = any(field.is_closed for field in fields)
    return {**made, "additionalProperties": False} if closed else made


def _build_file_schema(field: Input) -> Schema:
    return _require_items({"type": "array", "items": BINARY}, field) if field.many else BINARY


def _require_items(schema: Schema, found: Input) -> Schema:
    """Return the schema of a list, not empty if it is required: no value at all is a missing one.

    An empty list cannot be sent in a query, a field or a form; the server answers 422 to it.
    """
    if not found.is_required or schema.get("type") != "array":
        return schema
    return {**schema, "minItems": max(1, schema.get("minItems", 1))}


def _build_inferred_body(called_methods: frozenset[str]) -> JSONObject | None:
    """Return the body of a handler that reads it itself: its media type, of any content."""
    content: JSONObject = {}
    if "json" in called_methods:
        content[JSON] = {"schema": {}}  # generators drop a media type without a schema
    if "form" in called_methods:
        content["application/x-www-form-urlencoded"] = {"schema": {"type": "object"}}
    if called_methods & {"form", "files", "parts"}:
        parts = {"type": "object", "propertyNames": _PART_NAMES}
        content["multipart/form-data"] = {"schema": parts}
    if not content and called_methods & {"body", "stream"}:
        # Not `*/*`, which generators of clients refuse together with the operation.
        content[OTHER] = {"schema": BINARY}
    return {"required": False, "content": content} if content else None
