"""API keys, bearer tokens and users of sessions as dependencies, and as OpenAPI shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings
from treefold_http.auth import api_key

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

SETTINGS = Settings(secret_key="0123456789abcdef" * 2)
FILES = {
    "Services/users.py": """
        from treefold_http import Depends
        from treefold_http.auth import api_key, bearer, current_user

        async def find_token(token: str) -> str | None:
            return {"good-token": "ann"}.get(token)

        def find_key(key: str) -> str | None:
            return "bob" if key == "plain-function" else None

        gone = set()

        def find_user(id: int) -> dict[str, int] | None:
            return None if id in gone else {"id": id}

        by_token = bearer(find_token)
        maybe_token = bearer(find_token, optional=True)
        by_key = api_key({"shop": "k" * 16, "till": "t" * 16})
        by_function = api_key(find_key, header="X-Key", name="other")
        signed_in = current_user(find_user)
        perhaps = current_user(find_user, optional=True)
        """,
    **{
        f"Api/v1/{path}/Get.py": f"""
            from Services.users import {name}
            from treefold_http import Depends

            async def handler(who=Depends({name})):
                return {{"who": who}}
            """
        for path, name in {
            "Token": "by_token",
            "Maybe": "maybe_token",
            "Key": "by_key",
            "Function": "by_function",
            "Me": "signed_in",
            "Perhaps": "perhaps",
        }.items()
    },
    "Api/v1/Login/Post.py": """
        from treefold_http.auth import login

        async def handler(request):
            login(request, 7)
        """,
    "Api/v1/Gone/Post.py": """
        from Services.users import gone

        async def handler():
            gone.add(7)
        """,
    "Api/v1/Ws.py": """
        from Services.users import by_token
        from treefold_http import Depends

        async def handler(websocket, who=Depends(by_token)):
            await websocket.accept()
            await websocket.send_text(who)
        """,
    "Middleware/__init__.py": """
        from treefold_http.middleware import Sessions
        middlewares = [Sessions()]
        """,
}


@pytest.fixture
def app(project: Project) -> Application:
    return project({name: dedent(text) for name, text in FILES.items()}, settings=SETTINGS)


Fields = Sequence[tuple[str, str]]


def auth(*values: str) -> Fields:
    return [("authorization", value) for value in values]


@pytest.mark.parametrize(
    ("path", "headers", "who"),
    [
        ("token", auth("Bearer good-token"), "ann"),
        ("token", auth("bearer  good-token"), "ann"),
        ("maybe", auth("Bearer good-token"), "ann"),
        ("maybe", [], None),
        ("key", [("x-api-key", "k" * 16)], "shop"),
        ("key", [("x-api-key", "t" * 16)], "till"),
        ("function", [("x-key", "plain-function")], "bob"),
        ("perhaps", [], None),
    ],
)
def test_good_credentials_give_who_has_them(
    app: Application, ask: Ask, path: str, headers: Fields, who: str | None
) -> None:
    answer = ask(app, "GET", f"/v1/{path}", headers=headers)
    assert (answer.status, answer.json()) == (200, {"who": who})


@pytest.mark.parametrize(
    ("path", "headers", "challenge"),
    [
        ("token", [], "Bearer"),
        ("token", auth("good-token"), "Bearer"),
        ("token", auth("Basic good-token"), "Bearer"),
        ("token", auth("Bearer"), "Bearer"),
        ("token", auth("Bearer "), "Bearer"),
        ("token", auth("Bearer good-token x"), "Bearer"),
        ("token", auth("Bearer " + "x" * 9000), "Bearer"),
        ("token", auth("Bearer bad"), 'Bearer error="invalid_token"'),
        ("token", auth("Bearer \xff"), 'Bearer error="invalid_token"'),
        ("maybe", auth("Bearer bad"), 'Bearer error="invalid_token"'),
        ("maybe", auth("Basic x"), "Bearer"),
        ("key", [], "ApiKey"),
        ("key", [("x-api-key", "")], "ApiKey"),
        ("key", [("x-api-key", "k" * 15)], "ApiKey"),
        ("key", [("x-api-key", "k" * 16 + "\xe4")], "ApiKey"),
        ("key", [("x-api-key", "k" * 16), ("x-api-key", "t" * 16)], "ApiKey"),
        ("function", [("x-key", "x")], "ApiKey"),
        ("me", [], "Session"),
        ("me", [("cookie", "__Host-session=7")], "Session"),
    ],
)
def test_any_other_credentials_are_401_with_a_challenge(
    app: Application, ask: Ask, path: str, headers: Fields, challenge: str
) -> None:
    answer = ask(app, "GET", f"/v1/{path}", headers=headers)
    assert (answer.status, answer.fields("www-authenticate")) == (401, [challenge])


def test_a_repeated_authorization_is_400(app: Application, ask: Ask) -> None:
    for values in (["Bearer good-token"] * 2, ["Bearer good-token", "Basic x"]):
        answer = ask(app, "GET", "/v1/token", headers=auth(*values))
        assert answer.status == 400
        assert answer.json()["detail"] == "More than one Authorization field"


def test_a_handshake_needs_the_same_credentials(
    app: Application, talk: Callable[..., Socket]
) -> None:
    assert talk(app, "/v1", headers=auth("Bearer good-token")).texts == ["ann"]
    assert talk(app, "/v1", headers=auth("Bearer bad")).refusal.status == 401


def test_a_user_of_a_session_is_found_until_he_is_gone(app: Application, ask: Ask) -> None:
    cookie = ask(app, "POST", "/v1/login").fields("set-cookie")[0].partition(";")[0]
    headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")]
    for path in ("me", "perhaps"):
        assert ask(app, "GET", f"/v1/{path}", headers=headers).json() == {"who": {"id": 7}}
    ask(app, "POST", "/v1/gone", headers=headers)
    assert ask(app, "GET", "/v1/perhaps", headers=headers).json() == {"who": None}
    answer = ask(app, "GET", "/v1/me", headers=headers)  # the session has ended before
    assert answer.status == 401


def test_the_document_has_every_scheme_and_the_401(
    document: Callable[..., Mapping[str, Any]],
) -> None:
    made = document({name: dedent(text) for name, text in FILES.items()}, settings=SETTINGS)
    schemes = made["components"]["securitySchemes"]
    assert schemes == {
        "bearer": {"type": "http", "scheme": "bearer"},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
        "other": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "session": {"type": "apiKey", "in": "cookie", "name": "__Host-session"},
    }
    operations = {path: item["get"] for path, item in made["paths"].items() if "get" in item}
    assert {path: item["security"] for path, item in operations.items()} == {
        "/v1/token": [{"bearer": []}],
        "/v1/maybe": [{"bearer": []}, {}],
        "/v1/key": [{"apiKey": []}],
        "/v1/function": [{"other": []}],
        "/v1/me": [{"session": []}],
        "/v1/perhaps": [{"session": []}, {}],
    }
    assert all("401" in item["responses"] for item in operations.values())


def test_a_short_api_key_is_refused_where_it_is_given() -> None:
    with pytest.raises(ValueError, match=r"key of 'shop' must have at least 16 characters, got 5"):
        api_key({"shop": "short"})


def test_a_dependency_on_a_connection_needs_one(project: Project) -> None:
    app = project({"Api/v1/Get.py": "async def handler(): return 1"})

    async def main() -> None:
        async with app.scope() as scope:
            with pytest.raises(
                Exception, match="needs the request, but this call has no connection"
            ):
                await scope.call(api_key({"shop": "k" * 16}))

    asyncio.run(main())
