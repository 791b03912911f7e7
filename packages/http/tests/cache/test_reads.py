"""What was read of a request while an answer was made decides who gets the answer (S-52, S-53)."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Sent = dict[str, Any]
"""The options of one request: its headers, its target, more of its scope."""

SETTINGS = Settings(secret_key="0123456789abcdef" * 2)


def cached_project(
    project: Project, reads: str, *, middleware: str = "[]", setup: str = "", key: str = ""
) -> Application:
    """A cached handler whose answer is one expression, and the number of its call."""
    handler = f"""
from treefold_http.cache import cached
from Services.calls import calls, user

@cached(60{key})
async def handler(request):
    calls.append(1)
    return {{"n": len(calls), "read": {reads}}}
"""
    settings = f"""
from contextvars import ContextVar
from treefold_http.cache import cached
from treefold_http.middleware import *
from Services.calls import user
{dedent(setup)}
middlewares = {middleware}
"""
    services = (
        "from contextvars import ContextVar\ncalls = []\nuser = ContextVar('user', default='')"
    )
    files = {
        "Api/v1/Get.py": handler,
        "Middleware/__init__.py": settings,
        "Services/calls.py": services,
    }
    return project(files, settings=SETTINGS)


def send(app: Application, ask: Ask, sent: Sent) -> dict[str, Any]:
    options = dict(sent)
    return ask(app, "GET", options.pop("target", "/v1"), **options).json()


def fields(**named: str) -> Sent:
    return {"headers": [(name.replace("_", "-"), value) for name, value in named.items()]}


def client(host: str, port: int = 1) -> Sent:
    return {"more": {"client": (host, port)}}


READS = {
    "a field": ("request.headers.get('x-user')", fields(x_user="a"), fields(x_user="b")),
    "no field": ("request.headers.get('x-user')", fields(x_user="a"), fields()),
    "a list of fields": ("request.headers.getlist('X-User')", fields(x_user="a"), fields()),
    "the presence of a field": ("'x-user' in request.headers", fields(x_user="a"), fields()),
    "bytes of a field": ("request.fields.get(b'x-user') == b'a'", fields(x_user="a"), fields()),
    "the language": (
        "request.headers['accept-language']",
        fields(accept_language="de"),
        fields(accept_language="en"),
    ),
    "all fields": ("dict(request.headers)", fields(x_user="a"), fields(x_user="b")),
    "pairs": ("request.headers.multi_items()", fields(x_user="a"), fields(x_user="b")),
    "raw fields": ("len(request.headers.raw)", fields(x_user="a"), fields(x_user="b")),
    "the scope": (
        "[v.decode() for k, v in request.scope['headers']]",
        fields(x_user="a"),
        fields(x_user="b"),
    ),
    "a copy of the scope": (
        "str(dict(request.scope)['headers'])",
        fields(x_user="a"),
        fields(x_user="b"),
    ),
    "an unpacked scope": (
        "str({**request.scope}['headers'])",
        fields(x_user="a"),
        fields(x_user="b"),
    ),
    "a cookie": ("request.cookies.get('u')", fields(cookie="u=a"), fields(cookie="u=b")),
    "a bearer token": (
        "request.headers.get('authorization')",
        fields(authorization="Bearer a"),
        fields(authorization="Bearer b"),
    ),
    "the media type": ("request.content_type", fields(content_type="a/b"), fields()),
    "the address": ("request.client.host", client("10.0.0.1"), client("10.0.0.2")),
    "the port": ("request.client.port", client("10.0.0.1", 1), client("10.0.0.1", 2)),
    "an unpacked address": ("[*request.client]", client("10.0.0.1", 1), client("10.0.0.1", 2)),
    "an encoded address": ("request.client", client("10.0.0.1", 1), client("10.0.0.1", 2)),
    "an address as text": ("str(request.client)", client("10.0.0.1", 1), client("10.0.0.1", 2)),
    "the spelling of the path": (
        "request.raw_path.decode()",
        {"target": "/v1"},
        {"target": "//v1/"},
    ),
    "the path": ("request.path", {"target": "/v1"}, {"target": "//v1"}),
    "the url": ("str(request.url)", {"target": "/v1?a=1&b=2"}, {"target": "/v1?b=2&a=1"}),
    "the order of names": (
        "list(request.query)",
        {"target": "/v1?a=1&b=2"},
        {"target": "/v1?b=2&a=1"},
    ),
    "the order of repeated parameters": (
        "request.query.getlist('a')",
        {"target": "/v1?a=1&a=2"},
        {"target": "/v1?a=2&a=1"},
    ),
    "the case of the host": (
        "request.host",
        {"host": False, "headers": [("host", "a")]},
        {"host": False, "headers": [("host", "A")]},
    ),
    "a body": (
        "(await request.body()).decode()",
        {"chunks": [b"a"]},
        {"chunks": [b"b"]},
    ),
    "a JSON body": ("await request.json()", {"chunks": [b"1"]}, {"chunks": [b"2"]}),
    "a body of HTTP/2": (
        "(await request.body()).decode()",
        {"chunks": [b"a"], "more": {"http_version": "2"}},
        {"chunks": [b"b"], "more": {"http_version": "2"}},
    ),
    "the request id": ("request.id", fields(x_request_id="a"), fields(x_request_id="b")),
}


@pytest.mark.parametrize(("reads", "first", "second"), READS.values(), ids=READS.keys())
def test_s52_what_a_handler_reads_by_itself_decides(
    project: Project, ask: Ask, reads: str, first: Sent, second: Sent
) -> None:
    app = cached_project(project, reads)
    fresh = [send(app, ask, sent)["read"] for sent in (first, second)]
    assert fresh[0] != fresh[1] or reads == "len(request.headers.raw)"
    again = [send(app, ask, sent)["read"] for sent in (second, first, second)]
    assert again == [fresh[1], fresh[0], fresh[1]]


NEVER_TWICE = {"a body", "a JSON body", "a body of HTTP/2", "the request id"}


@pytest.mark.parametrize("case", [name for name in READS if name not in NEVER_TWICE])
def test_the_same_request_gets_the_kept_answer(project: Project, ask: Ask, case: str) -> None:
    reads, first, second = READS[case]
    app = cached_project(project, reads)
    for sent in (first, second):
        send(app, ask, sent)
    numbers = [send(app, ask, sent)["n"] for sent in (first, second, first, second)]
    assert numbers[:2] == numbers[2:]
    assert max(numbers) <= 3  # the first answer was stored before its names were learned


def test_what_is_not_read_decides_nothing(project: Project, ask: Ask) -> None:
    app = cached_project(project, "request.headers.get('x-user')")
    other = {**fields(x_user="a", user_agent="x", accept="y"), **client("10.9.9.9")}
    first = send(app, ask, {**fields(x_user="a"), **client("10.0.0.1")})
    assert send(app, ask, other) == first


OUTER = """
    async def put(request, call_next):
        request.state.user = request.headers.get("x-user")
        user.set(request.headers.get("x-user"))
        return await call_next(request)

    async def put_object(request, call_next):
        request.state.user = object()
        user.set(object())
        request.state.name = request.headers.get("x-user")
        return await call_next(request)

    async def put_table(request, call_next):
        request.state.user = {"name": request.headers.get("x-user")}
        return await call_next(request)

    class Stamp:
        def after(self, request, response):
            response.headers["X-Stamp"] = request.headers.get("x-user", "")
"""


@pytest.mark.parametrize(
    "reads",
    [
        "request.state.user",
        "getattr(request.state, 'user', None)",
        "vars(request.state)",
        "user.get()",
    ],
)
def test_s52_values_of_an_outer_middleware_decide(project: Project, ask: Ask, reads: str) -> None:
    app = cached_project(project, reads, middleware="[put]", setup=OUTER)
    ann, bob = fields(x_user="ann"), fields(x_user="bob")
    assert "ann" in str(send(app, ask, ann)["read"])
    assert "bob" in str(send(app, ask, bob)["read"])
    assert send(app, ask, ann)["n"] == send(app, ask, ann)["n"]


def test_s52_a_table_in_the_state_decides(project: Project, ask: Ask) -> None:
    reads = "[request.state.user.copy(), request.state.user.update(seen=1)]"
    app = cached_project(project, reads, middleware="[put_table]", setup=OUTER)
    ann, bob = fields(x_user="ann"), fields(x_user="bob")
    names = [send(app, ask, who)["read"][0]["name"] for who in (ann, bob, ann, bob)]
    assert names == ["ann", "bob", "ann", "bob"]
    assert send(app, ask, ann)["n"] == send(app, ask, ann)["n"]


@pytest.mark.parametrize("reads", ["str(request.state.roles)", "str(user.get())"])
def test_s52_a_tuple_is_another_value_than_a_list(project: Project, ask: Ask, reads: str) -> None:
    setup = """
        async def put_roles(request, call_next):
            name = request.headers.get("x-user")
            value = ("admin",) if name == "ann" else ["tuple", "admin"]
            request.state.roles = value
            user.set(value)
            return await call_next(request)
    """
    app = cached_project(project, reads, middleware="[put_roles]", setup=setup)
    read_by = {who: send(app, ask, fields(x_user=who))["read"] for who in ("ann", "bob")}
    assert read_by == {"ann": "('admin',)", "bob": "['tuple', 'admin']"}


def test_s52_a_tuple_with_a_list_that_the_handler_changes_decides_as_it_was(
    project: Project, ask: Ask
) -> None:
    setup = """
        async def put_roles(request, call_next):
            request.state.roles = ("of", [request.headers["x-user"]])
            return await call_next(request)
    """
    reads = "[str(request.state.roles), request.state.roles[1].append('seen')]"
    app = cached_project(project, reads, middleware="[put_roles]", setup=setup)
    ann = fields(x_user="ann")
    assert send(app, ask, ann)["n"] == send(app, ask, ann)["n"]


TWO_OF_ONE_NAME = """
other = ContextVar('user', default='')

async def set_users(request, call_next):
    for variable, name in ((user, "x-user"), (other, "x-other")):
        if name in request.headers:
            variable.set(request.headers[name])
    return await call_next(request)
"""


@pytest.mark.parametrize("twin", ["other", "holder.other"])
def test_s52_context_variables_of_one_name_are_told_apart(
    project: Project, ask: Ask, twin: str
) -> None:
    setup = TWO_OF_ONE_NAME
    if twin == "holder.other":  # a variable that no module holds
        setup = setup.replace("other = ", "class holder: other = ")
        setup = setup.replace("(other,", "(holder.other,")
    reads = f"user.get() + '|' + __import__('Middleware').{twin}.get()"
    app = cached_project(project, reads, middleware="[set_users]", setup=setup)

    sent = [fields(x_user="ann"), fields(x_other="ann"), fields(x_user="ann", x_other="bob")]
    sent.append(fields(x_user="bob", x_other="ann"))
    wanted = ["ann|", "|ann", "ann|bob", "bob|ann"]
    assert [send(app, ask, each)["read"] for each in [*sent, *sent]] == wanted * 2


def test_context_variables_of_one_name_keep_their_answers(project: Project, ask: Ask) -> None:
    reads = "user.get() + '|' + __import__('Middleware').other.get()"
    app = cached_project(project, reads, middleware="[set_users]", setup=TWO_OF_ONE_NAME)

    both = fields(x_user="ann", x_other="bob")
    assert send(app, ask, both) == send(app, ask, both)


@pytest.mark.parametrize("reads", ["id(request.state.user)", "id(user.get())"])
def test_s52_an_object_that_decides_is_refused_with_the_key_to_pass(
    project: Project, ask: Ask, caplog: pytest.LogCaptureFixture, reads: str
) -> None:
    app = cached_project(project, reads, middleware="[put_object]", setup=OUTER)
    with caplog.at_level(logging.WARNING):
        assert [send(app, ask, fields())["n"] for _ in range(3)] == [1, 2, 3]
    told = [record.getMessage() for record in caplog.records if "cached" in record.getMessage()]
    assert len(told) == 1
    assert "pass key= to cached" in told[0]
    assert "user" in told[0]


def test_with_a_key_an_object_decides_nothing(project: Project, ask: Ask) -> None:
    key = ", key=lambda request: request.state.name"
    app = cached_project(
        project, "request.state.name", middleware="[put_object]", setup=OUTER, key=key
    )
    ann, bob = fields(x_user="ann"), fields(x_user="bob")
    asked = [send(app, ask, who) for who in (ann, bob, ann, bob)]
    assert [(one["n"], one["read"]) for one in asked] == [
        (1, "ann"),
        (2, "bob"),
        (1, "ann"),
        (2, "bob"),
    ]


def test_an_attribute_of_the_application_decides_nothing(project: Project, ask: Ask) -> None:
    app = cached_project(project, "request.state.pool is None")
    app.state.pool = object()
    asked = [
        ask(app, "GET", "/v1", more={"state": {"pool": app.state.pool}}).json() for _ in range(2)
    ]
    assert [one["n"] for one in asked] == [1, 1]


def test_s52_an_inner_middleware_puts_no_field_on_the_answer_of_another(
    project: Project, ask: Ask
) -> None:
    app = cached_project(project, "1", middleware="[cached(60), Stamp()]", setup=OUTER)
    stamps = [
        ask(app, "GET", "/v1", headers=[("x-user", who)]).fields("x-stamp")
        for who in ("ann", "bob", "ann", "bob")
    ]
    assert stamps == [["ann"], ["bob"], ["ann"], ["bob"]]


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ("SecurityHeaders()", "content-security-policy"),
        ("CORS(['https://a.example'])", "access-control-allow-origin"),
    ],
)
def test_fields_of_inner_middleware_are_on_every_kept_answer(
    project: Project, ask: Ask, entry: str, field: str
) -> None:
    files = {
        "Api/v1/Get.py": "calls = []\nasync def handler(request):\n    calls.append(1)\n"
        "    return [len(calls)]",
        "Middleware/__init__.py": "from treefold_http.cache import cached\n"
        f"from treefold_http.middleware import *\nmiddlewares = [cached(60), {entry}]",
    }
    app = project(files)
    sent = [("origin", "https://a.example")]
    asked = [ask(app, "GET", "/v1", headers=sent) for _ in range(3)]
    assert [answer.json() for answer in asked][1:] == [asked[1].json()] * 2
    assert asked[0].fields(field) == asked[2].fields(field) != []
    other = ask(app, "GET", "/v1", headers=[("origin", "https://b.example")])
    assert "https://a.example" not in other.fields("access-control-allow-origin")


@pytest.mark.parametrize("middleware", ["[cached(60), GZip()]", "[GZip(), cached(60)]"])
def test_a_kept_answer_is_compressed_for_clients_that_accept_it(
    project: Project, ask: Ask, middleware: str
) -> None:
    files = {
        "Api/v1/Get.py": "calls = []\nasync def handler(request):\n    calls.append(1)\n"
        "    return [len(calls), 'x' * 2000]",
        "Middleware/__init__.py": "from treefold_http.cache import cached\n"
        f"from treefold_http.middleware import GZip\nmiddlewares = {middleware}",
    }
    app = project(files)
    accepts = [("accept-encoding", "gzip")]
    coded = [ask(app, "GET", "/v1", headers=accepts) for _ in range(2)]
    assert [answer.fields("content-encoding") for answer in coded] == [["gzip"]] * 2
    assert json.loads(gzip.decompress(coded[1].body))[0] == 1
    plain = ask(app, "GET", "/v1")
    assert (plain.fields("content-encoding"), plain.json()[0]) == ([], 1)


def test_a_cache_moves_inside_of_middleware_that_sees_every_answer(
    project: Project, ask: Ask
) -> None:
    setup = """
    class Count:
        sees_every_answer = True
        seen = 0

        def before(self, request):
            self.seen += 1

        def after(self, request, response):
            response.headers["X-Seen"] = str(self.seen)
    """
    app = cached_project(project, "1", middleware="[cached(60), Count()]", setup=setup)
    asked = [ask(app, "GET", "/v1") for _ in range(3)]
    assert [answer.fields("x-seen") for answer in asked] == [["1"], ["2"], ["3"]]
    assert [answer.json()["n"] for answer in asked] == [1, 1, 1]


def test_a_guard_between_a_cache_and_middleware_with_a_page_runs_first(
    project: Project, ask: Ask
) -> None:
    setup = """
    from treefold_http import Forbidden

    async def gate(request, call_next):
        if "x-gate" not in request.headers:
            raise Forbidden("shut")
        return await call_next(request)

    class Page:
        sees_every_answer = True

        async def http(self, request, call_next):
            return "page" if request.route is None else await call_next(request)
    """
    app = cached_project(project, "1", middleware="[cached(60), gate, Page()]", setup=setup)
    assert ask(app, "GET", "/page").status == 403
    assert ask(app, "GET", "/page", headers=[("x-gate", "open")]).body == b"page"


@pytest.mark.parametrize(
    ("reads", "entries", "headers"),
    [
        ("request.session.user", "[Sessions(csrf=False)]", []),
        (
            "request.headers['authorization']",
            "[SecurityHeaders()]",
            [("authorization", "Bearer a")],
        ),
    ],
)
def test_a_kept_answer_is_still_not_for_the_store_of_a_browser(
    project: Project, ask: Ask, reads: str, entries: str, headers: list[tuple[str, str]]
) -> None:
    app = cached_project(project, reads, middleware=entries)
    asked = [ask(app, "GET", "/v1", headers=headers) for _ in range(3)]
    assert [answer.fields("cache-control") for answer in asked] == [["no-store"]] * 3
    assert asked[1].json() == asked[2].json()


SESSION = """
from treefold_http.cache import cached

calls = []

@cached(60)
async def handler(request):
    calls.append(1)
    return [request.session.user, request.session.get("cart"), len(calls)]
"""
LOGIN = """
from treefold_http.auth import login

async def handler(request):
    login(request, request.query["user"])
    request.session["cart"] = request.query["cart"]
"""


@pytest.mark.parametrize("store", ["memory", "cookie"])
def test_s52_a_session_decides_with_its_values(project: Project, ask: Ask, store: str) -> None:
    files = {
        "Api/v1/Get.py": SESSION,
        "Api/v1/Login/Post.py": LOGIN,
        "Middleware/__init__.py": "from treefold_http.middleware import Sessions\n"
        f"middlewares = [Sessions(store='{store}', csrf=False)]",
    }
    app = project(files, settings=SETTINGS)
    cookies: dict[str, str] = {}

    def log_in(user: str, cart: str) -> None:
        sent = [("cookie", cookies[user])] if user in cookies else []
        made = ask(app, "POST", f"/v1/login?user={user}&cart={cart}", headers=sent)
        cookies[user] = made.fields("set-cookie")[0].partition(";")[0]

    def see(user: str) -> list[Any]:
        sent = [("cookie", cookies[user])] if user in cookies else []
        return ask(app, "GET", "/v1", headers=sent).json()

    log_in("ann", "tea")
    log_in("bob", "oil")
    assert [see(who)[:2] for who in ("ann", "bob", "ann", "-")] == [
        ["ann", "tea"],
        ["bob", "oil"],
        ["ann", "tea"],
        [None, None],
    ]
    assert see("ann")[2] == see("ann")[2]
    assert see("-")[2] == see("-")[2]
    log_in("ann", "rum")
    assert see("ann")[:2] == ["ann", "rum"]


def test_s52_a_session_that_a_handler_changes_is_not_answered_from_the_cache(
    project: Project, ask: Ask
) -> None:
    files = {
        "Api/v1/Get.py": "from treefold_http.cache import cached\n@cached(60)\n"
        "async def handler(request):\n    seen = request.session.setdefault('seen', [])\n"
        "    seen.append(1)\n    return [len(seen)]",
        "Middleware/__init__.py": "from treefold_http.middleware import Sessions\n"
        "middlewares = [Sessions(csrf=False)]",
    }
    app = project(files, settings=SETTINGS)
    first = ask(app, "GET", "/v1")
    sent = [("cookie", first.fields("set-cookie")[0].partition(";")[0])]
    assert [ask(app, "GET", "/v1", headers=sent).json() for _ in range(3)] == [[2], [3], [4]]
    assert ask(app, "GET", "/v1").json() == [1]


def test_the_answer_names_what_decided_it_for_caches_further_out(
    project: Project, ask: Ask
) -> None:
    app = cached_project(project, "request.headers.get('accept-language')")
    for _ in range(2):
        answer = ask(app, "GET", "/v1", headers=[("accept-language", "de")])
        assert (answer.fields("vary"), answer.fields("cache-control")) == (["accept-language"], [])


def test_the_answer_to_a_key_in_a_field_is_private(project: Project, ask: Ask) -> None:
    app = cached_project(project, "request.headers.get('x-api-key')")
    for _ in range(2):
        answer = ask(app, "GET", "/v1", headers=[("x-api-key", "k")])
        assert (answer.fields("vary"), answer.fields("cache-control")) == (
            ["x-api-key"],
            ["private"],
        )
