"""Security rows of sessions and CSRF (S-62, S-64 to S-67, S-71) on the wire, kept in a database.

Every client below is a browser of its own: it keeps cookies, and says where its page is from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from http_messages import Answer
from serving import Process
from websockets.sync.client import connect
from wire import ServeOnSocket

TREE = {
    "treefold.toml": """
        secret_key = "0123456789abcdef0123456789abcdef"
        installed_extensions = true
        [databases]
        default = "sqlite:///sessions.sqlite3"
        """,
    "Middleware/__init__.py": """
        from treefold.middleware import Sessions
        middlewares = [Sessions(store="database")]
        """,
    "Api/v1/Ok/Get.py": "async def handler(request): return 'ok'",
    "Api/v1/Show/Get.py": """
        async def handler(request):
            return {"data": dict(request.session), "user": request.session.user}
        """,
    "Api/v1/Set/Post.py": """
        def handler(request):
            request.session["v"] = request.session.get("v", 0) + 1
            return request.session["v"].__str__()
        """,
    "Api/v1/Token/Get.py": "async def handler(request): return request.session.csrf_token()",
    "Api/v1/Login/Post.py": """
        from treefold.auth import login

        async def handler(request):
            login(request, (await request.json())["user"])
        """,
    "Api/v1/Kept/Post.py": """
        from treefold import Response
        from treefold.auth import login

        OK = Response.json({"ok": True})

        async def handler(request):
            login(request, (await request.json())["user"])
            return OK
        """,
    "Api/v1/Logout/Post.py": """
        from treefold.auth import logout

        async def handler(request):
            logout(request)
        """,
    "Api/v1/Slow/Post.py": """
        import asyncio

        begun, finish = asyncio.Event(), asyncio.Event()

        async def handler(request):
            request.session["slow"] = True
            begun.set()
            await finish.wait()

        """,
    "Api/v1/Begun/Get.py": """
        import importlib

        async def handler(request):
            await importlib.import_module("Api.v1.Slow.Post").begun.wait()
        """,
    "Api/v1/Finish/Get.py": """
        import importlib

        async def handler(request):
            importlib.import_module("Api.v1.Slow.Post").finish.set()
        """,
    "Api/v1/Ws.py": """
        async def handler(websocket):
            user = websocket.session.user
            await websocket.accept()
            await websocket.send_json({"user": user})
        """,
}

SAME = ("Sec-Fetch-Site", "same-origin")


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket, tmp_path_factory: pytest.TempPathFactory) -> Process:
    database = tmp_path_factory.mktemp("database") / "sessions.sqlite3"
    settings = TREE["treefold.toml"].replace("sessions.sqlite3", str(database))
    return serve_on_socket(TREE | {"treefold.toml": settings})


class Browser:
    """Keeps cookies; its page is of this site unless `project` says otherwise."""

    def __init__(self, server: Process) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}

    @property
    def cookie(self) -> tuple[str, str]:
        return "Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        site: Sequence[tuple[str, str]] = (SAME,),
    ) -> Answer:
        headers = [*site, *([self.cookie] if self.cookies else [])]
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.server.request(method, target, headers=headers, body=content)
        for name, field in answer.headers:
            if name == "set-cookie":
                cookie, _, value = field.partition(";")[0].partition("=")
                self.cookies[cookie] = value
                if "Max-Age=0;" in field:
                    del self.cookies[cookie]
        return answer

    def login(self, user: Any) -> Answer:
        answer = self.send("POST", "/v1/login", {"user": user})
        assert answer.status == 204, answer.body
        return answer

    def shown(self) -> Any:
        return json.loads(self.send("GET", "/v1/show").body)


@pytest.fixture
def browser(server: Process) -> Browser:
    return Browser(server)


def test_s67_the_cookie_has_all_flags(browser: Browser) -> None:
    (field,) = [value for name, value in browser.login("ann").headers if name == "set-cookie"]
    cookie, *attributes = field.split("; ")
    assert cookie.startswith("__Host-session=")
    assert set(attributes) == {"Max-Age=1209600", "Path=/", "Secure", "HttpOnly", "SameSite=Lax"}


def test_s64_a_login_gives_another_id(browser: Browser) -> None:
    browser.send("POST", "/v1/set")
    before = dict(browser.cookies)
    browser.login(7)
    assert browser.shown() == {"data": {"v": 1}, "user": 7}
    browser.cookies = before
    assert browser.shown() == {"data": {}, "user": None}


def test_s140_a_response_of_a_module_gives_no_client_the_cookie_of_another(
    server: Process,
) -> None:
    browsers = {user: Browser(server) for user in ("ann", "bob", "eve")}
    for user, browser in browsers.items():
        answer = browser.send("POST", "/v1/kept", {"user": user})
        assert json.loads(answer.body) == {"ok": True}
        assert len([name for name, _ in answer.headers if name == "set-cookie"]) == 1
    assert {user: browser.shown()["user"] for user, browser in browsers.items()} == {
        user: user for user in browsers
    }
    assert len({browser.cookie for browser in browsers.values()}) == 3


def test_s64_the_first_of_two_cookie_lines_counts_alone(browser: Browser) -> None:
    browser.login("ann")
    forged = ("Cookie", "__Host-session=forged")
    for lines, user in (([forged, browser.cookie], None), ([browser.cookie, forged], "ann")):
        answer = browser.server.request("GET", "/v1/show", headers=lines)
        assert json.loads(answer.body)["user"] == user


def test_s65_a_save_after_the_logout_revives_nothing(browser: Browser) -> None:
    browser.login("ann")
    kept = dict(browser.cookies)
    with ThreadPoolExecutor(1) as thread:
        other = Browser(browser.server)
        other.cookies = dict(kept)
        slow = thread.submit(other.send, "POST", "/v1/slow")
        browser.send("GET", "/v1/begun")
        assert browser.send("POST", "/v1/logout").status == 204
        browser.send("GET", "/v1/finish")
        answer = slow.result(20)
    assert answer.status == 204
    assert [name for name, _ in answer.headers if name == "set-cookie"] == []
    browser.cookies = kept
    assert browser.shown() == {"data": {}, "user": None}


def test_s66_a_changed_cookie_is_anonymous(browser: Browser) -> None:
    browser.login("ann")
    good = browser.cookies["__Host-session"]
    id, _, signature = good.partition(".")
    for wrong in (id, f"{id}.", f"x{good}", f"{good}x", f"{id}.{signature[::-1]}", f'"{good}'):
        browser.cookies = {"__Host-session": wrong}
        assert browser.shown()["user"] is None


@pytest.mark.parametrize(
    ("site", "status"),
    [
        ([SAME], 200),
        ([("Sec-Fetch-Site", "cross-site")], 403),
        ([("Sec-Fetch-Site", "same-site")], 403),
        ([SAME, ("Sec-Fetch-Site", "cross-site")], 403),
        ([("Origin", "null")], 403),
        ([("Origin", "http://sub.localhost")], 403),
        ([("Origin", "http://localhost")], 200),
        ([("Origin", "http://localhost"), ("Origin", "http://evil.example")], 403),
        ([("Referer", "http://localhost/page")], 200),
        ([("Referer", "http://evil.example/page")], 403),
        ([], 403),
    ],
)
def test_s62_a_page_of_another_site_changes_nothing(
    browser: Browser, site: Sequence[tuple[str, str]], status: int
) -> None:
    browser.login("ann")
    assert browser.send("POST", "/v1/set", site=site).status == status
    assert browser.shown()["data"] == ({"v": 1} if status == 200 else {})


def test_s63_a_client_that_says_nothing_needs_the_token_of_its_session(browser: Browser) -> None:
    token = browser.send("GET", "/v1/token").body.decode()
    assert browser.send("POST", "/v1/set", site=[("X-CSRF-Token", token)]).status == 200
    other = Browser(browser.server)
    foreign = other.send("GET", "/v1/token").body.decode()
    assert browser.send("POST", "/v1/set", site=[("X-CSRF-Token", foreign)]).status == 403
    browser.cookies["csrf"] = "X"
    assert browser.send("POST", "/v1/set", site=[("X-CSRF-Token", "X")]).status == 403


def test_s71_a_handshake_reads_the_session(browser: Browser) -> None:
    browser.login("ann")
    host, port = browser.server.address
    for headers, user in ((dict([browser.cookie]), "ann"), ({}, None)):
        with connect(f"ws://{host}:{port}/v1", additional_headers=headers, proxy=None) as websocket:
            assert json.loads(websocket.recv(10)) == {"user": user}


def test_requests_that_do_not_touch_a_session_set_no_cookie(browser: Browser) -> None:
    answer = browser.send("GET", "/v1/ok")
    assert not {"set-cookie", "vary", "cache-control"} & {name for name, _ in answer.headers}


def test_a_session_is_written_by_many_requests_at_once(browser: Browser) -> None:
    browser.login("ann")

    def send(_: int) -> int:
        mine = Browser(browser.server)
        mine.cookies = dict(browser.cookies)
        return mine.send("POST", "/v1/set").status

    with ThreadPoolExecutor(10) as threads:
        assert set(threads.map(send, range(30))) == {200}
    assert 1 <= browser.shown()["data"]["v"] <= 30
