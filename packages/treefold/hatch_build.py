"""The build hook: the pages of the documentation, compressed, which `treefold docs` prints.

In a clone they are made of `docs/`; a source distribution has them, and its wheel takes them as
they are. `python packages/treefold/hatch_build.py` makes them in a clone, where pages have changed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = Path("src", "treefold", "pages.json.gz")


class PagesHook(BuildHookInterface[Any]):
    """Make the pages before a wheel, an sdist or an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the pages; `version` is `standard` or `editable`, and both get the same."""
        make_pages(Path(self.root))


def make_pages(root: Path) -> None:
    """Make the pages of a clone; outside of one they must be there.

    Args:
        root: the folder of the package.

    Raises:
        FileNotFoundError: there are neither pages to pack nor packed ones.
    """
    tool = root.parent.parent / "tools" / "docs" / "pages.py"
    if not tool.exists():
        if not (root / PAGES).exists():
            raise FileNotFoundError(f"{PAGES} is missing; build from a clone or from an sdist")
        return
    spec = importlib.util.spec_from_file_location("docs_pages_tool", tool)
    assert spec is not None  # noqa: S101 - a file that exists has a spec and a loader
    assert spec.loader is not None  # noqa: S101 - as above
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.pack_pages(root.parent.parent / "docs", root / PAGES)


if __name__ == "__main__":
    make_pages(Path(os.path.abspath(__file__)).parent)
