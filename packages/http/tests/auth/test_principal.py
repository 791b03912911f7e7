"""The caller of a request: one record from every credential, and what it may do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings
from treefold_http.auth import Principal, allow, api_key, one_of
from treefold_http.openapi import openapi_document

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

SETTINGS = Settings(secret_key="0123456789abcdef" * 2)
KEYS = {"ann": "k" * 16, "7": "7" * 16}
USERS = """
    from dataclasses import dataclass
    from treefold_http import *
    from treefold_http.auth import *

    @dataclass
    class User:
        id: int
        roles: list[str]
        scopes: list[str]

    USERS = {1: User(1, ["editor"], ["book:read"]), 7: User(7, [], [])}
    rights = {"ann": ["book:read", "book:write"]}
    calls = []

    def load(id):
        calls.append(id)
        return USERS.get(id)

    def find_token(token):
        return {"one": USERS[1], "seven": USERS[7]}.get(token)

    async def user_principal(user):
        return Principal(user.id, roles=user.roles, scopes=user.scopes)

    def client_principal(client):
        return Principal(client, scopes=rights.get(client, ()))

    signed_in = current_user(load, identify=user_principal)
    visitor = current_user(load, optional=True, identify=user_principal)
    partner = api_key({"ann": "k" * 16, "7": "7" * 16}, identify=client_principal)
    maybe_partner = api_key({"ann": "k" * 16, "7": "7" * 16}, optional=True)
    token = bearer(find_token, identify=user_principal)
    anyone = one_of(signed_in, partner, token)
    """
LOGIN = {
    "Middleware/__init__.py": """
        from treefold_http.middleware import Sessions
        middlewares = [Sessions()]
        """,
    "Services/users.py": USERS,
    "Api/v1/Login/[id]/Post.py": """
        from treefold_http.auth import login

        async def handler(request, id: int):
            login(request, id)
        """,
}


def make_project(project: Project, routes: Mapping[str, str], **options: Any) -> Application:
    head = dedent("""
        import asyncio
        from treefold_http import *
        from treefold_http.auth import *
        from treefold_http.cache import cached
        from Services.users import *
        """)
    texts = {name: dedent(text) for name, text in LOGIN.items()}
    texts |= {f"Api/v1/{name}.py": head + dedent(text) for name, text in routes.items()}
    for name, text in options.pop("files", {}).items():
        texts[name] = dedent(text)
    return project(texts, settings=SETTINGS, **options)


def log_in(ask: Ask, app: Application, id: int) -> str:
    answer = ask(app, "POST", f"/v1/login/{id}")
    return answer.fields("set-cookie")[0].partition(";")[0]


def key(name: str) -> list[tuple[str, str]]:
    return [("x-api-key", KEYS[name])]


def bear(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


def test_a_principal_holds_what_it_is_given() -> None:
    made = Principal(7, "session", scopes=["b", "a", "b"], roles=("editor",))
    assert (made.scopes, made.roles) == ({"a", "b"}, {"editor"})
    assert made == Principal(7, "session", scopes={"a", "b"}, roles={"editor"})
    keys = [Principal(*each).key for each in [(7, "s"), ("7", "s"), (7, "t"), ("7'", "s")]]
    assert len(set(keys)) == 4
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"id": None}, "^The id of a Principal must be text or a number, got None$"),
        ({"id": True}, "got True$"),
        ({"id": 1, "scopes": "a b"}, "^The scopes of a Principal must be a list of texts, got 'a"),
        ({"id": 1, "roles": "admin"}, "^The roles of a Principal must be a list of .* 'admin'$"),
    ]
    for options, message in wrong:
        with pytest.raises(TypeError, match=message):
            Principal(**options)


def test_every_credential_gives_one_record(project: Project, ask: Ask) -> None:
    show = """
        async def handler(request, who=Depends({})):
            p = request.principal
            return None if p is None else [p.id, p.source, sorted(p.scopes), sorted(p.roles)]
        """
    app = make_project(
        project,
        {
            **{
                f"{name.capitalize()}/Get": show.format(name)
                for name in ("signed_in", "visitor", "partner", "maybe_partner", "token", "anyone")
            },
            "Plain/Get": "async def handler(request): return request.principal",
            "Hash/Get": show.format("bearer(lambda token: object())"),
            "Text/Get": show.format("bearer(lambda token: 'of ' + token, name='texts')"),
            "Own/Get": show.format("bearer(lambda token: Principal(3, 'own', roles=['x']))"),
            "Named/Get": """
                def check(request):
                    identify(request, Principal(4, "mine"))

                async def handler(request, who=Depends(check)):
                    return [request.principal.id, request.principal.source]
                """,
        },
    )
    cookie = [("cookie", log_in(ask, app, 1))]
    user = [1, "session", ["book:read"], ["editor"]]
    client = ["ann", "apiKey", ["book:read", "book:write"], []]
    bearer = [1, "bearer", ["book:read"], ["editor"]]
    expected: list[tuple[str, list[tuple[str, str]], Any]] = [
        ("signed_in", cookie, user),
        ("visitor", cookie, user),
        ("visitor", [], None),
        ("partner", key("ann"), client),
        ("maybe_partner", [], None),
        ("maybe_partner", key("7"), ["7", "apiKey", [], []]),
        ("token", bear("one"), bearer),
        ("anyone", bear("one"), bearer),
        ("anyone", key("ann"), client),
        ("anyone", cookie, user),
        ("plain", cookie, None),
        ("text", bear("a"), ["of a", "texts", [], []]),
        ("own", bear("a"), [3, "own", [], ["x"]]),
        ("named", [], [4, "mine"]),
    ]
    for path, headers, principal in expected:
        answer = ask(app, "GET", f"/v1/{path}", headers=headers)
        found = answer.json() if answer.body else None
        assert (path, answer.status // 100, found) == (path, 2, principal)
    hashes = [ask(app, "GET", "/v1/hash", headers=bear(each)).json()[0] for each in ("a", "b", "a")]
    assert hashes[0] == hashes[2] != hashes[1]
    assert len(hashes[0]) == 32


def test_what_identify_returns_is_a_principal(project: Project, ask: Ask, lines: Any) -> None:
    app = make_project(
        project,
        {
            "Get": """
                wrong = bearer(find_token, identify=lambda user: user.id)

                async def handler(who=Depends(wrong)): ...
                """,
            "Own/Get": """
                def check(request):
                    identify(request, Principal(4))

                async def handler(who=Depends(check)): ...
                """,
        },
    )
    assert ask(app, "GET", "/v1", headers=bear("one")).status == 500
    assert "identify of 'bearer' must return a Principal, got 1" in str(lines.errors())
    assert ask(app, "GET", "/v1/own").status == 500
    assert "identify needs a Principal with a source" in str(lines.errors())


ALLOWED = {
    "Write/Post": """
        async def handler(user: User = Depends(allow("book:write", by=signed_in))):
            return [user.id]
        """,
    "Read/Get": """
        async def handler(who=Depends(allow("book:read", by=anyone))):
            return [who if isinstance(who, str) else who.id]
        """,
    "Both/Get": """
        async def handler(who=Depends(allow("book:read", "book:write", by=anyone))): ...
        """,
    "Role/Get": """
        async def handler(who=Depends(allow(roles=["admin", "editor"], by=token))):
            return [who.id]
        """,
    "Inside/Get": """
        async def handler(
            client: str = Depends(partner), who: Principal = Depends(allow("book:write"))
        ):
            return [client, who.id]
        """,
    "Visit/Get": """
        async def handler(who=Depends(allow("book:read", by=visitor))):
            return [who.id]
        """,
    "Maybe/Get": """
        async def handler(client=Depends(maybe_partner), who=Depends(allow("book:write"))): ...
        """,
    "Alone/Get": """
        async def handler(who=Depends(allow("book:write"))): ...
        """,
    "Ws": """
        async def handler(websocket, who=Depends(allow("book:write", by=anyone))):
            await websocket.accept()
            await websocket.send_text(who)
        """,
}


def test_allow_names_what_a_caller_lacks(
    project: Project, ask: Ask, talk: Callable[..., Any], lines: Any
) -> None:
    app = make_project(project, ALLOWED)
    site = [("sec-fetch-site", "same-origin")]
    cookie = [("cookie", log_in(ask, app, 1)), *site]
    lacking = "This needs the scope 'book:write'"
    expected: list[tuple[str, str, list[tuple[str, str]], int, Any]] = [
        ("POST", "write", [], 401, "Log in first"),
        ("POST", "write", cookie, 403, lacking),
        ("GET", "read", cookie, 200, [1]),
        ("GET", "read", key("ann"), 200, ["ann"]),
        ("GET", "read", key("7"), 403, "This needs the scope 'book:read'"),
        ("GET", "both", key("7"), 403, "This needs the scopes 'book:read', 'book:write'"),
        ("GET", "both", bear("one"), 403, lacking),
        ("GET", "both", bear("wrong"), 401, "This token is not valid"),
        ("GET", "role", bear("one"), 200, [1]),
        ("GET", "role", bear("seven"), 403, "This needs the role 'admin' or 'editor'"),
        ("GET", "role", [], 401, "Send Authorization: Bearer TOKEN"),
        ("GET", "inside", key("ann"), 200, ["ann", "ann"]),
        ("GET", "inside", key("7"), 403, lacking),
        ("GET", "maybe", [], 401, "Log in first"),
        ("GET", "maybe", key("ann"), 403, lacking),
        ("GET", "visit", [], 401, "Log in first"),
        ("GET", "visit", cookie, 200, [1]),
        ("GET", "alone", key("ann"), 500, "The server failed to answer this request"),
    ]
    for method, path, headers, status, said in expected:
        answer = ask(app, method, f"/v1/{path}", headers=headers)
        found: Any = answer.json()
        found = found["detail"] if status >= 400 else found
        assert (path, answer.status, found) == (path, status, said)
    assert "allow() found no credential before it; name one with by=" in str(lines.errors())
    assert talk(app, "/v1", headers=key("ann")).texts == ["ann"]
    assert talk(app, "/v1", headers=key("7")).refusal.status == 403
    assert ask(app, "POST", "/v1/login/7").status == 204
    # a right that is taken away counts from the next request on
    app_rights = __import__("sys").modules["Services.users"].rights
    app_rights["ann"].remove("book:write")
    assert ask(app, "GET", "/v1/inside", headers=key("ann")).status == 403


def test_allow_refuses_what_would_check_nothing() -> None:
    key = api_key(KEYS, name="a")
    cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: allow(by=key), ValueError, "^allow must name a scope or a role, got neither$"),
        (lambda: allow("a b", by=key), ValueError, "^A scope must be one word, got 'a b'$"),
        (lambda: allow("", by=key), ValueError, "^A scope must"),
        (lambda: allow(roles="admin", by=key), TypeError, "^allow roles must be a list .* 'admin'"),
    ]
    for make, kind, message in cases:
        with pytest.raises(kind, match=message):
            make()


SCOPED = {
    "Handler/Get": """
        @secured("bearer", scopes=["book:write"])
        async def handler(request, who=Depends(bearer(find_token, identify=lambda u: Principal(
            u.id, scopes=["book:write"] if u.id == 7 else [])))): ...
        """,
    "Own/Get": """
        @secured({"type": "apiKey", "in": "header", "name": "X-Who"}, name="who", scopes=["write"])
        def check(request):
            name = request.headers.get("x-who")
            if name is None:
                raise Unauthorized("Say who")
            if name != "nobody":
                identify(request, Principal(name, "who", scopes=name.split("-")))

        async def handler(who=Depends(check)): ...
        """,
    "Plain/Get": """
        @secured("bearer", scopes=["write"])
        async def handler(request): ...
        """,
    "Optional/Get": """
        @secured("bearer", scopes=["write"], optional=True)
        async def handler(request): ...
        """,
    "Visitor/Get": """
        @secured({"type": "apiKey", "in": "cookie", "name": "c"}, name="session", scopes=["write"])
        async def handler(who=Depends(visitor)): ...
        """,
    "Gate/Get": "async def handler(request): return [request.principal.id]",
    "Gate/Kept/Get": """
        made = []

        @cached(60)
        async def handler():
            made.append(1)
            return [len(made)]
        """,
    "Gate/Ws": """
        async def handler(websocket):
            await websocket.accept()
        """,
}
GATE = {
    "Middleware/__init__.py": """
        from treefold_http import *
        from treefold_http.auth import Principal, identify
        from treefold_http.middleware import Sessions

        @secured("basic", name="gate", scopes=["write"])
        class Gate:
            def before(self, request):
                name = request.headers.get("x-who", "")
                identify(request, Principal(name, "gate", scopes=name.split("-")))

        middlewares = [Sessions(), under("/v1/gate", Gate())]
        """
}


def test_secured_checks_the_scopes_that_it_documents(
    project: Project, ask: Ask, talk: Callable[..., Any], lines: Any
) -> None:
    app = make_project(project, SCOPED, files=GATE)

    def who(name: str) -> list[tuple[str, str]]:
        return [("x-who", name)]

    cookie = [("cookie", log_in(ask, app, 1))]
    expected: list[tuple[str, list[tuple[str, str]], int]] = [
        ("handler", bear("seven"), 204),
        ("handler", bear("one"), 403),
        ("handler", [], 401),
        ("own", who("write-x"), 204),
        ("own", who("read"), 403),
        ("own", [], 401),
        ("own", who("nobody"), 500),
        ("plain", bear("one"), 500),
        ("optional", [], 204),
        ("visitor", [], 401),
        ("visitor", cookie, 403),
        ("gate", who("write"), 200),
        ("gate", who("read"), 403),
        ("gate/kept", who("write"), 200),
        ("gate/kept", who("read"), 403),
    ]
    for path, headers, status in expected:
        assert (path, ask(app, "GET", f"/v1/{path}", headers=headers).status) == (path, status)
    errors = str(lines.errors())
    assert "found no principal; call identify(request, Principal(..., source='who'))" in errors
    assert talk(app, "/v1/gate", headers=who("write")).kinds[0] == "accept"
    assert talk(app, "/v1/gate", headers=who("read")).refusal.status == 403


def test_the_document_has_scopes_and_refusals(project: Project) -> None:
    made = openapi_document(make_project(project, {**ALLOWED, **SCOPED}, files=GATE))
    shown = {
        path.removeprefix("/v1/"): (
            operation["security"],
            sorted(code for code in operation["responses"] if code in ("400", "401", "403")),
        )
        for path, item in made["paths"].items()
        for operation in item.values()
        if "responses" in operation
    }
    write, every = ["book:write"], ["book:read", "book:write"]
    alternatives = [{"session": every}, {"apiKey": every}, {"bearer": every}]
    assert shown["write"] == ([{"session": write}], ["401", "403"])
    assert shown["both"] == (alternatives, ["400", "401", "403"])
    either = [{"bearer": ["admin"]}, {"bearer": ["editor"]}]
    assert shown["role"] == (either, ["401", "403"])
    assert shown["inside"] == ([{"apiKey": []}], ["401", "403"])
    assert shown["visit"] == ([{"session": ["book:read"]}], ["401", "403"])
    assert shown["handler"] == ([{"bearer": write}], ["401", "403"])
    assert shown["own"] == ([{"who": ["write"]}], ["401", "403"])
    assert shown["gate"] == ([{"gate": ["write"]}], ["401", "403"])
    assert shown["login/{id}"] == ([], ["400"])


def test_a_credential_is_a_middleware_too(
    project: Project, ask: Ask, talk: Callable[..., Any]
) -> None:
    files = {
        "Middleware/__init__.py": """
            from treefold_http import under
            from treefold_http.auth import allow, principal_key
            from treefold_http.middleware import RateLimit, Sessions
            from Services.users import anyone, maybe_partner

            middlewares = [
                Sessions(),
                under("/v1/write", allow("book:write", by=anyone)),
                under("/v1/few", maybe_partner),
                under("/v1/few", RateLimit("2/hour", key=principal_key)),
            ]
            """,
    }
    app = make_project(
        project,
        {
            "Write/Post": "async def handler(request): return [request.principal.id]",
            "Write/Again/Get": """
                async def handler(who=Depends(anyone), other=Depends(allow("book:read"))):
                    return calls
                """,
            "Write/Ws": """
                async def handler(websocket):
                    await websocket.accept()
                """,
            "Few/Get": "async def handler(): ...",
        },
        files=files,
    )
    assert ask(app, "POST", "/v1/write").status == 401
    assert ask(app, "POST", "/v1/write", headers=key("7")).status == 403
    assert ask(app, "POST", "/v1/write", headers=key("ann")).json() == ["ann"]
    # verified once for the request, not once for each that asks
    assert ask(app, "GET", "/v1/write/again", headers=key("ann")).json() == []
    assert talk(app, "/v1/write", headers=key("ann")).kinds[0] == "accept"
    assert talk(app, "/v1/write", headers=key("7")).refusal.status == 403
    # two principals behind one address have a limit each, and no principal has that of the address
    for headers in (key("ann"), key("7"), []):
        statuses = [ask(app, "GET", "/v1/few", headers=headers).status for _ in range(3)]
        assert statuses == [204, 204, 429]
    assert ask(app, "GET", "/v1/few", headers=[("x-api-key", "guessed")]).status == 401


def test_a_session_is_read_once(project: Project, ask: Ask) -> None:
    text = """
        async def handler(a=Depends(signed_in), b=Depends(allow("book:read", by=signed_in)),
                          c=Depends(anyone), d=Depends(allow("book:read"))):
            return [calls, a is b is c, d.id]
        """
    app = make_project(project, {"Get": text})
    cookie = [("cookie", log_in(ask, app, 1))]
    assert ask(app, "GET", "/v1", headers=cookie).json() == [[1, 1], True, 1]


CACHED = {
    "Who/Get": """
        made = []

        @cached(60)
        async def handler(request, who=Depends(one_of(
            current_user(load), api_key({"7": "7" * 16}), bearer(lambda token: 7)
        ))):
            made.append(1)
            return [request.principal.source, repr(request.principal.id), len(made)]
        """,
    "Keyed/Get": """
        made = []

        @cached(60, key=principal_key)
        async def handler(request, who=Depends(one_of(
            current_user(load), api_key({"7": "7" * 16}), bearer(lambda token: 7)
        ))):
            made.append(1)
            return [request.principal.source, repr(request.principal.id), len(made)]
        """,
    "Rights/Get": """
        made = []

        @cached(60)
        async def handler(client: str = Depends(partner)):
            made.append(1)
            return [len(made)]
        """,
    "Inside/Get": """
        def check(request):
            identify(request, Principal(request.query.get("who", "nobody"), "own"))

        class Inner:
            def before(self, request):
                check(request)

        middlewares = [cached(60), Inner()]

        async def handler(request):
            return [request.principal.id]
        """,
}


@pytest.mark.parametrize("path", ["who", "keyed"])
def test_a_cache_keeps_the_answers_of_principals_apart(
    project: Project, ask: Ask, path: str
) -> None:
    app = make_project(project, CACHED)
    cookie = [("cookie", log_in(ask, app, 7))]
    senders = {"session": cookie, "apiKey": key("7"), "bearer": bear("t")}
    ids = {"session": "7", "apiKey": "'7'", "bearer": "7"}
    first = {n: ask(app, "GET", f"/v1/{path}", headers=h).json() for n, h in senders.items()}
    assert first == {name: [name, ids[name], n] for n, name in enumerate(senders, 1)}
    again = {n: ask(app, "GET", f"/v1/{path}", headers=h).json() for n, h in senders.items()}
    assert again == first
    assert ask(app, "GET", f"/v1/{path}").status == 401
    two = [*key("7"), *bear("t")]
    assert ask(app, "GET", f"/v1/{path}", headers=two).status == 400


def test_a_cache_forgets_an_answer_whose_caller_has_other_rights(
    project: Project, ask: Ask
) -> None:
    app = make_project(project, CACHED)
    first, second = (ask(app, "GET", "/v1/rights", headers=key("7")).json() for _ in range(2))
    __import__("sys").modules["Services.users"].rights["7"] = ["admin"]
    third = ask(app, "GET", "/v1/rights", headers=key("7")).json()
    assert (first, second, third) == ([1], [1], [2])
    for who in ("a", "b", "a"):
        assert ask(app, "GET", f"/v1/inside?who={who}").json() == [who]


def test_requests_at_one_time_have_their_own_principals(
    project: Project, exchange: type[Exchange]
) -> None:
    app = make_project(
        project,
        {
            "Get": """
                async def handler(request, who=Depends(anyone)):
                    before = request.principal.id
                    await asyncio.sleep(0)
                    return [before, request.principal.id]
                """
        },
    )

    async def main() -> list[Any]:
        sent = [(key("ann"), "ann"), (bear("one"), 1), (bear("seven"), 7), (key("7"), "7")] * 20
        made = [exchange("GET", "/v1", headers=headers).run(app) for headers, _ in sent]
        answers = await asyncio.gather(*made)
        return [a.json() == [who, who] for a, (_, who) in zip(answers, sent, strict=True)]

    assert asyncio.run(main()) == [True] * 80


def test_one_of_refuses_credentials_that_cannot_be_told_apart() -> None:
    a, b = api_key(KEYS, name="a"), api_key(KEYS, name="b", header="X-B")
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: one_of(a), "^one_of must have two credentials or more, got 1$"),
        (lambda: one_of(a, a), "must differ in name and in what they read, got a second 'a'"),
        (lambda: one_of(a, api_key(KEYS, name="c")), "a second 'c' or 'x-api-key'; give it"),
        (lambda: one_of(a, api_key(KEYS, name="a", header="X-C")), "a second 'a' or 'x-c'"),
        (
            lambda: one_of(a, api_key(KEYS, name="c", header="X-C", optional=True)),
            r"must be required ones that .*, got 'c'; write one_of\(..., optional=True\)",
        ),
        (lambda: one_of(a, allow("x", by=b)), "must be required ones that .* got 'b'; write"),
    ]
    for make, message in cases:
        with pytest.raises(ValueError, match=message):
            make()
