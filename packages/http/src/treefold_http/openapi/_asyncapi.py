"""The AsyncAPI 3 document: sockets and event streams, of all versions or of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treefold_http._description.answers import is_event_stream, read_return_type
from treefold_http._description.made_responses import EVENTS
from treefold_http._description.routes import RouteDescription
from treefold_http._plans.plans import WEBSOCKET
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import Components, Schema, build_object_schema
from treefold_http.openapi._info import Info
from treefold_http.openapi._metadata import build_operation_metadata
from treefold_http.openapi._operations import build_parameters
from treefold_http.openapi._schemas import Schemas
from treefold_http.openapi._sockets import build_message_schemas

VERSION = "3.0.0"


def build_asyncapi_document(
    routes: Sequence[RouteDescription], info: Info, *, version: str | None = None
) -> JSONObject:
    """Return the document.

    Args:
        version: only the routes of this one.
    """
    components = Components()
    schemas = Schemas(components)
    parts: dict[str, JSONObject] = {"channels": {}, "operations": {}}
    for found in routes:
        if version not in (None, found.route.version):
            continue
        if found.route.method == WEBSOCKET:
            _add_socket_channel(found, schemas, **parts)
        elif is_event_stream(read_return_type(found)):
            _add_event_stream_channel(found, schemas, **parts)
    document: JSONObject = {
        "asyncapi": VERSION,
        "info": info.build_info_object(version),
        "defaultContentType": "application/json",
        **parts,
    }
    if named := components.resolve_named_schemas():
        document["components"] = {"schemas": named}
    return document


def _add_socket_channel(
    found: RouteDescription, schemas: Schemas, channels: JSONObject, operations: JSONObject
) -> None:
    sides: Mapping[str, Mapping[str, Schema]] = build_message_schemas(found, schemas) or {
        "receive": {"application/json": {}}
    }
    messages = {
        f"{side}_{media.partition('/')[2].replace('-', '_')}": {
            "contentType": media,
            "payload": schema,
        }
        for side, media_types in sides.items()
        for media, schema in media_types.items()
    }
    channel = _build_channel(found, messages)
    parameters = build_parameters(found, schemas)
    bindings: JSONObject = {"method": "GET"}
    for place, key in (("query", "query"), ("header", "headers")):
        chosen = [parameter for parameter in parameters if parameter["in"] == place]
        if chosen:
            bindings[key] = _build_parameters_schema(chosen)
    channel["bindings"] = {"ws": bindings}
    channels[found.id] = channel
    for side in sides:
        shown = [name for name in messages if name.startswith(f"{side}_")]
        operations[f"{found.id}_{side}"] = _build_operation(found, side, shown)


def _build_parameters_schema(parameters: Sequence[Mapping[str, Any]]) -> Schema:
    required = [parameter["name"] for parameter in parameters if parameter["required"]]
    return build_object_schema({each["name"]: each["schema"] for each in parameters}, required)


def _add_event_stream_channel(
    found: RouteDescription, schemas: Schemas, channels: JSONObject, operations: JSONObject
) -> None:
    payload = schemas.build_output_schema(found.contract)
    message = {"event": {"contentType": EVENTS, "payload": payload}}
    channels[found.id] = _build_channel(found, message)
    operation = _build_operation(found, "send", ["event"])
    operation["bindings"] = {"http": {"method": found.route.method}}
    operations[f"{found.id}_send"] = operation


def _build_channel(found: RouteDescription, messages: Mapping[str, Any]) -> JSONObject:
    words = build_operation_metadata(found)
    made: JSONObject = {"address": found.place.path, "messages": dict(messages)}
    made |= {key: words[key] for key in ("summary", "description") if key in words}
    if "deprecated" in words:  # a channel of AsyncAPI has no such field
        made["x-deprecated"] = True
        made |= {key: words[key] for key in ("x-sunset", "x-deprecation") if key in words}
    if "tags" in words:
        made["tags"] = [{"name": tag} for tag in words["tags"]]
    if found.place.parameters:
        made["parameters"] = {name: {} for name in found.place.parameters}
    return made


def _build_operation(found: RouteDescription, action: str, messages: Sequence[str]) -> JSONObject:
    channel = f"#/channels/{found.id}"
    references = [{"$ref": f"{channel}/messages/{name}"} for name in messages]
    made: JSONObject = {"action": action, "channel": {"$ref": channel}}
    made["messages"] = references
    words = build_operation_metadata(found)
    if "summary" in words:
        made["summary"] = words["summary"]
    return made
