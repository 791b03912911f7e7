"""Messages of a WebSocket, found in the source of its handler.

`websocket.iter_json(Move)` in a handler means that it receives such JSON, `send_text` that it sends
text. `response_model` is the type of JSON that it sends.
"""

from __future__ import annotations

from treefold_http._types.read import parse_annotation
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import Schema, any_of
from treefold_http.openapi._routes import RouteDescription
from treefold_http.openapi._schemas import Schemas

MEDIA_TYPES = {
    "text": "text/plain",
    "bytes": "application/octet-stream",
    "json": "application/json",
}
_SCHEMAS: dict[str, Schema] = {
    "text": {"type": "string"},
    "bytes": {"type": "string", "format": "binary"},
    "json": {},
}


def build_message_schemas(found: RouteDescription, schemas: Schemas) -> JSONObject:
    """Return `receive` and `send`: schemas of messages by media type, as seen from the server.

    Either is left out if the source of the handler does not show it.
    """
    calls = found.reading.calls
    received = {kind for kind in MEDIA_TYPES if {f"receive_{kind}", f"iter_{kind}"} & calls}
    sent = {kind for kind in MEDIA_TYPES if f"send_{kind}" in calls}
    model = found.contract.find_output_type(None)
    made: JSONObject = {}
    if received:
        made["receive"] = {MEDIA_TYPES[kind]: dict(_SCHEMAS[kind]) for kind in sorted(received)}
        if "json" in received:
            models = map(parse_annotation, found.reading.models)
            made["receive"][MEDIA_TYPES["json"]] = any_of(map(schemas.build_body_schema, models))
    if sent or model is not None:
        made["send"] = {MEDIA_TYPES[kind]: dict(_SCHEMAS[kind]) for kind in sorted(sent)}
    if model is not None:
        made["send"][MEDIA_TYPES["json"]] = schemas.build_type_schema(model, "output")
    return made
