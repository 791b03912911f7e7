"""Deprecated versions and routes: the fields of RFC 9745 and RFC 8594 on every answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application, BootError

if TYPE_CHECKING:
    from conftest import Answer, Lines, Socket
    from http_reloading import Live

Ask = Callable[..., "Answer"]
Project = Callable[..., Application]
Talk = Callable[..., "Socket"]

VERSION = """
deprecated = 2026-11-01
sunset = 2027-06-30
link = "https://example.org/v2"
successor = "v2"
"""
GET = "async def handler(request):\n    return 'ok'\n"
DATE = "@1793491200"
SUNSET = "Wed, 30 Jun 2027 00:00:00 GMT"
LINKS = (
    '<https://example.org/v2>; rel="deprecation"; type="text/html",'
    ' <https://example.org/v2>; rel="sunset"; type="text/html"'
)
FIELDS = ("deprecation", "sunset", "link")


def successor(path: str) -> str:
    return f'<{path}>; rel="successor-version"'


def see(answer: Answer) -> tuple[list[str], ...]:
    return tuple(answer.fields(name) for name in FIELDS)


Seen = tuple[list[str], ...]
NONE: Seen = ([], [], [])
SINCE: Seen = ([DATE], [], [])
DATES = ([DATE], [SUNSET])
OF_VERSION = (*DATES, [LINKS])
FILES = {
    "Api/v1/version.toml": VERSION,
    "Api/v1/User/Get.py": GET,
    "Api/v1/User/[id]/Get.py": "from treefold_http import NotFound\n"
    "async def handler(id: int):\n"
    "    if id > 9:\n        raise NotFound('No such user')\n"
    "    if id == 0:\n        raise ValueError('a bug')\n"
    "    return {'id': id}\n",
    "Api/v1/User/[id]/Delete.py": GET,
    "Api/v2/User/Get.py": GET,
    "Api/v2/User/[name]/Get.py": GET,
}


def test_a_deprecated_version_says_so_on_every_route(project: Project, ask: Ask) -> None:
    app = project(FILES)
    assert see(ask(app, "GET", "/v1/user")) == (*DATES, [LINKS, successor("/v2/user")])
    assert see(ask(app, "GET", "/v1/user/7")) == (*DATES, [LINKS, successor("/v2/user/7")])
    assert see(ask(app, "DELETE", "/v1/user/7")) == OF_VERSION
    assert see(ask(app, "GET", "/v2/user")) == NONE
    assert see(ask(app, "GET", "/v2/user/ann")) == NONE


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/user/10", 404),
        ("GET", "/v1/user/ann", 422),
        ("GET", "/v1/user/0", 500),
    ],
)
def test_errors_of_a_route_carry_the_fields(
    project: Project, ask: Ask, method: str, path: str, status: int
) -> None:
    answer = ask(project(FILES), method, path)
    assert answer.status == status
    assert see(answer) == (*DATES, [LINKS, successor(path.replace("v1", "v2"))])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/v1/user/7", 405),
        ("PUT", "/v1/user", 405),
        ("GET", "/v1/nothing", 404),
        ("GET", "//v1/nothing", 404),
        ("OPTIONS", "/v1/user", 204),
    ],
)
def test_answers_without_a_route_carry_those_of_the_version(
    project: Project, ask: Ask, method: str, path: str, status: int
) -> None:
    app = project({**FILES, "treefold.toml": "auto_options = true"})
    answer = ask(app, method, path)
    assert answer.status == status
    assert see(answer) == OF_VERSION


@pytest.mark.parametrize("path", ["/v2/nothing", "/v3/user", "/nothing", "/"])
def test_a_404_elsewhere_has_none_of_the_fields(project: Project, ask: Ask, path: str) -> None:
    answer = ask(project(FILES), "GET", path)
    assert answer.status == 404
    assert see(answer) == NONE


def test_a_head_request_carries_the_fields(project: Project, ask: Ask) -> None:
    app = project({**FILES, "treefold.toml": "auto_head = true"})
    answer = ask(app, "HEAD", "/v1/user/7")
    assert (answer.status, answer.body) == (200, b"")
    assert see(answer) == (*DATES, [LINKS, successor("/v2/user/7")])


def test_guards_that_refuse_answer_with_the_fields(project: Project, ask: Ask) -> None:
    guard = (
        "from treefold_http import Unauthorized, under\n"
        "async def check(request, call_next):\n    raise Unauthorized('no')\n"
        "middlewares = [under('/v1/user', check)]\n"
    )
    app = project({**FILES, "Middleware/__init__.py": guard})
    answer = ask(app, "GET", "/v1/user/7")
    assert answer.status == 401
    assert see(answer) == (*DATES, [LINKS, successor("/v2/user/7")])
    refused = ask(app, "PUT", "/v1/user/7")
    assert refused.status == 401
    assert see(refused) == OF_VERSION


def test_a_broken_file_answers_with_the_fields_of_its_version(project: Project, ask: Ask) -> None:
    app = project({**FILES, "Api/v1/User/Get.py": "raise ValueError"})
    answer = ask(app, "GET", "/v1/user")
    assert answer.status == 500
    assert see(answer) == (*DATES, [LINKS, successor("/v2/user")])


KINDS = {
    "stream": "from treefold_http import Response\n"
    "async def rows():\n    yield b'row'\n"
    "async def handler(request):\n    return Response.stream(rows())\n",
    "file": "from treefold_http import Response\n"
    "async def handler(request):\n    return Response.file(__file__)\n",
    "events": "from treefold_http import EventStream\n"
    "async def rows():\n    yield 'row'\n"
    "async def handler(request):\n    return EventStream(rows())\n",
    "plain": "def handler():\n    return [1]\n",
    "none": "async def handler(request):\n    return None\n",
    "limit": "timeout = 0\nasync def handler(request):\n"
    "    import asyncio\n    await asyncio.sleep(5)\n",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_answer_carries_the_fields(project: Project, ask: Ask, kind: str) -> None:
    app = project({"Api/v1/version.toml": VERSION, "Api/v1/X/Get.py": KINDS[kind]})
    assert see(ask(app, "GET", "/v1/x")) == OF_VERSION


def test_a_file_that_the_client_has_is_304_with_the_fields(project: Project, ask: Ask) -> None:
    app = project({"Api/v1/version.toml": VERSION, "Api/v1/X/Get.py": KINDS["file"]})
    tag = ask(app, "GET", "/v1/x").fields("etag")[0]
    answer = ask(app, "GET", "/v1/x", headers=[("if-none-match", tag)])
    assert (answer.status, see(answer)) == (304, OF_VERSION)


def test_cached_answers_carry_the_fields_once(project: Project, ask: Ask) -> None:
    source = (
        "from treefold_http.cache import cached\ncalls = []\n"
        "@cached(60)\nasync def handler(id: int):\n    calls.append(id)\n    return calls\n"
    )
    app = project({**FILES, "Api/v1/User/[id]/Get.py": source})
    expected = (*DATES, [LINKS, successor("/v2/user/7")])
    first, second = (ask(app, "GET", "/v1/user/7") for _ in range(2))
    assert (first.json(), second.json()) == ([7], [7])
    assert see(first) == see(second) == expected
    unchanged = ask(app, "GET", "/v1/user/7", headers=[("if-none-match", first.fields("etag")[0])])
    assert (unchanged.status, see(unchanged)) == (304, expected)


def test_fields_of_the_author_are_never_replaced(project: Project, ask: Ask) -> None:
    own = (
        "from treefold_http import Response\nasync def handler(request):\n"
        "    return Response.text('x', headers={'Link': '</a>; rel=\"next\"', 'Sunset': 'mine'})\n"
    )
    app = project({**FILES, "Api/v1/User/Get.py": own})
    answer = ask(app, "GET", "/v1/user")
    assert answer.fields("sunset") == ["mine"]
    assert sorted(answer.fields("link")) == sorted(
        ['</a>; rel="next"', LINKS, successor("/v2/user")]
    )


def test_links_of_other_middleware_stay_as_they_were(project: Project, ask: Ask) -> None:
    own = (
        "from treefold_http import Response\n"
        "class Linked:\n    def before(self, request):\n"
        "        request.add_answer_fields([(b'link', b'</b>')])\n"
        "middlewares = [Linked()]\nasync def handler(request):\n"
        "    return Response.text('x', headers={'Link': '</a>'})\n"
    )
    answer = ask(project({"Api/v1/X/Get.py": own}), "GET", "/v1/x")
    assert answer.fields("link") == ["</a>"]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("/v1/user/a%20b", "/v2/user/a%20b"),
        ("/v1/user/a%2Fb", "/v2/user/a%2Fb"),
        ("/v1//user/7", "/v2//user/7"),
        ("//v1/user/7", "/v2/user/7"),
        ("/%761/user/7", "/v2/user/7"),
        ('/v1/user/a>;rel="x",<b', "/v2/user/a%3E%3Brel%3D%22x%22%2C%3Cb"),
    ],
)
def test_the_link_to_the_successor_is_that_of_the_request(
    project: Project, ask: Ask, sent: str, shown: str
) -> None:
    app = project({**FILES, "Api/v1/User/[id]/Get.py": "def handler(id):\n    return id\n"})
    answer = ask(app, "GET", sent)
    assert answer.status == 200
    assert answer.fields("link") == [LINKS, successor(shown)]


def test_the_link_is_below_the_prefix_of_the_application(project: Project, ask: Ask) -> None:
    app = project(FILES, default_version="v1")
    more = {"root_path": "/api"}
    for path in ("/api/v1/user/7", "/api/user/7"):
        answer = ask(app, "GET", path, more=more)
        assert answer.status == 200
        assert answer.fields("link") == [LINKS, successor("/api/v2/user/7")]
    assert ask(app, "GET", "/user").fields("link") == [LINKS, successor("/v2/user")]


def test_handshakes_carry_the_fields(project: Project, talk: Talk) -> None:
    chat = "async def handler(websocket):\n    await websocket.accept(headers={'Link': '</a>'})\n"
    refused = "from treefold_http import Forbidden\n" + (
        "async def handler(websocket):\n    raise Forbidden('no')\n"
    )
    app = project(
        {
            "Api/v1/version.toml": VERSION,
            "Api/v1/Chat/[room]/Socket.py": chat,
            "Api/v1/Shut/Socket.py": refused,
            "Api/v2/Chat/[name]/Socket.py": chat,
        }
    )
    accepted = dict(talk(app, "/v1/chat/7").sent[0])
    fields = [(name.decode(), value.decode()) for name, value in accepted["headers"]]
    assert [pair for pair in fields if pair[0] in FIELDS] == [
        ("link", "</a>"),
        ("deprecation", DATE),
        ("sunset", SUNSET),
        ("link", LINKS),
        ("link", successor("/v2/chat/7")),
    ]
    answer = talk(app, "/v1/shut").refusal
    assert (answer.status, see(answer)) == (403, OF_VERSION)
    newest = dict(talk(app, "/v2/chat/7").sent[0])
    assert [name for name, _ in newest["headers"]] == [b"link", b"x-request-id"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deprecated = '2026-11-01'", SINCE),
        (
            "from datetime import date\ndeprecated = date(2026, 11, 1)",
            SINCE,
        ),
        ("deprecated = True", NONE),
        ("deprecated = False", NONE),
        (
            "from treefold_http import Deprecation\n"
            "deprecated = Deprecation('2026-11-01', '2027-06-30', link='/why', successor='v2')",
            (
                *DATES,
                [
                    '</why>; rel="deprecation"; type="text/html",'
                    ' </why>; rel="sunset"; type="text/html"',
                    successor("/v2/x"),
                ],
            ),
        ),
        (
            "from treefold_http import Deprecation\n"
            "deprecated = Deprecation(sunset='2027-06-30', successor='/v2/y')",
            (NONE[0], [SUNSET], [successor("/v2/y")]),
        ),
        (
            "from treefold_http import Deprecation\n"
            "deprecated = Deprecation('2026-11-01', successor='v7')",
            SINCE,
        ),
    ],
)
def test_a_route_is_deprecated_by_its_module(
    project: Project, ask: Ask, text: str, expected: Seen
) -> None:
    app = project({"Api/v1/X/Get.py": f"{text}\n{GET}", "Api/v2/X/Get.py": GET})
    assert see(ask(app, "GET", "/v1/x")) == expected
    # the version is not deprecated
    assert see(ask(app, "PUT", "/v1/x")) == NONE


def test_a_module_says_what_its_version_does_not(project: Project, ask: Ask) -> None:
    app = project({**FILES, "Api/v1/User/Get.py": f"deprecated = '2026-12-01'\n{GET}"})
    answer = ask(app, "GET", "/v1/user")
    assert see(answer) == (["@1796083200"], [SUNSET], [LINKS, successor("/v2/user")])


def test_an_overlay_inherits_the_deprecation_of_files_only(project: Project, ask: Ask) -> None:
    app = project(
        {
            **{file: text for file, text in FILES.items() if "/v2/" not in file},
            "Api/v1/User/[id]/Delete.py": f"deprecated = '2026-12-01'\n{GET}",
            "Api/v2/version.toml": 'inherits = "v1"',
        }
    )
    assert see(ask(app, "GET", "/v1/user")) == (*DATES, [LINKS, successor("/v2/user")])
    assert see(ask(app, "GET", "/v2/user")) == NONE
    assert see(ask(app, "GET", "/v2/nothing")) == NONE
    assert see(ask(app, "DELETE", "/v2/user/7")) == (["@1796083200"], [], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("deprecated = 'soon'", "a day such as '2026-11-01' or a Deprecation, got 'soon'"),
        (
            "from treefold_http import Deprecation\n"
            "deprecated = Deprecation('2027-06-30', '2026-11-01')",
            "The sunset of a Deprecation must not be earlier than since, got 2026-11-01 before"
            " 2027-06-30",
        ),
    ],
)
def test_a_wrong_deprecation_breaks_the_file(project: Project, text: str, message: str) -> None:
    app = project({"Api/v1/X/Get.py": f"{text}\n{GET}"})
    app.boot()
    assert len(app.report.broken) == 1
    assert message in app.report.broken[0].error


def test_a_sunset_before_the_deprecation_stops_the_boot(project: Project) -> None:
    app = project({**FILES, "Api/v1/version.toml": "deprecated=2027-06-30\nsunset=2026-11-01"})
    with pytest.raises(BootError) as caught:
        app.boot()
    assert str(caught.value) == (
        "'sunset' in Api/v1/version.toml must not be earlier than 'deprecated', got 2026-11-01"
        " before 2027-06-30"
    )


def test_a_deprecation_after_the_sunset_of_its_version_stops_the_boot(project: Project) -> None:
    app = project({**FILES, "Api/v1/User/Get.py": f"deprecated = '2028-01-01'\n{GET}"})
    with pytest.raises(BootError) as caught:
        app.boot()
    assert str(caught.value) == (
        "`deprecated` in Api/v1/User/Get.py does not fit Api/v1/version.toml: The sunset of a"
        " Deprecation must not be earlier than since, got 2027-06-30 before 2028-01-01"
    )


def test_providers_given_later_keep_the_fields(project: Project, ask: Ask) -> None:
    app = project(FILES)
    app.boot()
    app.provide("shelf", dict)
    assert see(ask(app, "GET", "/v1/user")) == (*DATES, [LINKS, successor("/v2/user")])


def test_a_save_changes_the_fields(live: Callable[[Mapping[str, str]], Live]) -> None:
    served = live({"Api/v1/X/Get.py": GET, "Api/v2/Y/Get.py": GET})
    assert see(served.answer("/v1/x")) == NONE
    served.edit({"Api/v1/version.toml": VERSION})
    assert see(served.answer("/v1/x")) == see(served.answer("/v1/no")) == OF_VERSION
    served.edit({"Api/v2/X/Get.py": GET})
    assert served.answer("/v1/x").fields("link") == [LINKS, successor("/v2/x")]
    served.edit({"Api/v1/X/Get.py": f"deprecated = '2026-12-01'\n{GET}"})
    assert served.answer("/v1/x").fields("deprecation") == ["@1796083200"]
    served.edit({"Api/v1/version.toml": None})
    assert see(served.answer("/v1/x")) == (["@1796083200"], [], [])
    assert see(served.answer("/v1/no")) == NONE


def test_a_passed_sunset_is_served_and_warned_of(project: Project, ask: Ask, lines: Lines) -> None:
    app = project({**FILES, "Api/v1/version.toml": "sunset = 2020-01-31"})
    assert ask(app, "GET", "/v1/user").status == 200
    assert "v1 is served after its sunset 2020-01-31" in lines.texts()
