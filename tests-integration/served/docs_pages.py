"""The docs of a running server in a real browser: fixtures, and the steps that readers share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Watched, axe_source, running_browser
from playwright.sync_api import Browser, BrowserContext, Page, expect
from serving import Process

Open = Callable[..., Watched]
Contexts = Callable[..., BrowserContext]

WIDE = {"viewport": {"width": 1280, "height": 860}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser of this machine."""
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script that checks pages for everybody's use."""
    return axe_source(tmp_path_factory.mktemp("axe") / "axe")


def started(root: Path, database: str | None = None) -> Generator[Process]:
    """Start the development server of a project; stopped when the generator is closed."""
    server = Process(root, "httptools", dev=True, default_version=None, database=database)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> Contexts:
    """Profiles by their options: readers who come back, so that the cache is used too."""
    made: dict[str, BrowserContext] = {}

    def give(*, fresh: bool = False, **options: Any) -> BrowserContext:
        chosen: Any = {**WIDE, "color_scheme": "light", **options}
        if fresh:
            return browser.new_context(**chosen)
        if (key := repr(chosen)) not in made:
            made[key] = browser.new_context(**chosen)
        return made[key]

    return give


@pytest.fixture
def open_docs(contexts: Contexts) -> Iterator[Open]:
    """Open the docs of a server; at the end nothing may have gone wrong on any of the pages."""
    opened: list[Watched] = []

    def start(server: Process, path: str = "/docs", **options: Any) -> Watched:
        watched = Watched(contexts(**options), f"http://127.0.0.1:{server.address[1]}")
        opened.append(watched)
        watched.open(path)
        return watched

    yield start
    for watched in opened:
        watched.close()
    assert [what for watched in opened for what in watched.wrong] == []


def route(page: Page, name: str) -> None:
    """Open a route by its link in the tree."""
    tree = page.get_by_role("navigation", name="Routes")
    tree.get_by_role("link", name=name, exact=True).click()
    expect(page.locator("h1 code")).to_have_text(name.split()[1])


def execute(page: Page) -> None:
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table tbody .response-col_status")).to_be_visible()
