"""A root that is a link to the project: its modules are imported by their real paths."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from treefold_cli._dev.blocked_loop import warn_of_blocking_lines
from treefold_cli._dev.watched import WatchedFolders


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    (tmp_path / "real/Templates").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path / "link"


def test_a_folder_of_the_root_is_not_watched_once_more(linked: Path):
    watched = WatchedFolders.take_snapshots(linked, ["Templates"], ["*.html"])
    assert list(watched.seen) == [linked]


def test_a_line_that_blocks_is_named(linked: Path, caplog: pytest.LogCaptureFixture):
    names: dict[str, Any] = {}
    source = "import time\nasync def handler():\n    time.sleep(0.8)\n"
    exec(compile(source, str(linked.resolve() / "Get.py"), "exec"), names)

    async def serve() -> None:
        with warn_of_blocking_lines(linked):
            await asyncio.sleep(0.1)
            await names["handler"]()

    with caplog.at_level(logging.WARNING):
        asyncio.run(serve())
    assert "Get.py, line 3, blocks the event loop for over 500 ms" in caplog.text
