"""CSRF: which requests with cookies are answered (S-30, S-50, S-62, S-63, D-13)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings
from treefold_http.middleware import CSRF

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Fields = Sequence[tuple[str, str]]

SETTINGS = Settings(secret_key="0123456789abcdef" * 2)
FORM = ("content-type", "application/x-www-form-urlencoded")


def tree(entry: str) -> dict[str, str]:
    return {
        "Api/v1/Get.py": "async def handler(request): return 'ok'",
        "Api/v1/Post.py": "async def handler(request): return 'done'",
        "Api/v1/Delete.py": "async def handler(request): return 'done'",
        "Api/v1/Form/Post.py": "async def handler(request):\n"
        "    return {'n': (await request.form()).get('n'), 'body': len(await request.body())}",
        "Api/v1/Token/Get.py": "async def handler(request):\n"
        "    return [request.session.csrf_token() for _ in range(20)]",
        "Api/v1/Login/Post.py": "from treefold_http.auth import login\n"
        "async def handler(request):\n    login(request, 1)",
        "Middleware/__init__.py": "from treefold_http.middleware import CSRF, Sessions, under\n"
        f"middlewares = [{entry}]\n",
    }


class Visitor:
    """A client with a session, and the tokens that a page of it holds."""

    def __init__(self, app: Application, ask: Ask) -> None:
        self.app, self._ask = app, ask
        answer = ask(app, "GET", "/v1/token")
        self.tokens: list[str] = answer.json()
        self.cookie = answer.fields("set-cookie")[0].partition(";")[0]

    def post(self, *headers: tuple[str, str], target: str = "/v1", **options: Any) -> Answer:
        method = options.pop("method", "POST")
        fields = [("cookie", self.cookie), *headers]
        return self._ask(self.app, method, target, headers=fields, **options)


@pytest.fixture(params=["Sessions()", "Sessions(store='cookie')", "Sessions(), CSRF()"])
def entry(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def visitor(project: Project, ask: Ask) -> Visitor:
    return Visitor(project(tree("Sessions()"), settings=SETTINGS), ask)


SAME = ("sec-fetch-site", "same-origin")
OWN = ("origin", "http://example.localhost")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([SAME], 200),
        ([("sec-fetch-site", "none")], 200),
        ([("sec-fetch-site", "same-site")], 403),
        ([("sec-fetch-site", "cross-site")], 403),
        ([("sec-fetch-site", "")], 403),
        ([SAME, ("sec-fetch-site", "cross-site")], 403),
        ([("sec-fetch-site", "cross-site"), OWN], 403),
        ([SAME, ("origin", "https://evil.example")], 200),
        ([OWN], 200),
        ([("origin", "http://example.localhost:80")], 200),
        ([("origin", "null")], 403),
        ([("origin", "")], 403),
        ([("origin", "https://example.localhost")], 403),
        ([("origin", "http://example.localhost:8080")], 403),
        ([("origin", "http://sub.example.localhost")], 403),
        ([("origin", "http://example.localhost.evil")], 403),
        ([("origin", "http://example.localhost@evil")], 403),
        ([("origin", "http://example.localhost/")], 403),
        ([OWN, ("origin", "https://evil.example")], 403),
        ([("referer", "http://example.localhost/page?x=1")], 200),
        ([("referer", "http://example.localhost")], 200),
        ([("referer", "http://evil.example/http://example.localhost/")], 403),
        ([("referer", "/v1")], 403),
        ([("referer", "http://example.localhost/"), ("referer", "http://evil.example/")], 403),
        ([("origin", "null"), ("referer", "http://example.localhost/")], 403),
        ([], 403),
    ],
)
def test_s62_a_request_that_changes_something_comes_from_this_site(
    project: Project, ask: Ask, entry: str, headers: Fields, status: int
) -> None:
    visitor = Visitor(project(tree(entry), settings=SETTINGS), ask)
    assert visitor.post(*headers).status == status
    assert visitor.post(*headers, method="DELETE").status == status


def test_s62_a_request_that_changes_nothing_passes(visitor: Visitor) -> None:
    for headers in ([], [("sec-fetch-site", "cross-site")], [("origin", "https://evil.example")]):
        assert visitor.post(*headers, method="GET").status == 200


def test_s62_a_request_without_the_session_is_not_subject(visitor: Visitor, ask: Ask) -> None:
    evil = ("origin", "https://evil.example")
    bearer = ("authorization", "Bearer x")
    assert ask(visitor.app, "POST", "/v1", headers=[evil]).status == 200
    assert ask(visitor.app, "POST", "/v1", headers=[evil, bearer]).status == 200
    assert ask(visitor.app, "POST", "/v1", headers=[evil, ("cookie", "theme=dark")]).status == 200
    assert visitor.post(evil, bearer).status == 403


def test_s62_csrf_alone_guards_every_cookie(project: Project, ask: Ask) -> None:
    app = project(tree("CSRF()"))
    cookie = ("cookie", "auth=x")
    assert ask(app, "POST", "/v1", headers=[cookie]).status == 403
    assert ask(app, "POST", "/v1", headers=[cookie, ("x-csrf-token", "a.b")]).status == 403
    assert ask(app, "POST", "/v1", headers=[cookie, OWN]).status == 200
    assert ask(app, "POST", "/v1").status == 200


@pytest.mark.parametrize("name", ["__Host-session", "session"])
def test_s62_either_name_of_the_cookie_counts(visitor: Visitor, ask: Ask, name: str) -> None:
    assert ask(visitor.app, "POST", "/v1", headers=[("cookie", f"a=b; {name}=x")]).status == 403


@pytest.mark.parametrize(
    "entry",
    [
        "Sessions(trusted_origins=['https://app.example'])",
        "Sessions(), CSRF(trusted_origins=['https://app.example'])",
    ],
)
def test_s62_an_origin_that_is_listed_may_send_requests(
    project: Project, ask: Ask, entry: str
) -> None:
    visitor = Visitor(project(tree(entry), settings=SETTINGS), ask)
    cross, listed = ("sec-fetch-site", "cross-site"), ("origin", "https://app.example")
    assert visitor.post(cross, listed).status == 200
    assert visitor.post(("referer", "https://app.example/page")).status == 200
    assert visitor.post(cross, ("origin", "https://app.example.evil")).status == 403
    assert visitor.post(cross, listed, ("origin", "https://evil.example")).status == 403
    assert visitor.post(cross, listed, target="/v1/login").status == 204


def test_d13_csrf_false_leaves_the_guard_out(project: Project, ask: Ask) -> None:
    visitor = Visitor(project(tree("Sessions(csrf=False)"), settings=SETTINGS), ask)
    assert visitor.post(("origin", "https://evil.example")).status == 200


def test_d13_the_guard_is_added_where_the_sessions_are(project: Project, ask: Ask) -> None:
    files = tree("under('/v1/token', Sessions())")
    app = project(files, settings=SETTINGS)
    cookie = ("cookie", "__Host-session=x")
    assert ask(app, "POST", "/v1", headers=[cookie]).status == 200
    files["Api/v1/Own/Post.py"] = (
        "from treefold_http.middleware import Sessions\nmiddlewares = [Sessions()]\n"
        "async def handler(request): return 'done'"
    )
    app = project(files, root="other", settings=SETTINGS)
    assert ask(app, "POST", "/v1/own", headers=[cookie]).status == 403
    assert ask(app, "POST", "/v1/own", headers=[cookie, OWN]).status == 200


def test_d13_a_guard_before_the_sessions_stops_the_boot(project: Project) -> None:
    app = project(tree("CSRF(), Sessions()"), settings=SETTINGS)
    with pytest.raises(BootError, match=r"CSRF needs the session; list it after Sessions"):
        app.boot()


# -- tokens, for clients that say nothing


def test_s63_the_token_of_the_session_passes(visitor: Visitor) -> None:
    for token in visitor.tokens[:2]:
        assert visitor.post(("x-csrf-token", token)).status == 200
    fields = f"n=5&csrf_token={visitor.tokens[0]}".encode()
    answer = visitor.post(FORM, target="/v1/form", chunks=[fields])
    assert (answer.status, answer.json()) == (200, {"n": "5", "body": len(fields)})


def test_s63_a_token_does_not_help_a_page_of_another_site(visitor: Visitor) -> None:
    token = ("x-csrf-token", visitor.tokens[0])
    assert visitor.post(token, ("sec-fetch-site", "cross-site")).status == 403
    assert visitor.post(token, ("origin", "null")).status == 403


def test_s63_a_token_of_another_session_is_nothing(project: Project, ask: Ask, entry: str) -> None:
    app = project(tree(entry), settings=SETTINGS)
    mine, yours = Visitor(app, ask), Visitor(app, ask)
    assert mine.post(("x-csrf-token", mine.tokens[0])).status == 200
    assert mine.post(("x-csrf-token", yours.tokens[0])).status == 403


def test_s63_a_cookie_is_never_a_token(visitor: Visitor) -> None:
    visitor.cookie += "; csrf=X; csrf_token=X; X-CSRF-Token=X"
    assert visitor.post(("x-csrf-token", "X")).status == 403
    visitor.cookie += f"; csrf_token={visitor.tokens[0]}"
    assert visitor.post().status == 403


def test_s63_no_part_of_a_token_may_be_changed(visitor: Visitor) -> None:
    token = visitor.tokens[0]
    salt, _, signature = token.partition(".")
    for wrong in (
        "",
        ".",
        salt,
        signature,
        f".{signature}",
        f"{salt}.",
        f"{salt}x.{signature}",
        f"{salt}.{signature}x",
        f"{salt}.{signature[:-1]}",
        token.swapcase(),
        "\xff.\xff",
        '"><script>',
        "a" * 5000,
    ):
        answer = visitor.post(("x-csrf-token", wrong))
        assert answer.status == 403
        assert b"<script>" not in answer.body


def test_s63_a_login_makes_the_tokens_of_before_worthless(visitor: Visitor, ask: Ask) -> None:
    answer = visitor.post(SAME, target="/v1/login")
    visitor.cookie = answer.fields("set-cookie")[0].partition(";")[0]
    assert visitor.post(("x-csrf-token", visitor.tokens[0])).status == 403


def test_s50_every_token_is_another_text_of_a_strict_charset(visitor: Visitor) -> None:
    assert len(set(visitor.tokens)) == 20
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{60,70}", token) for token in visitor.tokens)


def test_a_form_with_files_sends_its_token_in_the_header(visitor: Visitor) -> None:
    kind = ("content-type", "multipart/form-data; boundary=x")
    body = (
        b'--x\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n'
        + visitor.tokens[0].encode()
        + b"\r\n--x--\r\n"
    )
    assert visitor.post(kind, chunks=[body]).status == 403
    assert visitor.post(kind, ("x-csrf-token", visitor.tokens[0]), chunks=[body]).status == 200


# -- logins


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 204),
        ([SAME], 204),
        ([("sec-fetch-site", "cross-site")], 403),
        ([("sec-fetch-site", "same-site")], 403),
        ([("origin", "https://evil.example")], 403),
        ([("origin", "null")], 403),
    ],
)
def test_s62_another_site_cannot_log_a_visitor_in(
    project: Project, ask: Ask, headers: Fields, status: int
) -> None:
    app = project(tree("Sessions()"), settings=SETTINGS)
    answer = ask(app, "POST", "/v1/login", headers=headers)
    assert answer.status == status
    assert (answer.fields("set-cookie") != []) == (status == 204)


@pytest.mark.parametrize(
    "origins", ["https://a.example", ["a.example"], ["https://a.example/"], ["null"], ["*"], ["A"]]
)
def test_an_origin_that_is_none_is_refused_where_it_is_given(origins: Any) -> None:
    with pytest.raises(ValueError, match=r"must be a list of origins such as"):
        CSRF(trusted_origins=origins)
