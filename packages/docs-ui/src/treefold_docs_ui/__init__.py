"""Documentation in the browser for any ASGI application, with nothing loaded from elsewhere.

Only names are exported here; the code is in the underscored modules, the page in `ui/`, third-party
files in `assets/`. The package requires nothing but the standard library and knows no framework: it
receives URLs of documents, and in development callables that describe the tree.
"""

from treefold_docs_ui.__about__ import __version__
from treefold_docs_ui._app import DocsApp
from treefold_docs_ui._assets import AssetsMissingError
from treefold_docs_ui._records import (
    BrokenFile,
    Document,
    Inspector,
    SiteView,
    SkippedFile,
    SourceFile,
)

__all__ = [
    "AssetsMissingError",
    "BrokenFile",
    "DocsApp",
    "Document",
    "Inspector",
    "SiteView",
    "SkippedFile",
    "SourceFile",
    "__version__",
]
