"""`treefold why METHOD PATH`: how a request finds its route, or why it does not.

Walks the table built from names alone. Boot files and the one file that serves are loaded, because
a file that does not load answers 500; nothing else is imported, and no server runs. The
explanation is made in treefold-router.
"""

import dataclasses
import json
from typing import Annotated, Any
from urllib.parse import urlsplit

from treefold_cli._checks.served_paths import PathExplanation, explain_path
from treefold_cli._console.completion import complete_methods, complete_urls
from treefold_cli._console.errors import (
    FAILURE,
    MISUSE,
    OK,
    CommandError,
    translate_to_command_error,
)
from treefold_cli._console.options import AppDir, AsJson, make_argument
from treefold_cli._console.output import print_line
from treefold_cli._console.project import require_api_folder
from treefold_router import METHODS, Line, RouterError, RouteTable, explanation_lines, method_of


def why(
    method: Annotated[str, make_argument("METHOD", "An HTTP method, or socket.", complete_methods)],
    path: Annotated[
        str, make_argument("PATH", "The path of the request, such as /v1/user/42.", complete_urls)
    ],
    as_json: AsJson = False,
    app_dir: AppDir = ".",
) -> int:
    """Explain which file serves a request, or why none does.

    Shows the walk through the tree, skipped files, near misses, other versions, the middleware that
    runs, the command that would add the route, and the page of the documentation. Exit code 1 where
    nothing serves the request.
    """
    if (verb := method_of(method)) is None:
        known = ", ".join(name.lower() for name in METHODS)
        raise CommandError(f"Unknown method {method!r}; use one of {known}, socket", code=MISUSE)
    api = require_api_folder(app_dir)
    with translate_to_command_error(RouterError):
        table = RouteTable.scan(api)
    served = explain_path(api.parent, table, verb, _parse_raw_path(path))
    if as_json:
        print_line(json.dumps(_make_explanation_record(served)))
    else:
        _print_explanation(served)
    return OK if served.status in _SERVED else FAILURE


_SERVED = (200, 204)
_REFUSED = {
    0: "served by {}",
    404: "404: {} has nothing there",
    405: "405: {} answers GET and HEAD only",
}


def _parse_raw_path(typed: str) -> bytes:
    """Take a path, or the path of a whole address; the query says nothing about the route."""
    try:
        path = urlsplit(typed).path if "://" in typed else typed.partition("?")[0]
    except ValueError as error:
        raise CommandError(f"Address {typed!r} cannot be read: {error}", code=MISUSE) from error
    if not path.startswith("/"):
        raise CommandError(f"Path {typed!r} must start with '/', such as '/v1/user'", code=MISUSE)
    return path.encode(errors="surrogateescape")


def _print_explanation(served: PathExplanation) -> None:
    print_line(f"{served.found.method} {served.found.path}")
    if served.root_path:
        print_line(f"  the prefix {served.root_path} is cut (setting root_path)")
    if served.prefix:
        print_line(f"  answer  {_REFUSED[served.refusal].format(served.text)}")
        if served.guards:
            print_line(f"  guards  {_format_guards(served)}")
        if served.refusal:
            print_line(f"  see     treefold docs {_choose_page(served)}")
        return
    lines = list(explanation_lines(served.found))
    if served.guards:
        lines.append(Line("guards", _format_guards(served)))
    if served.status not in _SERVED:
        lines.append(Line("see", f"treefold docs {_choose_page(served)}"))
    width = max(len(line.label) for line in lines)
    for line in lines:
        print_line(f"  {line.label:{width}}  {line.text}")


def _choose_page(served: PathExplanation) -> str:
    """Return the page, or its section, that explains why nothing serves the request."""
    found = served.found
    if served.prefix:
        return "mounting"
    if found.gone or found.unserved or found.unversioned or found.versions:
        return "versions"
    is_broken = found.status == 500
    return "handlers#a-handler-module" if is_broken else "handlers#rules-of-files-and-paths"


def _format_guards(served: PathExplanation) -> str:
    return ", ".join(map(str, served.guards))


def _make_explanation_record(served: PathExplanation) -> dict[str, Any]:
    found = served.found

    def make_route_record(value: Any) -> dict[str, str]:
        return {"method": value.method, "url": value.template, "file": f"Api/{value.file}"}

    record: dict[str, Any] = {
        "method": found.method,
        "path": found.path,
        "status": served.status,
        "route": None if found.route is None else make_route_record(found.route),
        "steps": [dataclasses.asdict(step) for step in found.steps],
        "error": found.fault or None,
        "methods": found.methods,
        "duplicates": [f"Api/{file}" for file in found.duplicates],
        "unversioned": found.unversioned,
        "default_version": found.default_version or None,
        "mount": served.prefix or None,
        "root_path": served.root_path or None,
        "guards": [dataclasses.asdict(guard) for guard in served.guards],
        "shadowed": [make_route_record(each) for each in found.shadowed],
        "skipped": [{"file": f"Api/{each.file}", "reason": each.reason} for each in found.skipped],
        "near": [make_route_record(each) for each in found.near],
        "versions": [make_route_record(each) for each in found.versions],
        "file": f"Api/{found.file}" if found.file else None,
        "create": found.create or None,
    }
    if found.gone:
        record["gone"] = [
            {"file": f"Api/{one.file}", "mark": f"Api/{one.mark}"} for one in found.gone
        ]
    if found.unserved:
        record["unserved"] = found.unserved
    if served.status not in _SERVED:
        record["docs"] = _choose_page(served)
    return record
