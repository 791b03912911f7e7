"""The page for browsers in development when no route serves a request: the reason and the remedy.

It shows the output of `treefold why`, from the same explanation. All values in it are escaped; it
has no script and loads nothing. Production never uses it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from treefold_http._responses.response import Response
from treefold_http._wire.root_path import below_root

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._wire.errors import HTTPError
    from treefold_router import Line

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{status} {title}</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 60rem; margin: 3rem auto; padding: 0 1.5rem }}
h1 {{ font-size: 1.4rem; font-weight: 600; overflow-wrap: anywhere }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; vertical-align: top; padding: .35rem 1rem .35rem 0;
  border-top: 1px solid color-mix(in srgb, currentColor 18%, transparent) }}
th {{ white-space: nowrap; font-weight: 600 }}
td {{ font-family: ui-monospace, monospace; font-size: .9rem; overflow-wrap: anywhere }}
footer {{ margin-top: 2rem; font-size: .85rem; opacity: .75 }}
</style>
</head>
<body>
<main>
<h1>{status} {title}: {method} {path}</h1>
<table>
{rows}
</table>
</main>
<footer>Shown to browsers in development only; other clients get the problem document. The same in a
terminal: <code>{command}</code>.{docs} Request {id}</footer>
</body>
</html>
"""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-store",
    "Vary": "Accept",
}


def render_not_found_page(error: HTTPError, connection: Connection) -> Response | None:
    """Explain a 404 or 405 of the route table to a browser.

    Returns:
        The page; None for another error, or if the client does not accept HTML.
    """
    if error is not getattr(connection, "fallback", None) or error.status not in (404, 405):
        return None
    if not _wants_html(connection.headers.getlist("accept")):
        return None
    from treefold_router import explanation_lines  # not imported in production

    scope = connection.scope
    path = below_root(scope.get("raw_path") or scope["path"], scope.get("root_path", ""))
    app = connection.app
    found = app.table.explain(scope["method"], path, default_version=app.default_version)
    shown = {
        "status": str(error.status),
        "title": error.title,
        "method": found.method,
        "path": found.path,
        "command": shlex.join(["treefold", "why", found.method, found.path]),
        "id": connection.id,
    }
    safe = {name: escape(text) for name, text in shown.items()}
    docs = _render_docs_link(scope.get("root_path", "")) if app.has_docs else ""
    text = _PAGE.format(rows=_render_html_table_rows(explanation_lines(found)), docs=docs, **safe)
    body = text.encode("utf-8", "backslashreplace").decode()
    return Response.html(body, status=error.status, headers={**_HEADERS, **error.headers})


def _render_docs_link(root_path: str) -> str:
    address = quote(root_path.rstrip("/") + "/docs")
    return f' All routes: <a href="{escape(address)}">{escape(address)}</a>.'


def _wants_html(accept_headers: Iterable[str]) -> bool:
    parts = (part for field in accept_headers for part in field.split(","))
    types = (part.partition(";")[0].strip().lower() for part in parts)
    return "text/html" in types


def _render_html_table_rows(lines: Iterable[Line]) -> str:
    return "\n".join(
        f"<tr><th scope=row>{escape(line.label)}</th><td>{escape(line.text)}</td></tr>"
        for line in lines
    )
