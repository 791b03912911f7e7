"""`treefold routes`: the table, from names alone.

Imports no handler and does not need the application: a project whose handlers are broken has
routes all the same.
"""

import json
from collections.abc import Sequence
from typing import Any

from treefold_cli._console.errors import OK, translate_to_command_error
from treefold_cli._console.options import AppDir, AsJson
from treefold_cli._console.output import print_error, print_line
from treefold_cli._console.project import require_api_folder
from treefold_cli._console.route_lines import sort_by_url
from treefold_cli._console.version_stages import format_stage, make_stage_record
from treefold_router import Route, RouterError, RouteTable, format_route_file


def routes(app_dir: AppDir = ".", as_json: AsJson = False) -> int:
    """List every method, URL and its file, and the state of its version.

    What a handler module says of its own end is in the document of the API.
    """
    with translate_to_command_error(RouterError):
        table = RouteTable.scan(require_api_folder(app_dir))
    found = sort_by_url(table.routes)
    if as_json:
        print_line(json.dumps([_make_route_record(table, route) for route in found]))
    elif found:
        _print_routes(table, found)
    else:
        print_error("No routes; make one with 'treefold create user get'")
    return OK


def _make_route_record(table: RouteTable, route: Route) -> dict[str, Any]:
    record: dict[str, Any] = {
        "method": route.method,
        "url": route.template,
        "file": f"Api/{route.file}",
        "version": route.version,
        "parameters": list(route.parameters),
    }
    if route.layer != route.version:
        record["layer"] = route.layer
    return record | make_stage_record(table, route.version)


def _print_routes(table: RouteTable, found: Sequence[Route]) -> None:
    method = max(len(route.method) for route in found)
    url = max(len(route.template) for route in found)
    for route in found:
        stage = format_stage(table, route.version)
        shown = f"{format_route_file(route)}  {stage}" if stage else format_route_file(route)
        print_line(f"{route.method:{method}}  {route.template:{url}}  {shown}")
