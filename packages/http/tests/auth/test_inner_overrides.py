"""`app.overrides` of credentials that `allow`, `one_of` and middleware are made of."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Depends, Settings
from treefold_http.auth import Principal

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

USERS = """
    from treefold_http.auth import Principal, allow, api_key, bearer, current_user, one_of


    class User:
        def __init__(self, id, *scopes):
            self.id, self.scopes = id, scopes


    def find_nobody(id):
        return None


    def identify_user(user):
        return Principal(user.id, scopes=user.scopes)


    login = current_user(find_nobody, identify=identify_user)
    key = api_key({"ann": "k" * 20})
    anyone = one_of(login, key)
    writer = allow("write", by=login)
    chooser = allow("write", by=anyone)
    inner = allow("write", by=allow("write", by=login))
    """
SHOW = """
    from Services.users import anyone, chooser, inner, login, writer
    from treefold_http import Depends

    async def handler(request, who=Depends({name})):
        caller = request.principal
        source, scopes = (caller.source, caller.scopes) if caller else (None, ())
        return [getattr(who, "id", who), source, sorted(scopes)]
    """
NAMES = ("anyone", "chooser", "inner", "login", "writer")
ROUTES = {f"Api/v1/{n.title()}/Post.py": n for n in NAMES}


@pytest.fixture
def app(project: Project) -> Application:
    files = {name: dedent(SHOW).format(name=each) for name, each in ROUTES.items()}
    files["Services/users.py"] = dedent(USERS)
    files["Middleware/__init__.py"] = dedent(
        """
        from Services.users import login
        from treefold_http.middleware import Sessions, under
        middlewares = [Sessions(), under("/*/behind", login)]
        """
    )
    files["Api/v1/Behind/Post.py"] = (
        "async def handler(request): return {'id': request.principal.id}"
    )
    return project(files, settings=Settings(secret_key="0123456789abcdef" * 2))


def users(app: Application) -> Any:
    app.boot()
    return sys.modules["Services.users"]


@pytest.mark.parametrize("route", NAMES)
def test_the_inside_of_a_credential_is_replaced_and_identified(
    app: Application, ask: Ask, route: str
) -> None:
    known = users(app)
    assert ask(app, "POST", f"/v1/{route}").status == 401

    async def find() -> Any:
        return known.User(7, "write")

    for replacement in (lambda: known.User(7, "write"), find):
        app.overrides[known.login] = replacement
        assert ask(app, "POST", f"/v1/{route}").json() == [7, "session", ["write"]]
    app.overrides[known.login] = lambda: known.User(7)
    lacking = ask(app, "POST", f"/v1/{route}")
    assert lacking.status == (200 if route in ("anyone", "login") else 403), lacking.body
    app.overrides[known.login] = lambda: None
    assert ask(app, "POST", f"/v1/{route}").status == 401
    app.overrides.clear()
    assert ask(app, "POST", f"/v1/{route}").status == 401


def test_a_replaced_member_counts_as_sent(app: Application, ask: Ask) -> None:
    known = users(app)
    app.overrides[known.login] = lambda: known.User(7)
    both = ask(app, "POST", "/v1/anyone", headers=[("x-api-key", "k" * 20)])
    assert both.status == 400
    app.overrides.clear()
    app.overrides[known.key] = lambda: "bob"
    assert ask(app, "POST", "/v1/anyone").json() == ["bob", "apiKey", []]


def test_a_replacement_without_a_principal_identifies_nobody(app: Application, ask: Ask) -> None:
    known = users(app)
    app.overrides[known.anyone] = lambda: known.User(7)
    assert ask(app, "POST", "/v1/anyone").json() == [7, None, []]

    def find(request: Any, number: int) -> Any:
        return known.User(number)

    app.overrides[known.login] = find  # with inputs of its own
    assert ask(app, "POST", "/v1/login?number=3").json() == [3, None, []]
    assert ask(app, "POST", "/v1/login").status == 422


def test_a_replacement_serves_a_function_that_runs_without_a_connection(app: Application) -> None:
    known = users(app)
    app.overrides[known.login] = lambda: known.User(7)

    def work(user: Any = Depends(known.login)) -> Any:
        return user.id

    async def call() -> object:
        async with app.scope() as scope:
            return await scope.call(work)

    assert asyncio.run(call()) == 7


def test_a_credential_among_the_middleware_is_replaced(app: Application, ask: Ask) -> None:
    known = users(app)
    assert ask(app, "POST", "/v1/behind").status == 401
    app.overrides[known.login] = lambda: known.User(7)
    assert ask(app, "POST", "/v1/behind").json() == {"id": 7}


def test_a_replaced_choice_returns_a_principal_or_is_a_credential(
    app: Application, ask: Ask, lines: Any
) -> None:
    known = users(app)
    app.overrides[known.anyone] = lambda: Principal(3, scopes=["write"])
    assert ask(app, "POST", "/v1/chooser").json() == [3, "session-or-apiKey", ["write"]]
    app.overrides[known.anyone] = known.key
    answer = ask(app, "POST", "/v1/chooser", headers=[("x-api-key", "k" * 20)])
    assert (answer.status, "needs the scope 'write'" in answer.body.decode()) == (403, True)
    wrong: list[tuple[Callable[..., Any], str]] = [
        (lambda: known.User(7), "must return a Principal behind allow, got <"),
        (ask, "must be a function without parameters or a credential, got <"),
    ]
    for replacement, message in wrong:
        app.overrides[known.anyone] = replacement
        assert ask(app, "POST", "/v1/chooser").status == 500
        assert message in str(lines.errors())
