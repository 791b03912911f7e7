"""The site of the documentation in a real browser, offline: phone and desktop, light and dark.

Some pages by default; `hatch run docs-rehearsal`, which a release runs, opens each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser import Watched, violations
from docs_site import PREFIX, publish_site, serve_site
from playwright.sync_api import Browser, Page, expect

OpenPage = Callable[..., Watched]
PATIENCE = 60_000
"""Milliseconds that a page may take to load on a busy machine."""
WHOLE = os.environ.get("TREEFOLD_SITE") == "whole"
SOME = ("guides/lists.html", "guides/expressions.html")
DEVICES: dict[str, Any] = {
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "desktop": {"viewport": {"width": 1280, "height": 860}},
}
MODES = [(device, scheme) for device in DEVICES for scheme in ("light", "dark")]
FEW = [("phone", "light"), ("desktop", "dark")]
NEWCOMER = {
    "cookie": "guides/sessions",
    "redirect": "guides/handlers",
    "upload": "guides/uploads",
    "websocket": "guides/sockets",
    "background": "start/11-background-work",
    "cron": "guides/jobs",
    "cors": "guides/middleware",
    "login": "start/07-login",
    "jwt": "guides/auth",
    "password": "guides/auth",
    "postgres": "guides/databases",
    "docker": "guides/deployment",
    "nginx": "guides/deployment",
    "pagination": "guides/lists",
    "transaction": "guides/transactions",
    "env": "guides/settings",
    "404": "guides/errors",
    "pytest": "guides/testing",
    "rate limit": "guides/limits",
    "openapi": "guides/openapi",
}
"""What a newcomer types, and a page that must be among the results."""


@pytest.fixture(scope="module")
def public(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of two releases."""
    return publish_site(site, tmp_path_factory.mktemp("site"), "0.1.0", "0.2.0")


@pytest.fixture(scope="module")
def origin(public: Path) -> Iterator[str]:
    with serve_site(public) as address:
        yield address


@pytest.fixture
def open_page(browser: Browser, origin: str) -> Iterator[Callable[..., Watched]]:
    """Open a page of the site in a profile of its own, which is closed at the end."""
    with ExitStack() as opened:

        def start(path: str, device: str, **options: Any) -> Watched:
            context = browser.new_context(**DEVICES[device], **options)
            opened.callback(context.close)
            watched = Watched(context, origin)
            watched.page.set_default_navigation_timeout(PATIENCE)
            watched.page.goto(f"{origin}{PREFIX}{path}")
            return watched

        yield start


def background(page: Page) -> int:
    """The brightness of the page, from 0 for black to 255."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return max(int(float(part)) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


@pytest.mark.parametrize(("device", "scheme"), MODES if WHOLE else FEW)
def test_pages_can_be_read_by_everybody(
    open_page: OpenPage, origin: str, public: Path, axe: str, device: str, scheme: str
) -> None:
    files = sorted(each.relative_to(public / "latest") for each in public.glob("latest/**/*.html"))
    watched = open_page("latest/index.html", device, color_scheme=scheme)
    found: list[str] = []
    for path in map(str, files) if WHOLE else SOME:
        watched.page.goto(f"{origin}{PREFIX}latest/{path}")
        watched.page.evaluate(axe)
        found += [f"{path}: {each}" for each in violations(watched.page)]
        assert (background(watched.page) > 128) is (scheme == "light"), path
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert watched.page.evaluate(wide) <= 0, path
    watched.keep(f"site-{device}-{scheme}")
    assert found == []
    assert watched.wrong == []


def test_the_switch_of_colours_is_kept(open_page: OpenPage, origin: str) -> None:
    watched = open_page("latest/index.html", "phone", color_scheme="light")
    page = watched.page
    for title, bright in (("Light colours", True), ("Dark colours", False)):
        page.locator(f"label[title='{title}']").click()
        expect(page.locator(f"label[title='{title}']")).to_be_hidden()
        assert (background(page) > 128) is bright
    page.goto(f"{origin}{PREFIX}latest/guides/models.html")
    assert background(page) < 128
    assert watched.wrong == []


def test_a_search_finds_what_a_newcomer_types(open_page: OpenPage) -> None:
    watched = open_page("latest/index.html", "desktop")
    page = watched.page
    missed: list[str] = []
    page.keyboard.press("/")
    for words, name in NEWCOMER.items():
        field = page.get_by_role("textbox").or_(page.get_by_role("combobox"))
        field.first.fill(words)
        try:
            page.locator(f"a[href*='{name}.html']:visible").first.wait_for(timeout=5000)
        except Exception:
            missed.append(words)
    assert missed == []
    assert watched.wrong == []


def test_a_path_that_is_not_there_leads_back(open_page: OpenPage) -> None:
    watched = open_page("latest/no/such/page.html", "desktop")
    expect(watched.page.get_by_role("heading", level=1)).to_contain_text("404")
    assert watched.page.evaluate("document.styleSheets.length") > 0
    assert [each for each in watched.wrong if "404" not in each] == []
    watched.page.get_by_role("link", name="treefold").first.click()
    expect(watched.page.get_by_role("heading", level=1)).to_contain_text("treefold")


def test_versions_are_listed_and_an_earlier_one_says_so(open_page: OpenPage, origin: str) -> None:
    watched = open_page("0.1.0/guides/models.html", "desktop")
    banner = watched.page.get_by_text("These pages are those of an earlier release.")
    expect(banner).to_be_visible()
    listed = watched.page.locator(".md-version__link")
    expect(listed).to_have_count(2)
    assert listed.all_inner_texts() == ["0.2.0", "0.1.0"]
    watched.page.goto(f"{origin}{PREFIX}latest/guides/models.html")
    expect(banner).to_be_hidden()
    assert watched.wrong == []
