"""Two ways to a table: from names alone, and from a tree on the disk."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from treefold_router import RouteTable
from treefold_router._scan import Entry, Listing

# a limit of the clock for each example would fail on a busy machine
settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")


@pytest.fixture(scope="session")
def table_of() -> Callable[..., RouteTable]:
    """Build a table from paths below `Api/`, in the order given, without a disk."""

    def build(*files: str, auto_head: bool = False, auto_options: bool = False) -> RouteTable:
        listing = Listing(tuple(Entry(tuple(file.split("/"))) for file in files))
        return RouteTable(Path("Api"), listing, auto_head=auto_head, auto_options=auto_options)

    return build


@pytest.fixture
def api(tmp_path: Path) -> Path:
    """An empty `Api/` folder."""
    folder = tmp_path / "Api"
    folder.mkdir()
    return folder


@pytest.fixture
def grow(api: Path) -> Callable[..., Path]:
    """Write files below `Api/`; importing one of them ends the interpreter."""

    def write(*files: str) -> Path:
        for file in files:
            path = api / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("raise SystemExit('a handler was imported')\n")
        return api

    return write
