"""`one_of`: every order and combination of credentials, against a rule that was written first.

    sent and valid   sent and invalid   answer
    0                0                  401; 204 with `optional`
    1                0                  200, its result
    2 or more        0                  400
    any              1 or more          401

Two fields `Authorization` are 400 in front of every route, whatever is in them. A session with a
login needs its guard where the method changes something and it alone was sent.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Literal

import pytest

from treefold_http import Application, Settings

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange

State = Literal["absent", "valid", "invalid"]
Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

SETTINGS = Settings(secret_key="0123456789abcdef" * 2)
KINDS = ("session", "apiKey", "bearer", "token")
STATES: tuple[State, ...] = ("absent", "valid", "invalid")
THREE = KINDS[:3]
ORDERS = [
    *(order for size in (2, 3) for order in itertools.permutations(THREE, size)),
    *(("bearer", "token"), ("token", "bearer", "session"), KINDS),
]
USERS = """
    from treefold_http.auth import api_key, bearer, current_user, one_of

    members = {
        "session": current_user(lambda id: {1: "user"}.get(id)),
        "apiKey": api_key({"client": "k" * 16}),
        "bearer": bearer(lambda token: "bearer" if token == "good" else None),
        "token": bearer(lambda token: "token" if token == "good" else None,
                        scheme="Token", name="token"),
    }
    """
RESULTS = {"session": "user", "apiKey": "client", "bearer": "bearer", "token": "token"}


def decide(sent: Mapping[str, State], *, is_optional: bool) -> tuple[int, str | None]:
    """The rule: the status and the result for what was sent."""
    states = [state for state in sent.values() if state != "absent"]
    if sent.get("bearer", "absent") != "absent" != sent.get("token", "absent"):
        return 400, None
    if "invalid" in states:
        return 401, None
    if len(states) > 1:
        return 400, None
    if not states:
        return (204, None) if is_optional else (401, None)
    return 200, next(RESULTS[kind] for kind, state in sent.items() if state == "valid")


def name_route(order: tuple[str, ...], is_optional: bool) -> str:
    return "".join(kind[0] for kind in order) + ("o" if is_optional else "r")


@pytest.fixture
def app(project: Project) -> Application:
    files = {
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
        "Api/v1/Cart/Get.py": """
            async def handler(request):
                request.session["cart"] = [1]
            """,
    }
    for order, is_optional in itertools.product(ORDERS, (False, True)):
        for method in ("Get", "Post"):
            text = f"""
                from Services.users import members, one_of
                from treefold_http import Depends

                anyone = one_of(*[members[n] for n in {order!r}], optional={is_optional})

                async def handler(who=Depends(anyone)):
                    return who
                """
            files[f"Api/v1/{name_route(order, is_optional)}/{method}.py"] = text
    return project({name: dedent(text) for name, text in files.items()}, settings=SETTINGS)


def cookie_of(answer: Answer) -> tuple[str, str]:
    return ("cookie", answer.fields("set-cookie")[0].partition(";")[0])


def test_exactly_one_credential_decides(app: Application, exchange: type[Exchange]) -> None:
    async def send(method: str, path: str, headers: list[tuple[str, str]] | None = None) -> Answer:
        return await exchange(method, path, headers=headers or []).run(app)

    async def main() -> tuple[int, list[Any]]:
        fields: dict[tuple[str, State], list[tuple[str, str]]] = {
            ("session", "valid"): [cookie_of(await send("POST", "/v1/login/1"))],
            ("apiKey", "valid"): [("x-api-key", "k" * 16)],
            ("apiKey", "invalid"): [("x-api-key", "guessed")],
            ("bearer", "valid"): [("authorization", "Bearer good")],
            ("bearer", "invalid"): [("authorization", "Bearer bad")],
            ("token", "valid"): [("authorization", "Token good")],
            ("token", "invalid"): [("authorization", "Token bad")],
        }
        wrong: list[Any] = []
        count = 0
        for order, is_optional in itertools.product(ORDERS, (False, True)):
            path = f"/v1/{name_route(order, is_optional)}"
            for states in itertools.product(STATES, repeat=len(order)):
                sent: dict[str, State] = dict(zip(order, states, strict=True))
                headers: list[tuple[str, str]] = []
                for kind, state in sent.items():
                    if (kind, state) == ("session", "invalid"):
                        # of a deleted user; a use ends the session, so each request has its own
                        headers.append(cookie_of(await send("POST", "/v1/login/2")))
                    elif state != "absent":
                        headers += fields[kind, state]
                answer = await send("GET", path, headers)
                found = answer.status, answer.body.decode() if answer.status == 200 else None
                if found != decide(sent, is_optional=is_optional):
                    wrong.append((path, sent, found))
                count += 1
        return count, wrong

    count, wrong = asyncio.run(main())
    assert wrong == []
    assert count == 2 * (6 * 9 + 6 * 27 + 9 + 27 + 81)


def test_malformed_credentials_decide_and_refuse(app: Application, ask: Ask) -> None:
    key, cart = ("x-api-key", "k" * 16), cookie_of(ask(app, "GET", "/v1/cart"))
    user = cookie_of(ask(app, "POST", "/v1/login/1"))
    good, bad = ("authorization", "Bearer good"), ("authorization", "Bearer bad")
    path = f"/v1/{name_route(THREE, False)}"
    both = f"/v1/{name_route(('bearer', 'token'), False)}"
    cases: list[tuple[str, list[tuple[str, str]], int]] = [
        (path, [key, key], 401),
        (path, [good, bad], 400),
        (path, [("x-api-key", "")], 401),
        (path, [("x-api-key", ""), good], 401),
        (path, [("authorization", ""), key], 401),
        (path, [("authorization", "Basic good"), key], 401),
        (path, [("authorization", "Basic good"), user], 401),
        (path, [("authorization", "Bearer good, Bearer good")], 401),
        (both, [("authorization", "Basic good")], 401),
        (both, [("authorization", "Bearer")], 401),
        # a cookie without a login is none: a cart, another site's, a forged one
        (path, [cart, key], 200),
        (path, [("cookie", "__Host-session=forged.forged"), key], 200),
        (path, [("cookie", "other=1"), good], 200),
        (path, [cart], 401),
        (path, [("cookie", f"{user[1]}x")], 401),
        (path, [user, cart], 200),
    ]
    found = [(p, h, ask(app, "GET", p, headers=h).status) for p, h, _ in cases]
    assert found == cases


def test_the_guard_applies_where_the_session_decides(app: Application, ask: Ask) -> None:
    user, cart = cookie_of(ask(app, "POST", "/v1/login/1")), cookie_of(ask(app, "GET", "/v1/cart"))
    key, bad = ("x-api-key", "k" * 16), ("x-api-key", "guessed")
    here, away = ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")
    path = f"/v1/{name_route(THREE, False)}"
    optional = f"/v1/{name_route(THREE, True)}"
    cases: list[tuple[str, list[tuple[str, str]], int]] = [
        (path, [user], 403),
        (path, [user, away], 403),
        (path, [user, here], 200),
        (path, [cart], 403),
        (path, [cart, here], 401),
        (path, [cart, key], 200),
        (path, [cart, key, away], 200),
        (path, [cart, bad, away], 401),
        (path, [user, key], 400),
        (path, [user, key, away], 400),
        (path, [user, bad, here], 401),
        (path, [user, ("authorization", "Basic x"), away], 401),
        (path, [key, away], 200),
        (optional, [cart], 403),
        (optional, [cart, key], 200),
        (optional, [], 204),
    ]
    found = [(p, h, ask(app, "POST", p, headers=h).status) for p, h, _ in cases]
    assert found == cases


def test_the_guard_stays_where_the_session_is_read_besides(project: Project, ask: Ask) -> None:
    files = {
        "Middleware/__init__.py": "from treefold_http.middleware import Sessions\n"
        "middlewares = [Sessions()]\n",
        "Services/users.py": dedent(USERS),
        "Api/v1/Login/[id]/Post.py": "from treefold_http.auth import login\n"
        "async def handler(request, id: int): login(request, id)\n",
    }
    head = "from Services.users import *\nfrom treefold_http import *\n"
    head += "from treefold_http.auth import allow\nm = members\n"
    for name, parameters in {
        "A": "a=Depends(one_of(m['session'], m['apiKey'])), b=Depends(m['session'])",
        "B": "a=Depends(m['session']), b=Depends(m['apiKey'])",
        "C": "a=Depends(m['session'])",
        "D": "request: Request",
    }.items():
        files[f"Api/v1/{name}/Post.py"] = f"{head}async def handler({parameters}): ...\n"
    app = project(files, settings=SETTINGS)
    cookie, key = cookie_of(ask(app, "POST", "/v1/login/1")), ("x-api-key", "k" * 16)
    for path in "abcd":
        assert ask(app, "POST", f"/v1/{path}", headers=[cookie, key]).status == 403, path


def test_the_401_names_all_that_may_be_sent(app: Application, ask: Ask) -> None:
    path = f"/v1/{name_route(THREE, False)}"
    answer = ask(app, "GET", path)
    assert answer.fields("www-authenticate") == ["Session, ApiKey, Bearer"]
    said = "Log in first; or Send an API key as X-Api-Key; or Send Authorization: Bearer TOKEN"
    assert answer.json()["detail"] == said
    two = [("x-api-key", "k" * 16), ("authorization", "Bearer good")]
    assert ask(app, "GET", path, headers=two).json()["detail"] == (
        "Send one credential, got 2: apiKey, bearer"
    )


def test_the_document_lists_alternatives(app: Application) -> None:
    from treefold_http.openapi import openapi_document

    made = openapi_document(app)
    for order, is_optional in itertools.product(ORDERS, (False, True)):
        item = made["paths"][f"/v1/{name_route(order, is_optional)}"]
        expected: list[dict[str, list[str]]] = [{kind: []} for kind in order]
        expected += [{}] * is_optional
        assert item["get"]["security"] == item["post"]["security"] == expected
        has_session = "session" in order
        for method, codes in (("get", {"400", "401"}), ("post", {"400", "401"})):
            guard = {"403"} if has_session and method == "post" else set[str]()
            assert codes | guard <= item[method]["responses"].keys()
            assert ("403" in item[method]["responses"]) == bool(guard)
    schemes = made["components"]["securitySchemes"]
    assert schemes["token"] == {"type": "http", "scheme": "token"}


def test_alternatives_stand_beside_what_is_always_needed(document: Callable[..., Any]) -> None:
    head = dedent(USERS) + "from treefold_http import *\nm = members\n"
    routes = {
        "A": "a=Depends(one_of(m['session'], m['apiKey'])), b=Depends(m['bearer'])",
        "B": "a=Depends(one_of(m['session'], m['apiKey'])), b=Depends(m['apiKey'])",
        "C": "a=Depends(one_of(m['session'], m['apiKey'])),"
        "b=Depends(one_of(m['apiKey'], m['bearer'], optional=True))",
        "D": "a=Depends(one_of(m['session'], m['apiKey'], optional=True)), b=Depends(m['bearer'])",
    }
    made = document(
        {f"Api/v1/{n}/Get.py": f"{head}async def handler({p}): ...\n" for n, p in routes.items()}
    )
    found = {path[4:]: item["get"]["security"] for path, item in made["paths"].items()}
    assert found == {
        "a": [{"session": [], "bearer": []}, {"apiKey": [], "bearer": []}],
        "b": [{"apiKey": []}],
        "c": [{"session": [], "bearer": []}, {"apiKey": []}, {"session": []}],
        "d": [{"session": [], "bearer": []}, {"apiKey": [], "bearer": []}, {"bearer": []}],
    }
