"""The content of error responses: the error format of the application, or problem documents.

Problem documents (RFC 9457) are described as `treefold_http._failures.problems` renders them.
"""

from __future__ import annotations

from functools import cache

from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.errors import HTTPError
from treefold_http.openapi._components import Components, Schema
from treefold_http.openapi._schemas import Schemas

PROBLEM = "application/problem+json"

_TEXT: Schema = {"type": "string"}
_MEMBERS: dict[str, Schema] = {
    "type": {"type": "string", "format": "uri-reference"},
    "title": _TEXT,
    "status": {"type": "integer", "minimum": 400, "maximum": 599},
    "detail": _TEXT,
    "instance": {"type": "string", "description": "The path that was asked for."},
    "request_id": {"type": "string", "description": "As in X-Request-ID and in the log."},
}
_ENTRY: Schema = {
    "type": "object",
    "properties": {
        "loc": {
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "description": "The source, then the way to the value.",
        },
        "msg": _TEXT,
        "type": _TEXT,
        "ctx": {"type": "object", "description": "The limit that the value missed."},
    },
    "required": ["loc", "msg", "type"],
}


def build_error_content(schemas: Schemas, status: str) -> JSONObject:
    """Return the content of an error response: media type to schema and example.

    Args:
        status: a status, or a range such as `4XX`; the example says the status that it stands for.
    """
    if (form := schemas.error_format) is not None:
        return {form.media_type: {"schema": schemas.build_type_schema(form.model, "output")}}
    number = int(status) if status.isdigit() else 0
    made: JSONObject = {"schema": _find_or_add_problem_schema(schemas.components, number)}
    if 400 <= number <= 599:
        made["example"] = dict(_build_problem_example(number))
    return {PROBLEM: made}


@cache
def _build_problem_example(status: int) -> JSONObject:
    title = HTTPError(status).title
    shown: JSONObject = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": title,
        "instance": "/",
        "request_id": "5f3a1c0e9b7d4e21",
    }
    if status == 422:
        shown["detail"] = "The request is not valid: query.name: name is required"
        message = {"msg": "name is required", "type": "missing"}
        shown["errors"] = [{"loc": ["query", "name"], **message}]
    return shown


def _find_or_add_problem_schema(components: Components, status: int) -> Schema:
    """Return the schema of the problem document of a status; the one of 422 has `errors`."""
    name = "ValidationProblem" if status == 422 else "Problem"
    if (known := components.find_reference(("problem", name))) is not None:
        return known
    members = {key: dict(schema) for key, schema in _MEMBERS.items()}
    if status == 422:
        members["errors"] = {"type": "array", "items": _ENTRY}
    node = components.add_node(("problem", name), name)
    about: Schema = {"type": "object", "description": "An error (RFC 9457)."}
    components.set_schema(node, {**about, "properties": members, "required": list(_MEMBERS)})
    return components.make_reference(node)
