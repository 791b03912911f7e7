"""A cache and what guards a route: no client gets an answer past a guard (S-52)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings
from treefold_http._runtime.boot_report import BootError
from treefold_http.cache import get_cache

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

SETTINGS = Settings(secret_key="0123456789abcdef" * 2)
ANN, BOB = "a" * 20, "b" * 20


GUARDS = f"""
from typing import Annotated
from treefold_http import Depends, Header, HTTPError, Request, Unauthorized
from treefold_http.auth import api_key, bearer

KEYS = {{"{ANN}": "ann", "{BOB}": "bob"}}
calls, asked, opened = [], [], []

async def find(key):
    asked.append(key)
    return KEYS.get(key)

by_key = api_key(find)
by_token = bearer(find)

def who(request: Request):
    return check(request.headers.get("x-api-key", ""))

def check(key):
    asked.append(key)
    if key not in KEYS:
        raise Unauthorized("no")
    return KEYS[key]

async def from_field(x_api_key: Annotated[str, Header()] = ""):
    return check(x_api_key)

async def open_database():
    opened.append(1)
    yield "db"

def nested(name: str = Depends(by_key), db = Depends(open_database)):
    return name
"""

TAKES = {
    "api_key": "client=Depends(by_key)",
    "bearer": "client=Depends(by_token)",
    "who(request)": "client=Depends(who)",
    "injected field": "client=Depends(from_field)",
    "nested": "client=Depends(nested)",
}


def guarded(
    project: Project, takes: str, *, own: str = "[]", listed: str = "[]", decorator: str = "60"
) -> Application:
    handler = f"""
from treefold_http.cache import cached
from treefold_http.middleware import IPAllowlist
from Services.guards import *

middlewares = {own}
{f"@cached({decorator})" if decorator else ""}
async def handler({takes}, db=Depends(open_database)):
    calls.append(1)
    return {{"n": len(calls), "client": client}}
"""
    middleware = f"""
from treefold_http.cache import cached
from treefold_http.middleware import *
from treefold_http import under

async def plain(request, call_next):
    return await call_next(request)

middlewares = {listed}
"""
    return project(
        {
            "Api/v1/Get.py": handler,
            "Services/guards.py": GUARDS,
            "Middleware/__init__.py": middleware,
        },
        settings=SETTINGS,
    )


def with_key(key: str) -> list[tuple[str, str]]:
    return [("x-api-key", key), ("authorization", f"Bearer {key}")] if key else []


@pytest.mark.parametrize("takes", TAKES.values(), ids=TAKES.keys())
@pytest.mark.parametrize(
    "where",
    [
        {"decorator": "60"},
        {"decorator": "", "own": "[cached(60)]"},
        {"decorator": "", "listed": "[cached(60)]"},
        {"decorator": "", "listed": "[cached(60), plain]"},
        {"decorator": "", "listed": "[under('/v1', cached(60)), CORS(['https://a.example'])]"},
        {"decorator": "60", "listed": "[cached(60), plain]"},
    ],
    ids=["decorator", "own list", "list", "list with more", "under", "both"],
)
def test_s52_credentials_are_checked_before_the_look_up(
    project: Project, ask: Ask, takes: str, where: dict[str, str]
) -> None:
    app = guarded(project, takes, **where)

    def see(key: str) -> Any:
        answer = ask(app, "GET", "/v1", headers=with_key(key))
        return answer.json()["client"] if answer.status == 200 else answer.status

    assert [see(key) for key in (ANN, "", "x" * 20, BOB, ANN)] == ["ann", 401, 401, "bob", "ann"]
    services: Any = sys.modules["Services.guards"]
    calls, opened = len(services.calls), len(services.opened)
    assert [see(ANN), see(BOB)] == ["ann", "bob"]
    assert len(services.calls) == calls == 2
    assert "nested" in takes or len(services.opened) == opened == 2
    assert len(services.asked) >= 5  # every request was checked, those from the cache too
    del services.KEYS[ANN]
    assert [see(ANN), see(BOB)] == [401, "bob"]


def test_s52_a_declared_field_decides_from_the_first_request(project: Project, ask: Ask) -> None:
    app = project(
        {
            "Api/v1/Get.py": "from typing import Annotated\nfrom treefold_http import Header\n"
            "from treefold_http.cache import cached\ncalls = []\n@cached(60)\n"
            "async def handler(x_user: Annotated[str, Header()] = '-'):\n    calls.append(1)\n"
            "    return {'n': len(calls), 'user': x_user}"
        }
    )
    asked = [
        ask(app, "GET", "/v1", headers=headers).json()
        for headers in ([("x-user", "a")], [], [("x-user", "a")], [("x-user", "")], [])
    ]
    assert [(one["n"], one["user"]) for one in asked] == [
        (1, "a"),
        (2, "-"),
        (1, "a"),
        (3, ""),
        (2, "-"),
    ]


@pytest.mark.parametrize(
    "listed",
    [
        "[cached(60), IPAllowlist(['10.0.0.0/8'])]",
        "[cached(60), RateLimit('5/min')]",
        "[under('/v1', cached(60)), IPAllowlist(['10.0.0.0/8'])]",
        "[cached(60), under('/v1', IPAllowlist(['10.0.0.0/8']))]",
        "[under('/v1/a', cached(60)), under('/v1/[id]/b', IPAllowlist(['10.0.0.0/8']))]",
    ],
)
def test_a_guard_inside_of_a_cache_does_not_boot(project: Project, listed: str) -> None:
    app = guarded(project, "client=1", listed=listed, decorator="")
    with pytest.raises(BootError) as raised:
        app.boot()
    guard = "RateLimit" if "RateLimit" in listed else "IPAllowlist"
    assert f"{guard} must come before cached(60)" in str(raised.value)
    assert f"write middlewares = [{guard}(...), cached(60)]" in str(raised.value)


@pytest.mark.parametrize("is_in_module", [True, False], ids=["module", "list"])
def test_s52_middleware_inside_of_a_cache_with_a_key_runs_for_each_request(
    project: Project, ask: Ask, is_in_module: bool
) -> None:
    """A key names the caller, and nothing of what a guard of the author looks at."""
    gate = (
        "from treefold_http import Forbidden\n"
        "async def gate(request, call_next):\n"
        "    if 'x-gate' not in request.headers:\n"
        "        raise Forbidden('shut')\n"
        "    return await call_next(request)\n"
    )
    listed = "cached(60, key=lambda request: 'everybody')"
    app = project(
        {
            "Services/gates.py": gate,
            "Middleware/__init__.py": "from Services.gates import gate\n"
            "from treefold_http.cache import cached\n"
            f"middlewares = [{listed if is_in_module else f'{listed}, gate'}]",
            "Api/v1/Get.py": "from itertools import count\n"
            "from Services.gates import gate\n"
            f"middlewares = [{'gate' if is_in_module else ''}]\n"
            "calls = count(1)\n"
            "async def handler(request): return [next(calls)]",
        }
    )
    fields = [[("x-gate", "open")], [], [("x-gate", "wide")]]
    answers = [ask(app, "GET", "/v1", headers=each) for each in fields]
    assert [answer.status for answer in answers] == [200, 403, 200]
    assert answers[0].json() == answers[2].json() == [1]


def test_a_secured_middleware_inside_of_a_cache_does_not_serve(project: Project) -> None:
    app = project(
        {
            "Api/v1/Get.py": "from treefold_http import secured\n"
            "from treefold_http.cache import cached\n"
            "@secured('bearer')\nasync def guard(request, call_next):\n"
            "    return await call_next(request)\nmiddlewares = [cached(60), guard]\n"
            "async def handler(request): return 'ok'"
        }
    )
    assert "guard must come before cached(60)" in app.report.broken[0].error


@pytest.mark.parametrize(
    "where",
    [
        {"listed": "[IPAllowlist(['10.0.0.0/8']), cached(60)]"},
        {"listed": "[under('/v1', IPAllowlist(['10.0.0.0/8']))]", "decorator": "60"},
        {"listed": "[cached(60)]", "own": "[IPAllowlist(['10.0.0.0/8'])]"},
        {"listed": "[under('/docs', cached(60)), under('/v1', IPAllowlist(['10.0.0.0/8']))]"},
    ],
)
def test_s52_a_refused_address_gets_no_kept_answer(
    project: Project, ask: Ask, where: dict[str, str]
) -> None:
    app = guarded(project, "client=1", **{"decorator": "", **where})
    statuses = [
        ask(app, "GET", "/v1", more={"client": (host, 1)}).status
        for host in ("10.0.0.1", "192.0.2.1", "10.0.0.2", "192.0.2.1")
    ]
    assert statuses == [200, 403, 200, 403]


@pytest.mark.parametrize(
    ("listed", "decorator"),
    [
        ("[cached(60), cached(60)]", ""),
        ("[cached(60)]", "60"),
        ("[under('/v1', cached(60))]", "60"),
        ("[cached(60), plain, under('/v1', cached(60)), plain]", "60"),
    ],
)
def test_two_caches_around_a_handler_do_not_wait_for_each_other(
    project: Project, ask: Ask, listed: str, decorator: str
) -> None:
    app = guarded(project, "client=1", listed=listed, decorator=decorator)
    assert [ask(app, "GET", "/v1").json()["n"] for _ in range(3)] == [1, 1, 1]


def test_of_two_caches_the_one_nearest_the_handler_counts(project: Project, ask: Ask) -> None:
    app = guarded(project, "client=1", listed="[cached(60)]", decorator="60, tags=['books']")
    assert [ask(app, "GET", "/v1").json()["n"] for _ in range(2)] == [1, 1]
    get_cache().sync.invalidate("books")
    assert ask(app, "GET", "/v1").json()["n"] == 2


# -- mounts, documents, error pages

ACCOUNTS = """
async def accounts(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    fields = dict(scope["headers"])
    user = fields.get(b"x-user", b"-").decode()
    public = scope["path"].endswith("/public")
    control = [(b"cache-control", b"public")] if public else []
    vary = [(b"vary", b"X-User")] if public else []
    start = {"type": "http.response.start", "status": 200, "headers": control + vary}
    await send(start)
    calls.append(1)
    body = f"account of {user} {len(calls)} {scope['path']}".encode()
    await send({"type": "http.response.body", "body": body})

calls = []
"""


@pytest.fixture
def mounting(project: Project) -> Application:
    app = project(
        {
            "Api/v1/Get.py": "async def handler(request): return 'ok'",
            "Services/accounts.py": ACCOUNTS,
            "Middleware/__init__.py": "from treefold_http.cache import cached\n"
            "middlewares = [cached(60)]",
        },
        settings=Settings(docs=True),
    )
    app.boot()
    app.mount("/legacy", importlib.import_module("Services.accounts").accounts)
    return app


def test_nothing_without_a_route_is_answered_from_the_cache(
    mounting: Application, ask: Ask
) -> None:
    ann, bob = [("x-user", "ann")], [("x-user", "bob")]
    texts = [
        ask(mounting, "GET", target, headers=who).body.decode()
        for target, who in [
            ("/legacy/me", ann),
            ("/legacy/me", bob),
            ("/legacy/me", ann),
            ("/legacy/other", ann),
        ]
    ]
    assert [text.split()[2:4] for text in texts] == [
        ["ann", "1"],
        ["bob", "2"],
        ["ann", "3"],
        ["ann", "4"],
    ]
    openapi = ask(mounting, "GET", "/openapi.json").body
    assert openapi.startswith(b"{")
    assert ask(mounting, "GET", "/nothing").status == 404
    assert ask(mounting, "GET", "/v1/nothing").status == 404
    assert b"account" not in ask(mounting, "GET", "/docs").body
    assert ask(mounting, "GET", "/v1").body == b"ok"


def test_a_public_answer_of_a_mount_is_kept_for_its_address(
    mounting: Application, ask: Ask
) -> None:
    def see(target: str, user: str, host: str = "a") -> list[str]:
        sent = [("x-user", user), ("host", host)]
        return ask(mounting, "GET", target, headers=sent, host=False).body.decode().split()[2:4]

    assert see("/legacy/public", "ann") == ["ann", "1"]
    assert see("/legacy/public", "ann") in (["ann", "1"], ["ann", "2"])
    kept = see("/legacy/public", "ann")
    assert see("/legacy/public", "ann") == kept
    assert see("/legacy/public", "bob")[0] == "bob"
    assert see("/legacy/x/public", "ann")[1] > kept[1]
    assert see("/legacy/%78/public", "ann")[1] > kept[1]
    assert see("/legacy/public", "ann", "b")[1] > kept[1]
