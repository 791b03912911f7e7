"""docs/guides/browser-application.md served, and used in a browser from its origin.

The API and the pages have ports of `localhost` of their own: two origins of one site. A page that
is opened by `127.0.0.1` is of another site.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from browser import running_browser
from playwright.sync_api import Browser, BrowserContext, Page, expect
from serving import PATIENCE, Process
from terminal import Terminal

NAMED = re.compile(r"```(\w+)\n((?:# |<!-- )(\S+)[^\n]*\n.*?)```", re.DOTALL)
API, PAGE = "http://localhost:8000", "http://localhost:3000"
FETCH = """async ([url, options]) => {
    try {
        const answer = await fetch(url, options);
        return [answer.type, answer.status];
    } catch (error) {
        return String(error);
    }
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@contextmanager
def origin(folder: Path) -> Generator[int]:
    """Serve a folder on a port of its own, as `python -m http.server` does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class Press:
    """The application of the page, and the origins of its pages.

    Attributes:
        server: the API.
        api: its address in the browser.
        page: the origin that the page of the documentation lists.
        other: the origin of the same pages that it does not list.
    """

    def __init__(self, server: Process, page: int, other: int) -> None:
        self.server = server
        self.api = f"http://localhost:{server.address[1]}"
        self.page = f"http://localhost:{page}"
        self.other = f"http://localhost:{other}"

    def lines(self) -> list[str]:
        """Method, path and status of every request up to now."""
        self.server.line(self.server.get("/v1/health"))  # lines keep their order
        shape = re.compile(r"\[[A-Z]+\] (\S+ \S+ \d+) ")
        written = self.server.wait_for(lambda lines: lines)
        found = [match[1] for line in written if (match := shape.match(line))]
        return [line for line in found if "/v1/health" not in line]

    def database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.server.root / "press.sqlite3", isolation_level=None)


@pytest.fixture(scope="module")
def typed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A reader who has typed all that the page says, but what serves."""
    text = (repository / "docs/guides/browser-application.md").read_text(encoding="utf-8")
    terminal = Terminal(tmp_path_factory.mktemp("reader"))
    shown = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    commands = [line.removeprefix("$ ") for block in shown for line in block.splitlines()]
    files = list(NAMED.finditer(text))
    assert len(files) + len(shown) == text.count("```") // 2, "A block does not name its file"
    assert commands[0].startswith("treefold new")
    terminal.run(commands[0])
    for block in files:
        terminal.write(block[3], block[2])
    served = [c for c in commands if c.startswith(("treefold serve", "python -m http.server"))]
    assert len(served) == 2
    for command in commands[1:]:
        if command not in served:
            terminal.run(command)
    return terminal


Serve = Callable[..., Press]

on_one_parser = pytest.mark.parametrize("parser", ["httptools"], indirect=True)
"""For what has nothing to do with how a request is read."""


@pytest.fixture(scope="module")
def serve_press(
    typed: Terminal, parser: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serve]:
    """Serve the application, with a text of its files replaced, and its pages on two ports."""
    with ExitStack() as running:

        def start(
            replaced: str = "", by: str = "", *, api: str = "localhost", dev: bool = False
        ) -> Press:
            root = tmp_path_factory.mktemp("served") / "press"
            shutil.copytree(typed.folder, root)
            page, other = (running.enter_context(origin(root / "web")) for _ in range(2))
            entries = root / "Middleware" / "__init__.py"
            text = entries.read_text(encoding="utf-8")
            assert text.count(PAGE) == 1
            assert replaced in text
            text = text.replace(PAGE, f"http://localhost:{page}").replace(replaced, by)
            entries.write_text(text, encoding="utf-8")
            names = {k: v for k, v in typed.environment.items() if k.startswith("TREEFOLD_")}
            database = f"sqlite:///{root}/press.sqlite3"
            server = Process(
                root,
                parser,
                dev=dev,
                default_version=None,
                database=database,
                variables={} if dev else names,
            )
            running.callback(server.stop)
            file = root / "web" / "index.html"
            text = file.read_text(encoding="utf-8")
            assert text.count(API) == 1
            text = text.replace(API, f"http://{api}:{server.address[1]}")
            file.write_text(text, encoding="utf-8")
            return Press(server, page, other)

        yield start


@pytest.fixture(scope="module")
def press(serve_press: Serve) -> Press:
    return serve_press()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE * 1000)
    with running_browser() as browser:
        yield browser


@pytest.fixture
def visitor(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser without a cookie."""
    context = chromium.new_context()
    context.set_default_timeout(10_000)
    yield context
    context.close()


def open_page(visitor: BrowserContext, address: str) -> Page:
    page = visitor.new_page()
    page.goto(address)
    page.locator("body[data-ready]").wait_for()
    return page


def send_account(page: Page, button: str, name: str, password: str = "correct horse") -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name=button).click()


def register(page: Page, name: str) -> None:
    send_account(page, "Register", name)
    expect(page.locator("#user b")).to_have_text(name)


def publish(page: Page, title: str) -> None:
    page.get_by_label("Title").fill(title)
    page.get_by_label("Text").fill(f"All about {title}.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()


def send_comment(page: Page, text: str) -> None:
    page.get_by_label("Comment").fill(text)
    page.get_by_role("button", name="Send").click()


def test_a_user_logs_in_from_another_origin_and_out(press: Press, visitor: BrowserContext) -> None:
    page = open_page(visitor, press.page)
    before = len(press.lines())
    register(page, "ann")
    assert press.lines()[before:] == [
        "OPTIONS /v1/user 204",
        "POST /v1/user 201",
        "GET /v1/user/me 200",
    ]

    (cookie,) = visitor.cookies(press.api)
    flags = [cookie.get(name) for name in ("name", "path", "secure", "httpOnly", "sameSite")]
    assert flags == ["__Host-session", "/", True, True, "Lax"]
    page.reload()
    expect(page.locator("#user b")).to_have_text("ann")

    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#account")).to_be_visible()
    assert visitor.cookies(press.api) == []
    assert "OPTIONS /v1/session 204" in press.lines()
    visitor.add_cookies([cookie])  # pyright: ignore[reportArgumentType] - what `cookies` returned
    page.reload()
    expect(page.locator("#account")).to_be_visible()

    send_account(page, "Log in", "ann", "wrong horse")
    expect(page.locator("#message")).to_have_text("Unknown name or wrong password")
    send_account(page, "Register", "ann")
    expect(page.locator("#message")).to_have_text("The name 'ann' is taken")
    send_account(page, "Log in", "ann")
    expect(page.locator("#user b")).to_have_text("ann")


def test_the_list_is_kept_until_an_article_is_written(
    press: Press, visitor: BrowserContext
) -> None:
    page = open_page(visitor, press.page)
    register(page, "bea")
    publish(page, "Oaks")
    listed = page.locator("#articles")
    expect(listed).to_contain_text("Oaks by bea, 0 likes")

    page.reload()
    page.locator("body[data-ready]").wait_for()
    with press.database() as database:  # nothing of this is invalidated
        database.execute("UPDATE article SET title = 'Elms' WHERE title = 'Oaks'")
    before = len(press.lines())
    page.reload()
    expect(listed).to_contain_text("Oaks by bea")
    page.locator("body[data-ready]").wait_for()
    assert "GET /v1/article 304" in press.lines()[before:]

    publish(page, "Pines")
    expect(listed).to_contain_text("Pines by bea")
    expect(listed).to_contain_text("Elms by bea")
    before = len(press.lines())
    page.get_by_role("button", name="Like", exact=True).click()
    expect(listed).to_contain_text("Pines by bea, 1 likes")
    seen = [re.sub(r"[0-9]+(?=/like)", "ID", line) for line in press.lines()[before:]]
    assert seen[:2] == ["OPTIONS /v1/article/ID/like 204", "PUT /v1/article/ID/like 204"]
    assert "GET /v1/article 200" in seen[2:]  # beside the one of the article, in any order
    page.get_by_role("button", name="Unlike").click()
    expect(listed).to_contain_text("Pines by bea, 0 likes")

    profile = page.request.get(f"{press.api}/v1/profile/bea")
    assert profile.json() == {"name": "bea", "about": "", "articles": 2}


def test_the_page_reads_how_much_is_left_and_how_long_to_wait(
    press: Press, visitor: BrowserContext
) -> None:
    page = open_page(visitor, press.page)
    register(page, "cleo")
    publish(page, "Firs")
    told = page.locator("#comment output")
    for left in (2, 1, 0):
        send_comment(page, f"{left} left")
        expect(told).to_have_text(f"{left} more now")
        expect(page.locator("#article ul")).to_contain_text(f"cleo: {left} left")
    before = len(press.lines())
    send_comment(page, "one more")
    expect(told).to_have_text(re.compile(r"Wait ([1-5]?[0-9]|60) s"))
    expect(page.locator("#message")).to_contain_text("Too many requests")
    assert [line.split()[-1] for line in press.lines()[before:]] == ["429"]  # no preflight
    assert page.locator("#article li").count() == 3

    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#account")).to_be_visible()
    register(page, "dora")  # a limit of her own
    send_comment(page, "and I")
    expect(told).to_have_text("2 more now")


def test_a_page_of_an_origin_that_is_not_listed_gets_nothing(
    press: Press, visitor: BrowserContext
) -> None:
    page = open_page(visitor, press.page)
    register(page, "edda")
    page.goto(press.other)  # the same browser, the same site: it sends the cookie
    page.locator("body[data-ready]").wait_for()
    expect(page.locator("#message")).to_have_text("Failed to fetch")

    def fetch(method: str, path: str, **options: Any) -> Any:
        options = {"method": method, "credentials": "include", **options}
        return page.evaluate(FETCH, [f"{press.api}/v1{path}", options])

    def tried(method: str, path: str, **options: Any) -> tuple[Any, list[str]]:
        before = len(press.lines())
        return fetch(method, path, **options), press.lines()[before:]

    failed = "TypeError: Failed to fetch"
    article = '{"title": "Forged", "text": "by another page"}'
    as_json = {"Content-Type": "application/json"}
    assert tried("GET", "/user/me") == (failed, ["GET /v1/user/me 200"])  # and cannot read it
    assert tried("GET", "/article", credentials="omit")[0] == failed
    assert tried("POST", "/article", body=article, headers=as_json) == (
        failed,
        ["OPTIONS /v1/article 405"],
    )
    # What needs no preflight arrives, with the cookie.
    opaque = ["opaque", 0]
    assert tried("POST", "/article", body=article, mode="no-cors") == (
        opaque,
        ["POST /v1/article 403"],
    )
    assert tried("DELETE", "/session", mode="no-cors")[1] == []  # a browser sends no such thing
    login = '{"name": "edda", "password": "correct horse"}'
    assert tried("POST", "/session", body=login, mode="no-cors")[1] == ["POST /v1/session 403"]

    before = len(press.lines())
    page.evaluate(
        """address => {
            const form = document.createElement("form");
            form.method = "post";
            form.action = address;
            document.body.append(form);
            form.submit();
        }""",
        f"{press.api}/v1/article",
    )
    page.wait_for_url(re.compile("/v1/article$"))
    expect(page.locator("body")).to_contain_text("A page of another site sent this request")
    assert "POST /v1/article 403" in press.lines()[before:]
    with press.database() as database:
        found = database.execute("SELECT count(*) FROM article WHERE title = 'Forged'").fetchone()
    assert found == (0,)


@on_one_parser
def test_a_page_that_is_not_trusted_reads_why_it_is_refused(
    serve_press: Serve, visitor: BrowserContext
) -> None:
    press = serve_press(", trusted_origins=PAGES", "")
    page = open_page(visitor, press.page)
    send_account(page, "Register", "ivo")
    expect(page.locator("#message")).to_have_text("A page of another site sent this login")
    assert press.lines()[-2:] == ["OPTIONS /v1/user 204", "POST /v1/user 403"]


@on_one_parser
def test_a_session_does_not_cross_sites_by_default(
    serve_press: Serve, visitor: BrowserContext
) -> None:
    press = serve_press(api="127.0.0.1")
    page = open_page(visitor, press.page)
    send_account(page, "Register", "finn")
    expect(page.get_by_label("Name")).to_have_value("")  # sent
    expect(page.locator("#account")).to_be_visible()
    assert press.lines()[-2:] == ["POST /v1/user 201", "GET /v1/user/me 401"]
    assert visitor.cookies() == []
    warning = f"login from {press.page}, a page of another site: its browser drops the session"
    press.server.wait_for(lambda lines: [line for line in lines if warning in line])


@on_one_parser
def test_a_session_crosses_sites_where_it_is_told_to(
    serve_press: Serve, visitor: BrowserContext
) -> None:
    press = serve_press('store="database"', 'store="database", samesite="none"', api="127.0.0.1")
    page = open_page(visitor, press.page)
    register(page, "gina")
    publish(page, "Limes")
    (cookie,) = visitor.cookies()
    assert (cookie.get("sameSite"), cookie.get("secure")) == ("None", True)


@on_one_parser
def test_development_serves_the_same_without_a_secret(
    serve_press: Serve, visitor: BrowserContext
) -> None:
    press = serve_press(dev=True)
    page = open_page(visitor, press.page)
    register(page, "hope")
    publish(page, "Yews")
    page.reload()
    expect(page.locator("#user b")).to_have_text("hope")
    assert [cookie.get("name") for cookie in visitor.cookies()] == ["session"]
