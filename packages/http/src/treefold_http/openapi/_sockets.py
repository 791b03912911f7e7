"""Schemas of the messages of a WebSocket."""

from __future__ import annotations

from treefold_http._description.messages import MessageDescription, list_messages
from treefold_http._description.routes import RouteDescription
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import Schema, any_of
from treefold_http.openapi._schemas import Schemas

MEDIA_TYPES = {
    "text": "text/plain",
    "bytes": "application/octet-stream",
    "json": "application/json",
}
_SCHEMAS: dict[str, Schema] = {
    "text": {"type": "string"},
    "bytes": {"type": "string", "format": "binary"},
}


def build_message_schemas(found: RouteDescription, schemas: Schemas) -> JSONObject:
    """Return `receive` and `send`: schemas of messages by media type, as seen from the server.

    Either is left out if the source of the handler does not show it.
    """
    made: JSONObject = {}
    for message in list_messages(found):
        side = made.setdefault(message.side, {})
        side[MEDIA_TYPES[message.kind]] = _build_message_schema(message, schemas)
    return made


def _build_message_schema(message: MessageDescription, schemas: Schemas) -> Schema:
    if message.kind != "json":
        return dict(_SCHEMAS[message.kind])
    if message.side == "send":
        return schemas.build_type_schema(message.types[0], "output") if message.types else {}
    return any_of(map(schemas.build_body_schema, message.types))
