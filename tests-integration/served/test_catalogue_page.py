"""The catalogue of the sample: a page without a build, which talks through the generated client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Watched, running_browser
from playwright.sync_api import expect
from serving import Process, migrate


@pytest.fixture(scope="module")
def shop(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    database = f"sqlite:///{tmp_path_factory.mktemp('shop')}/shop.sqlite3"
    migrate(sample, database)
    served = Process(sample, "httptools", dev=False, default_version=None, database=database)
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture(scope="module")
def catalogue(shop: Process) -> Iterator[Watched]:
    """The page in a browser; it must not fail, and its requests stay on its origin."""
    host, port = shop.address
    with running_browser() as browser:
        watched = Watched(browser.new_context(), f"http://{host}:{port}")
        watched.page.goto(f"{watched.origin}/web/catalogue.html")
        try:
            yield watched
        finally:
            watched.close()


def test_the_committed_client_is_that_of_the_sample(sample: Path) -> None:
    command = [sys.executable, "-m", "treefold_cli", "client", "ts", "--check"]
    options = ["--out", "Public/api", "--name", "shop", "--app-dir", "."]
    done = subprocess.run([*command, *options], cwd=sample, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_books_are_listed_page_by_page(catalogue: Watched) -> None:
    page = catalogue.page
    books, more = page.locator("#books li"), page.locator("#more")

    expect(books).to_have_count(2)
    expect(more).to_be_visible()
    while more.is_visible():
        before = books.count()
        more.click()
        expect(books).not_to_have_count(before)
    titles = books.all_text_contents()

    assert len(titles) == len(set(titles)) > 2
    assert catalogue.wrong == []


def test_a_book_is_found_and_shown(catalogue: Watched) -> None:
    page = catalogue.page
    title = (page.locator("#books li").first.text_content() or "").partition(" by ")[0]

    page.get_by_label("Title").fill(title)
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#books li")).to_have_count(1)
    page.locator("#books button").click()

    expect(page.locator("#book")).to_contain_text(f"{title}: ")
    assert catalogue.wrong == []


def test_a_book_that_is_gone_is_told_by_its_status(catalogue: Watched) -> None:
    page = catalogue.page
    page.route("**/v2/book/*", lambda route: route.continue_(url=f"{route.request.url}x"))
    page.locator("#books button").first.click()

    expect(page.locator("#book")).to_have_text("It is gone")
    page.unroute("**/v2/book/*")
    # the browser itself tells of a 404 on its console
    assert [each for each in catalogue.wrong if "404" not in each] == []
    catalogue.wrong.clear()


def test_a_user_logs_in(catalogue: Watched, shop: Process) -> None:
    user = b'{"name": "grace", "email": "g@example.org", "password": "hunter2-of-grace"}'
    assert shop.post("/v1/user", user).status == 201
    page = catalogue.page

    page.get_by_label("Name").fill("grace")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#caller")).to_have_text("That is not right")
    page.get_by_label("Password").fill("hunter2-of-grace")
    page.get_by_role("button", name="Log in").click()

    expect(page.locator("#caller")).to_have_text("Hello grace")
    assert [each for each in catalogue.wrong if "401" not in each] == []
