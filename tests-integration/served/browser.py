"""A real browser: found, started, watched.

Every page notes what must not happen: an error or warning on its console, an exception of a script,
a request that leaves the origin, a request that fails. Nothing here knows what a page is to show.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    sync_playwright,
)
from run_notes import add_note

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
# Without these a fresh profile looks for updates of its own.
QUIET = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
REPOSITORY = Path(__file__).resolve().parents[2]
SCREENSHOTS = Path(os.environ.get("TREEFOLD_SCREENSHOTS") or REPOSITORY / "dist" / "screenshots")


HOW_TO_GET_ONE = "install Chromium or Chrome, or name a browser in TREEFOLD_BROWSER"


@contextmanager
def running_browser() -> Generator[Browser]:
    """Start the browser of this machine; without one, skip what asks for it.

    With TREEFOLD_BROWSER_REQUIRED, as in every run that decides about a change, a machine without
    a browser is a failure.
    """
    wanted = os.environ.get("TREEFOLD_BROWSER")
    found = wanted or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        missing = f"None of {', '.join(PROGRAMS)} is on PATH; {HOW_TO_GET_ONE}"
        if os.environ.get("TREEFOLD_BROWSER_REQUIRED"):
            pytest.fail(missing)
        add_note(f"The browser tests were skipped: {HOW_TO_GET_ONE}")
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, and everything that it did.

    Attributes:
        page: the page.
        requests: the addresses of its requests.
        wrong: what must not happen, in words.
    """

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.origin = origin
        self.requests: list[str] = []
        self.wrong: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"exception: {error}"))
        self.page.on("request", self._asked)
        self.page.on("dialog", self._was_interrupted)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"console {message.type}: {message.text}")

    def _was_interrupted(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)
        parts = urlsplit(request.url)
        if parts.scheme in ("data", "blob"):
            return
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.wrong.append(f"request to {request.url}")

    def open(self, path: str) -> None:
        """Go to a path and wait until the page can be used."""
        self.page.goto(self.origin + path)
        self.page.locator("body[data-ready]").wait_for()

    def keep(self, name: str) -> None:
        """Keep a screenshot."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def close(self) -> None:
        """Leave the page."""
        self.page.close()


def axe_source(folder: Path) -> str:
    """Give the script of axe-core: from npm, the pinned one, by the build hook of the docs."""
    path = REPOSITORY / "packages" / "docs-ui" / "hatch_build.py"
    spec = importlib.util.spec_from_file_location("docs_ui_build", path)
    assert spec is not None
    assert spec.loader is not None
    hook: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    entry = json.loads(Path(__file__).with_name("axe.lock.json").read_text(encoding="utf-8"))
    hook.unpack(hook.pack(hook.spec_of(entry)), entry, target=folder)
    return (folder / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page) -> list[str]:
    """Give what axe-core finds wrong: rules of WCAG 2.2 A and AA, and good practice.

    Its script was evaluated before: by the debugging protocol, which no policy of a page binds.
    """
    found = page.evaluate(
        """() => axe.run(document, {
            resultTypes: ["violations"],
            runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
        })"""
    )
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
