"""The one HTML page: a frame that holds URLs and settings, and no content of a document.

The content of documents is fetched as JSON and written as text by `ui/`. The page itself holds only
their names and the title, escaped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from treefold_docs_ui._records import Document

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content security policy: load from the own origin only, run no inline script."""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{title}</title>
<link rel="icon" type="image/svg+xml" href="{assets}/icon.svg">
<script src="{assets}/theme.js"></script>
<link rel="stylesheet" href="{assets}/style.css">
{preloads}
<script type="module" src="{assets}/main.js"></script>
</head>
<body data-config="{config}">
<noscript>These pages need JavaScript. The documents themselves: {links}</noscript>
</body>
</html>
"""


def render_page(
    base: str,
    *,
    title: str,
    documents: Sequence[Document],
    digest: str,
    modules: Sequence[str],
    has_site: bool,
    has_log: bool,
) -> bytes:
    """Render the page.

    Args:
        base: relative URL from the address of the page to the folder of the docs, with a slash at
            its end.
        modules: names of the modules that the page imports, for preloading.
    """
    assets = f"{base}assets/{digest}"
    config = {
        "title": title,
        "base": base,
        "assets": assets,
        "documents": [
            {"name": each.name, "url": each.url, "asyncapi": each.asyncapi} for each in documents
        ],
        "site": has_site,
        "log": has_log,
    }
    preloads = [f'<link rel="modulepreload" href="{escape(assets)}/{name}">' for name in modules]
    links = [_render_document_link(each, base) for each in documents]
    return _PAGE.format(
        title=escape(title),
        assets=escape(assets),
        config=escape(json.dumps(config)),
        preloads="\n".join(preloads),
        links=", ".join(links),
    ).encode()


def _render_document_link(document: Document, base: str) -> str:
    url = document.url if document.url.startswith("/") else f"{base}{document.url}"
    return f'<a href="{escape(url)}">{escape(document.name)}</a>'
