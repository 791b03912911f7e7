"""Write the OpenAPI 3.1 document of one version, or of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from treefold_http._description.credentials import build_security_requirements
from treefold_http._description.locations import without_version
from treefold_http._description.routes import RouteDescription
from treefold_http._failures.error_format import ErrorFormat
from treefold_http._injection.secured import Security
from treefold_http._plans.plans import WEBSOCKET
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import Components
from treefold_http.openapi._info import Info
from treefold_http.openapi._metadata import build_operation_metadata, list_tags
from treefold_http.openapi._operations import (
    build_operation,
    build_parameters,
)
from treefold_http.openapi._schemas import Schemas
from treefold_http.openapi._sockets import build_message_schemas

VERSION = "3.1.0"


def build_openapi_document(
    routes: Sequence[RouteDescription],
    info: Info,
    *,
    version: str | None = None,
    unversioned: bool = False,
    error_format: ErrorFormat | None = None,
) -> JSONObject:
    """Return the document.

    Args:
        version: include only the routes of this version.
        unversioned: True for paths without the version.
        error_format: the form of all error responses; None for problem documents.
    """
    shown = [found for found in routes if version in (None, found.route.version)]
    if unversioned:
        shown = [replace(found, place=without_version(found.place)) for found in shown]
    components = Components()
    schemas = Schemas(components, error_format)
    paths: dict[str, JSONObject] = {}
    for found in shown:
        item = paths.setdefault(found.place.path, {})
        if found.route.method == WEBSOCKET:
            item["x-websocket"] = _describe_socket(found, schemas)
        else:
            item[found.route.method.lower()] = build_operation(found, schemas)
    document: JSONObject = {"openapi": VERSION, "info": info.build_info_object(version)}
    document["paths"] = dict(sorted(paths.items()))
    operations = [found for found in shown if found.route.method != WEBSOCKET]
    if tags := sorted({tag for found in operations for tag in list_tags(found)}):
        document["tags"] = [{"name": tag} for tag in tags]
    parts = {
        "schemas": components.resolve_named_schemas(),
        "headers": components.headers,
        "securitySchemes": collect_security_schemes(shown),
    }
    if any(parts.values()):
        document["components"] = {name: part for name, part in parts.items() if part}
    return document


def _describe_socket(found: RouteDescription, schemas: Schemas) -> JSONObject:
    made = build_operation_metadata(found)
    if parameters := build_parameters(found, schemas):
        made["parameters"] = parameters
    if security := build_security_requirements(found.security):
        made["security"] = security
    made.update(build_message_schemas(found, schemas))
    return made


def collect_security_schemes(routes: Sequence[RouteDescription]) -> dict[str, Mapping[str, Any]]:
    """Return the security schemes by name."""
    found: dict[str, Mapping[str, Any]] = {}
    for route in routes:
        demand: Security
        for demand in route.security:
            found.setdefault(demand.name, demand.scheme)
    return dict(sorted(found.items()))
