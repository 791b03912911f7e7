"""`treefold routes`: the table, from names alone.

Imports no handler and does not need the application: a project whose handlers are broken has
routes all the same.
"""

import json
from collections.abc import Sequence

from treefold_cli._errors import OK, translated
from treefold_cli._options import AppDir, AsJson
from treefold_cli._output import complain, write
from treefold_cli._project import find_api
from treefold_cli._table import by_url
from treefold_router import Route, RouterError, RouteTable


def routes(
    app_dir: AppDir = ".",
    as_json: AsJson = False,
) -> int:
    """List every method, URL and its file."""
    with translated(RouterError):
        table = RouteTable.scan(find_api(app_dir))
    found = by_url(table.routes)
    if as_json:
        write(json.dumps([_record(route) for route in found]))
    elif found:
        _print(found)
    else:
        complain("No routes; make one with 'treefold create user get'")
    return OK


def _record(route: Route) -> dict[str, str | list[str]]:
    return {
        "method": route.method,
        "url": route.template,
        "file": f"Api/{route.file}",
        "version": route.version,
        "parameters": list(route.parameters),
    }


def _print(found: Sequence[Route]) -> None:
    method = max(len(route.method) for route in found)
    url = max(len(route.template) for route in found)
    for route in found:
        write(f"{route.method:{method}}  {route.template:{url}}  Api/{route.file}")
