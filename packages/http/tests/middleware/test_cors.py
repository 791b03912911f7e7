"""CORS: whole origins, credentials, preflights from the route table, errors (S-57 to S-61)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError
from treefold_http.middleware import CORS

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

APP = "https://app.example"
OK = "async def handler(request):\n    return 'ok'\n"
TREE = {
    "Api/v1/Page/Get.py": OK,
    "Api/v1/Page/Put.py": OK,
    "Api/v1/Page/Ws.py": "async def handler(websocket):\n    await websocket.accept()\n",
    "Api/v1/Crash/Get.py": "async def handler(request):\n    raise LookupError('no')\n",
    "Api/v1/Body/Post.py": "max_body = 2\n"
    "async def handler(request):\n    return len(await request.body())\n",
    "Api/v1/Own/Get.py": "async def handler(request):\n"
    "    own = {'Access-Control-Allow-Origin': 'https://own.example', 'Vary': 'Accept'}\n"
    "    return 'ok', 200, own\n",
    "Api/v1/Options/Options.py": OK,
    "Api/v1/Options/Delete.py": OK,
}


def application(project: Project, options: str, **more: Any) -> Application:
    files = {
        **TREE,
        "Middleware/__init__.py": "from treefold_http.middleware import CORS, under\n"
        f"middlewares = [CORS({options})]\n",
    }
    return project(files, **more)


def preflight(
    ask: Ask, app: Application, target: str, method: str, *more: tuple[str, str], origin: str = APP
) -> Answer:
    headers = [("origin", origin), ("access-control-request-method", method), *more]
    return ask(app, "OPTIONS", target, headers=headers)


def cors_fields(answer: Answer) -> dict[str, str]:
    return {n: v for n, v in answer.headers if n.startswith("access-control-")}


EXAMPLES = [
    "https://a.example",
    "https://*.b.example",
    "http://localhost:3000",
    "https://c.example:443",
]


@pytest.mark.parametrize(
    "origin",
    [
        "https://a.example",
        "https://x.b.example",
        "https://x.y.b.example",
        "http://localhost:3000",
        "https://c.example",
    ],
)
def test_s59_a_listed_origin_is_allowed(origin: str) -> None:
    assert CORS(EXAMPLES).allows(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "*",
        "null",
        "https://aXexample",
        "https://a.example.evil",
        "https://a.example:8443",
        "https://a.example/",
        "https://a.example@evil",
        "https://A.example",
        "http://a.example",
        "https://evilb.example",
        "https://b.example",
        "https://.b.example",
        "https://evil/.b.example",
        "https://evil#.b.example",
        "https://evil:1.b.example",
        "https://u@x.b.example",
        "https://x.b.example:8443",
        "https://x.b.example.evil",
        "https://x.b.example\n",
        "http://x.b.example",
        "http://localhost",
        "http://localhost:30000",
        "https://c.example:443",
    ],
)
def test_s59_no_other_origin_is(origin: str) -> None:
    assert not CORS(EXAMPLES).allows(origin)


def test_s59_a_pattern_matches_whole_origins_only() -> None:
    cors = CORS(allow_origin_pattern=r"https://pr-[0-9]+\.app\.example")

    assert cors.allows("https://pr-17.app.example")
    assert not cors.allows("https://pr-17.app.example.evil")
    assert not cors.allows("evil-https://pr-17.app.example")


@pytest.mark.parametrize(
    "origin",
    [
        "app.example",
        "https://",
        "https://a b",
        "https://a.example/x",
        "https://a*.example",
        "*.example",
        "https://*.*.example",
        "https://u@a.example",
        "https://a:99999",
        "://a",
    ],
)
def test_a_text_that_is_no_origin_is_refused(origin: str) -> None:
    expected = "An origin must be scheme and host, such as 'https://app.example.com', got "
    with pytest.raises(ValueError, match=f"^{re.escape(expected + repr(origin))}$"):
        CORS([origin])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allow_origins": ["*"]}, r"CORS\(allow_origins=\['\*'\]\) cannot be combined"),
        ({"allow_origins": ["null"]}, r"CORS\(allow_origins=\['null'\]\) cannot be combined"),
        ({"allow_origins": [APP], "allow_headers": ["*"]}, r"allow_headers=\['\*'\]"),
        ({"allow_origins": [APP], "expose_headers": ["*"]}, r"expose_headers=\['\*'\]"),
    ],
)
def test_s58_a_wildcard_with_credentials_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CORS(**options, allow_credentials=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "must allow an origin; pass allow_origins="),
        ({"allow_origins": APP}, f"CORS allow_origins must be a list, got the text '{APP}'"),
        (
            {"allow_origins": [APP], "allow_headers": ["a b"]},
            "CORS allow_headers must be a list of names, got the entry 'a b'",
        ),
        (
            {"allow_origins": [APP], "allow_methods": ["GET\n"]},
            r"CORS allow_methods must be a list of names, got the entry 'GET\\n'",
        ),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CORS(**options)


def test_s58_the_boot_fails_with_the_reason(project: Project) -> None:
    app = application(project, "['*'], allow_credentials=True")

    with pytest.raises(BootError, match=re.escape("CORS(allow_origins=['*']) cannot be combined")):
        app.boot()


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        ("GET", "/v1/page", 200, b""),
        ("GET", "/v1/none", 404, b""),
        ("GET", "/none", 404, b""),
        ("DELETE", "/v1/page", 405, b""),
        ("POST", "/v1/body", 413, b"long"),
        ("GET", "/v1/%ff", 400, b""),
        ("GET", "/v1/crash", 500, b""),
        ("GET", "/" + "x" * 9000, 414, b""),
    ],
)
def test_s57_s60_every_answer_carries_the_fields(
    project: Project, ask: Ask, method: str, target: str, status: int, body: bytes
) -> None:
    app = application(project, f"['{APP}'], allow_credentials=True, expose_headers=['X-Total']")
    chunks = [body] if body else []

    answer = ask(app, method, target, headers=[("origin", APP)], chunks=chunks)
    assert answer.status == status
    assert cors_fields(answer) == {
        "access-control-allow-origin": APP,
        "access-control-allow-credentials": "true",
        "access-control-expose-headers": "X-Total",
    }
    assert answer.fields("vary") == ["Origin"]

    for origin in ["https://evil.example", "null", None]:
        headers = [("origin", origin)] if origin else []
        refused = ask(app, method, target, headers=headers, chunks=chunks)
        assert (refused.status, cors_fields(refused)) == (status, {})
        assert refused.fields("vary") == ["Origin"]


def test_every_origin_gets_a_star_and_no_vary(project: Project, ask: Ask) -> None:
    app = application(project, "['*']")

    for headers in [[], [("origin", "https://any.example")], [("origin", "null")]]:
        answer = ask(app, "GET", "/v1/page", headers=headers)
        assert answer.fields("access-control-allow-origin") == ["*"] * len(headers)
        assert answer.fields("vary") == []


def test_s59_null_counts_where_it_is_listed(project: Project, ask: Ask) -> None:
    app = application(project, "['null']")

    answer = ask(app, "GET", "/v1/page", headers=[("origin", "null")])
    assert answer.fields("access-control-allow-origin") == ["null"]


def test_s60_repeated_origin_fields_are_no_origin(project: Project, ask: Ask) -> None:
    app = application(project, f"['{APP}']")
    ask(app, "GET", "/v1/page", headers=[("origin", APP)])  # known from here on

    for pair in [("https://evil.example", APP), (APP, APP)]:
        answer = ask(app, "GET", "/v1/page", headers=[("origin", one) for one in pair])
        assert cors_fields(answer) == {}


def test_a_field_of_the_handler_wins_and_vary_adds_up(project: Project, ask: Ask) -> None:
    answer = ask(application(project, f"['{APP}']"), "GET", "/v1/own", headers=[("origin", APP)])

    assert answer.fields("access-control-allow-origin") == ["https://own.example"]
    assert sorted(answer.fields("vary")) == ["Accept", "Origin"]


def test_many_origins_below_a_name_are_not_all_remembered(project: Project, ask: Ask) -> None:
    app = application(project, "['https://*.b.example']")
    cors: CORS = app.project.boot_files.middlewares[0]

    for number in range(1100):
        origin = f"https://h{number}.b.example"
        request_headers = [("origin", origin)]
        answer = ask(app, "GET", "/v1/page", headers=request_headers)
        assert answer.fields("access-control-allow-origin") == [origin]
    assert len(vars(cors)["_known"]) == 1024


def test_s61_a_preflight_is_answered_from_the_route_table(project: Project, ask: Ask) -> None:
    app = application(project, f"['{APP}'], allow_credentials=True, allow_headers=['X-A', 'X-B']")
    names = ("access-control-request-headers", "x-a, X-EVIL,x-b ,a b")

    answer = preflight(ask, app, "/v1/page", "PUT", names)
    assert (answer.status, answer.body) == (204, b"")
    assert cors_fields(answer) == {
        "access-control-allow-origin": APP,
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "GET, PUT",
        "access-control-allow-headers": "x-a, x-b",
        "access-control-max-age": "600",
    }
    assert answer.fields("vary") == [
        "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
    ]


def test_s61_a_method_that_the_path_does_not_have_is_not_allowed(
    project: Project, ask: Ask
) -> None:
    answer = preflight(ask, application(project, f"['{APP}']"), "/v1/crash", "DELETE")

    assert (answer.status, answer.fields("access-control-allow-methods")) == (204, ["GET"])


def test_s61_an_unknown_path_is_404_without_the_fields(project: Project, ask: Ask) -> None:
    app = application(project, f"['{APP}']")

    for target in ["/v1/none", "/none", "/v2/page"]:
        answer = preflight(ask, app, target, "GET")
        assert (answer.status, cors_fields(answer)) == (404, {})


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_s61_a_foreign_preflight_is_405(project: Project, ask: Ask, origin: str) -> None:
    answer = preflight(ask, application(project, f"['{APP}']"), "/v1/page", "GET", origin=origin)

    assert (answer.status, cors_fields(answer)) == (405, {})
    assert answer.fields("vary") == ["Origin"]


def test_s61_options_that_is_no_preflight_is_405_with_the_fields(
    project: Project, ask: Ask
) -> None:
    answer = ask(
        application(project, f"['{APP}']"), "OPTIONS", "/v1/page", headers=[("origin", APP)]
    )

    assert (answer.status, answer.fields("allow")) == (405, ["GET, PUT, WEBSOCKET"])
    assert answer.fields("access-control-allow-origin") == [APP]


def test_a_preflight_goes_before_a_file_for_options(project: Project, ask: Ask) -> None:
    app = application(project, f"['{APP}']")

    answer = preflight(ask, app, "/v1/options", "DELETE")
    assert answer.status == 204
    assert answer.fields("access-control-allow-methods") == ["DELETE, OPTIONS"]
    assert ask(app, "OPTIONS", "/v1/options", headers=[("origin", APP)]).body == b"ok"


def test_s61_listed_methods_narrow_what_the_path_has(project: Project, ask: Ask) -> None:
    app = application(project, f"['{APP}'], allow_methods=['GET', 'DELETE']")

    answer = preflight(ask, app, "/v1/page", "PUT")
    assert answer.fields("access-control-allow-methods") == ["GET"]


@pytest.mark.parametrize(("allowed", "sent"), [("True", ["true"]), ("False", [])])
def test_s61_a_private_network_is_opened_where_it_is_asked_for_only(
    project: Project, ask: Ask, allowed: str, sent: list[str]
) -> None:
    app = application(project, f"['{APP}'], allow_private_network={allowed}, max_age=5")
    private = ("access-control-request-private-network", "true")

    answer = preflight(ask, app, "/v1/page", "GET", private)
    assert answer.fields("access-control-allow-private-network") == sent
    assert answer.fields("access-control-max-age") == ["5"]
    assert (
        preflight(ask, app, "/v1/page", "GET").fields("access-control-allow-private-network") == []
    )


def test_any_header_name_is_allowed_and_no_other_text(project: Project, ask: Ask) -> None:
    app = application(project, "['*'], allow_headers=['*']")
    names = ("access-control-request-headers", "x-one, y\x00, ,x-two, *")

    answer = preflight(ask, app, "/v1/page", "GET", names)
    assert answer.fields("access-control-allow-headers") == ["x-one, x-two, *"]


SCOPED = {
    **TREE,
    "Middleware/__init__.py": "from treefold_http.middleware import CORS, under\n"
    f"middlewares = [under('/v1/page', CORS(['{APP}']))]\n",
}


def test_a_subtree_answers_its_preflights_and_no_other(project: Project, ask: Ask) -> None:
    app = project(SCOPED)

    answer = preflight(ask, app, "/v1/page", "PUT")
    assert (answer.status, answer.fields("access-control-allow-methods")) == (204, ["GET, PUT"])
    assert ask(app, "DELETE", "/v1/page", headers=[("origin", APP)]).fields(
        "access-control-allow-origin"
    ) == [APP]
    other = preflight(ask, app, "/v1/crash", "GET")
    assert (other.status, cors_fields(other)) == (405, {})


def test_a_handler_module_answers_preflights_for_its_method_alone(
    project: Project, ask: Ask
) -> None:
    app = project(
        {
            "Api/v1/Page/Get.py": "from treefold_http import Forbidden\n"
            "from treefold_http.middleware import CORS\n"
            "async def guard(request, call_next):\n    raise Forbidden('no')\n"
            f"middlewares = [guard, CORS(['{APP}'])]\n{OK}",
            "Api/v1/Page/Delete.py": OK,
        }
    )

    answer = preflight(ask, app, "/v1/page", "GET")
    assert (answer.status, answer.fields("access-control-allow-methods")) == (204, ["GET"])
    assert preflight(ask, app, "/v1/page", "DELETE").status == 405


def test_a_preflight_finds_the_default_version(project: Project, ask: Ask) -> None:
    app = project(SCOPED, default_version="latest")

    assert preflight(ask, app, "/page", "PUT").status == 204


@pytest.mark.parametrize("origins", ["['*']", f"['{APP}']"])
def test_s70_cors_opens_no_socket_to_a_foreign_origin(
    project: Project, talk: Talk, origins: str
) -> None:
    app = application(project, origins)

    assert talk(app, "/v1/page", headers=[("origin", APP)]).refusal.status == 403
    own = [("origin", "http://example.localhost")]
    assert talk(app, "/v1/page", headers=own).kinds[0] == "accept"


@pytest.mark.parametrize(
    "pattern",
    [
        ".*",
        ".+",
        "https?://.*",
        "https://.+",
        r"https://[a-z.]+",
        r"https://.*\.com",
        r".*://attacker\.dev",
        r"(https://app\.example\.com|.*)",
        "null|https://app.mysite.com",
        r"https?://[^/]+\.co\.uk",
    ],
)
def test_s58_a_pattern_of_any_origin_refuses_credentials(pattern: str) -> None:
    with pytest.raises(ValueError, match="cannot be combined with allow_credentials=True"):
        CORS(allow_origin_pattern=pattern, allow_credentials=True)
    CORS(allow_origin_pattern=pattern)  # as `*`: without cookies


@pytest.mark.parametrize(
    "pattern",
    [r"https://[a-z0-9-]+\.mysite\.com", r"https://pr-\d+\.vercel\.app", r"http://localhost:\d+"],
)
def test_s58_a_pattern_with_the_name_of_a_site_has_credentials(pattern: str) -> None:
    assert CORS(allow_origin_pattern=pattern, allow_credentials=True).has_credentials


@pytest.mark.parametrize(
    "origin",
    ["https://*.com", "http://*.io", "https://*.com:8443", "https://*.co.uk", "https://*.COM"],
)
@pytest.mark.parametrize("credentials", [False, True])
def test_s59_every_name_below_a_public_suffix_is_refused(origin: str, credentials: bool) -> None:
    with pytest.raises(ValueError, match="cannot be every name below a public suffix, got"):
        CORS([origin], allow_credentials=credentials)


@pytest.mark.parametrize("origin", ["http://*.localhost:3000", "https://*.example.co.uk"])
def test_s59_names_below_a_site_are_not(origin: str) -> None:
    assert CORS([origin]).origins == (origin,)
