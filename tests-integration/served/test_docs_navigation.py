"""Ways through the docs in a real browser: links, history, keys, narrow screens, the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from browser import violations
from docs_pages import Open, execute, route, started
from playwright.sync_api import Page, expect
from serving import Process, write_tree

PHONE = {"viewport": {"width": 390, "height": 800}}
LONG = "a_name_without_any_place_to_break_that_goes_on_and_on_and_on_until_it_is_over"
LONG_PATH = f"/v1/{LONG}/{{{LONG}}}"

SHOP: Mapping[str, str] = {
    "pyproject.toml": f"""
        [project]
        name = "{LONG}"
        """,
    "Api/v1/Book/Get.py": """
        async def handler(limit: int = 20): return {"limit": limit}
        """,
    "Api/v1/Only/Get.py": "async def handler(request): return {}\n",
    "Api/v2/Book/Get.py": "async def handler(page: int = 1): return {'page': page}\n",
    "Api/v1/Book/Put.py": "import nothing_of_this_name\n",
    f"Api/v1/{LONG}/[{LONG}]/Post.py": f"""
        from dataclasses import dataclass
        summary = "Long {LONG}"
        @dataclass
        class Item:
            {LONG}: str
            more: list[dict[str, str]]
        async def handler({LONG}: str, item: Item, {LONG}_in_the_query: int = 1) -> list[Item]:
            return [Item("x" * 200, [{{"{LONG}": "y"}}] * 40)] * 3
        """,
    "Api/v1/Deep/Get.py": """
        def fall(depth):
            if depth:
                fall(depth - 1)
            raise ValueError("at the end of a long way")
        async def handler(request):
            for name in range(30):
                try:
                    fall(0)
                except ValueError as error:
                    last = ValueError(f"cause {name}")
                    last.__cause__ = locals().get("first")
                    first = last
            raise first
        """,
    "Api/v1/Tick/Get.py": """
        import asyncio
        from treefold import EventStream
        summary = "Ticks"
        async def ticks():
            yield {"n": 1}
            await asyncio.Event().wait()
        async def handler(request) -> EventStream:
            return EventStream(ticks())
        """,
    "Api/v1/Chat/Socket.py": """
        summary = "Talk"
        async def handler(websocket): await websocket.accept()
        """,
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """The server of this module."""
    yield from started(write_tree(tmp_path_factory.mktemp("shop"), SHOP))


def viewer_is_loaded(page: Page) -> None:
    """Open an operation, so that Swagger UI listens to the clicks of the page."""
    route(page, "GET /v1/book Get.py")
    expect(page.get_by_role("button", name="Execute")).to_be_visible()


@pytest.mark.parametrize("link", [".brand", ".crumbs li:first-child a", ".alerts"])
def test_links_to_the_start_work_once_the_viewer_has_loaded(
    shop: Process, open_docs: Open, link: str
) -> None:
    page = open_docs(shop).page
    viewer_is_loaded(page)
    page.locator(link).click()

    expect(page.locator("h1")).to_contain_text(LONG)
    expect(page.locator(".cards")).to_be_visible()
    expect(page.locator(".problems")).to_contain_text("Api/v1/Book/Put.py")
    viewer_is_loaded(page)
    page.get_by_label("Version").select_option("v2")
    expect(page.locator("h1 code")).to_have_text("/v2/book")
    page.locator(".brand").click()
    expect(page.locator("h1 code")).to_have_count(0)
    expect(page.get_by_label("Version")).to_have_value("v2")


def test_the_badge_leads_to_the_errors_from_the_start_too(shop: Process, open_docs: Open) -> None:
    page = open_docs(shop, viewport={"width": 1000, "height": 320}).page
    expect(page.locator(".alerts")).to_have_text("1 error")
    for _ in range(2):
        page.locator("main").evaluate("main => { main.scrollTop = 0 }")
        page.locator(".alerts").click()
        expect(page.locator(".problems h2")).to_be_in_viewport()


def test_back_after_a_switch_of_version_goes_back_to_the_version(
    shop: Process, open_docs: Open
) -> None:
    page = open_docs(shop).page
    version = page.get_by_label("Version")
    first = version.input_value()
    version.select_option("v2")
    expect(page.locator("#tree summary .name").first).to_have_text("v2")
    version.select_option("v1")
    expect(page.locator("#tree summary .name").first).to_have_text("v1")
    page.go_back()
    expect(version).to_have_value("v2")
    expect(page.locator("#tree summary .name").first).to_have_text("v2")
    page.go_back()
    expect(version).to_have_value(first)
    expect(page.locator("#tree summary .name")).to_contain_text(["v1", "v2"])
    page.go_forward()
    expect(version).to_have_value("v2")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("doc=v1&at=GET+/v1/nothing", "There is no route GET /v1/nothing in v1"),
        ("doc=v1&at=", "There is no route without a name in v1"),
        ("doc=v1&in=v1/Nothing", "There is no folder v1/Nothing in v1"),
        ("doc=v9", "There is no version v9 in All versions"),
        ("/tag/get_v1_book", "There is no page #/tag/get_v1_book in All versions"),
    ],
)
def test_an_address_that_leads_nowhere_says_so(
    shop: Process, open_docs: Open, address: str, words: str
) -> None:
    page = open_docs(shop, f"/docs#{address}").page
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    expect(page.get_by_role("main").get_by_role("status")).to_contain_text(words)
    page.get_by_role("link", name="Go to the start page").click()
    expect(page.locator(".cards")).to_be_visible()


def test_a_route_that_the_other_version_lacks_is_said_to_be_missing(
    shop: Process, open_docs: Open
) -> None:
    page = open_docs(shop, "/docs#doc=v1").page
    route(page, "GET /v1/only Get.py")
    page.get_by_label("Version").select_option("v2")
    expect(page.locator(".notice")).to_contain_text("There is no route GET /v1/only in v2")
    expect(page.locator(".operation")).to_be_hidden()
    page.go_back()
    expect(page.locator("h1 code")).to_have_text("/v1/only")
    expect(page.get_by_role("button", name="Execute")).to_be_visible()


def test_requests_say_in_plain_words_that_the_server_is_away(
    tmp_path: Path, open_docs: Open
) -> None:
    away = "The server is away: it did not answer"
    running = started(write_tree(tmp_path, SHOP))
    watched = open_docs(next(running))
    page = watched.page
    route(page, "SSE /v1/tick Ticks")
    page.get_by_role("button", name="Listen").click()
    expect(page.get_by_role("log", name="Events").locator(".line.in")).to_have_count(1)
    viewer_is_loaded(page)
    running.close()

    page.get_by_role("button", name="Execute").click()
    expect(page.get_by_role("alert").filter(has_text=away)).to_be_visible()
    expect(page.get_by_text("Failed to fetch")).to_have_count(0)
    route(page, "SSE /v1/tick Ticks")
    page.get_by_role("button", name="Listen").click()
    expect(page.get_by_role("log", name="Events")).to_contain_text(away)
    route(page, "WS /v1/chat Talk")
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("log", name="Messages")).to_contain_text("the server is away, or")
    page.get_by_label("Version").select_option("v2")
    expect(page.locator(".notice")).to_contain_text(away)
    watched.close()  # what the page asks for from here on would be refused too
    refused = [what for what in watched.wrong if "ERR_CONNECTION_REFUSED" in what]
    broken_off = [what for what in watched.wrong if "ERR_INCOMPLETE_CHUNKED" in what]
    assert refused
    assert [what for what in watched.wrong if what not in (*refused, *broken_off)] == []
    watched.wrong.clear()


def test_enter_in_the_tree_moves_to_the_operation(shop: Process, open_docs: Open) -> None:
    page = open_docs(shop).page
    link = page.get_by_role("link", name="GET /v1/book Get.py")
    for _ in range(2):  # the second time it is shown already
        link.focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1 code")).to_have_text("/v1/book")
        expect(page.get_by_role("main")).to_be_focused()
        expect(page.get_by_role("button", name="Execute")).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_long_names_wrap_at_390_pixels(shop: Process, open_docs: Open) -> None:
    watched = open_docs(shop, **PHONE)
    page = watched.page
    clipped = """() => [...document.querySelectorAll(
        "#tree .name, h1, .cards strong, .crumbs a, .source, .lead, .operation td, .operation label"
    )].filter((element) => element.checkVisibility()
        && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0)
        .map((element) => element.outerHTML.slice(0, 200))"""
    wide = """() => [document.documentElement, ...document.querySelectorAll("#main, #tree")]
        .filter((element) => element.scrollWidth > element.clientWidth).map(({ id }) => id)"""
    assert (page.evaluate(clipped), page.evaluate(wide)) == ([], [])
    page.get_by_role("button", name="Routes").click()
    assert (page.evaluate(clipped), page.evaluate(wide)) == ([], [])
    watched.keep("phone-tree")
    route(page, f"POST {LONG_PATH} Long {LONG}")
    expect(page.get_by_role("button", name="Execute")).to_be_visible()
    page.locator(f'tr[data-param-name="{LONG}"] input').fill("x")
    execute(page)
    watched.keep("phone-operation")
    assert (page.evaluate(clipped), page.evaluate(wide)) == ([], [])


def test_everything_that_scrolls_is_reached_by_keys(
    shop: Process, open_docs: Open, axe: str
) -> None:
    # Without motion: colours on their way from one to the other are of low contrast.
    page = open_docs(shop, reduced_motion="reduce", **PHONE).page
    page.evaluate(axe)
    found = {"start": violations(page)}
    page.get_by_role("button", name="Routes").click()
    route(page, f"POST {LONG_PATH} Long {LONG}")
    page.locator(f'tr[data-param-name="{LONG}"] input').fill("x")
    for _ in range(9):
        execute(page)
    page.get_by_role("button", name="Log", exact=True).click()
    expect(page.locator(".tried li")).to_have_count(9)
    found["narrow"] = violations(page)
    page.set_viewport_size({"width": 1280, "height": 500})
    expect(page.locator("pre.microlight").first).to_have_attribute("tabindex", "0")
    found["wide"] = violations(page)

    assert {name: what for name, what in found.items() if what} == {}


def test_the_log_is_pulled_to_another_height(shop: Process, open_docs: Open) -> None:
    page = open_docs(shop).page
    page.get_by_role("button", name="Log", exact=True).click()
    edge = page.get_by_role("separator", name="Height of the log")
    log = page.get_by_role("region", name="Log")

    def height() -> float:
        box = log.bounding_box()
        assert box is not None
        assert edge.get_attribute("aria-valuenow") == str(round(box["height"]))
        return box["height"]

    before = height()
    box = edge.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] - 150, steps=4)
    page.mouse.up()
    pulled = height()
    assert pulled > before + 100
    edge.focus()
    page.keyboard.press("ArrowDown")
    assert height() == pulled - 40
    page.keyboard.press("End")
    tallest = height()
    assert pulled < tallest < 860 - 100
    page.keyboard.press("Home")
    assert height() < before
    page.keyboard.press("End")
    page.set_viewport_size({"width": 1280, "height": 500})
    expect(page.get_by_role("main")).to_be_in_viewport()
    assert height() < tallest


def test_the_log_shows_a_long_record_from_its_first_line(shop: Process, open_docs: Open) -> None:
    watched = open_docs(shop)
    page = watched.page
    route(page, "GET /v1/deep Get.py")
    page.get_by_role("button", name="Log", exact=True).click()
    expect(page.locator(".lines > div").first).to_be_visible()
    execute(page)
    record = page.locator(".lines > div", has_text="at the end of a long way").or_(
        page.locator(".lines > div", has_text="cause 29")
    )
    expect(record.first).to_be_visible()
    top = """record => {
        const lines = record.closest(".lines");
        const top = (element) => element.getBoundingClientRect().top;
        return [record.offsetHeight > lines.clientHeight, Math.round(top(record) - top(lines))];
    }"""
    page.wait_for_timeout(300)
    assert record.first.evaluate(top) == [True, 0]
    page.locator(".lines").evaluate("lines => { lines.scrollTop = 0 }")
    page.get_by_role("button", name="Show in the log").click()
    assert record.first.evaluate(top) == [True, 0]
    expect(record.first).to_have_class(re.compile("found"))
    watched.wrong = [what for what in watched.wrong if "status of 500" not in what]
