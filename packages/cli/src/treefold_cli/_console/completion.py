"""Completion of arguments in a shell, besides commands and options.

Reads names in the tree only; an unreadable tree offers no completion.
"""

import os
from pathlib import Path
from typing import Any

from treefold_cli._console.project import find_root
from treefold_router import RouterError, RouteTable


def complete_urls(ctx: Any, incomplete: str) -> list[str]:
    """Offer the URLs of the project.

    Args:
        ctx: typer's context, which knows `--app-dir` where it was typed before.
        incomplete: the word as typed so far.
    """
    app_dir = ctx.params.get("app_dir") or os.environ.get("TREEFOLD_APP_DIR") or "."
    if app_dir == os.curdir:
        app_dir = find_root(Path.cwd())
    try:
        table = RouteTable.scan(os.path.join(app_dir, "Api"))
    except RouterError:
        return []
    urls = {route.template for route in table.routes}
    return sorted(url for url in urls if url.startswith(incomplete))
