"""The schemas of error documents (RFC 9457), as `treefold_http._failures.problems` renders them."""

from __future__ import annotations

from treefold_http.openapi._components import Components, Schema

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
    },
    "required": ["loc", "msg", "type"],
}


def problem_schema(components: Components, status: int) -> Schema:
    """Return the schema of the problem document of a status; the one of 422 has `errors`."""
    name = "ValidationProblem" if status == 422 else "Problem"
    known = components.known(("problem", name))
    if known is not None:
        return known
    members = {key: dict(schema) for key, schema in _MEMBERS.items()}
    if status == 422:
        members["errors"] = {"type": "array", "items": _ENTRY}
    node = components.add(("problem", name), name)
    components.fill(
        node,
        {
            "type": "object",
            "description": "An error (RFC 9457).",
            "properties": members,
            "required": list(_MEMBERS),
        },
    )
    return components.refer(node)
