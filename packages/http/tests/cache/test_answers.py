"""Whole answers in a cache: whose are kept, and for whom (S-52, S-53, S-55)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings
from treefold_http.cache import get_cache

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Fields = Sequence[tuple[str, str]]

SETTINGS = Settings(secret_key="0123456789abcdef" * 2)


@pytest.fixture
def counting(project: Project) -> Callable[..., Application]:
    """A handler that counts its calls and shows what it was asked, behind `cached`."""

    def make(options: str = "60", answer: str = "who(request)", **more: str) -> Application:
        text = f"""
            from treefold_http import Response
            from treefold_http.cache import cached

            calls = []

            def who(request):
                calls.append(1)
                return {{"n": len(calls), "by": request.headers.get("x-user", "")}}

            @cached({options})
            async def handler(request):
                return {answer}
            """
        files = {"Api/v1/Get.py": dedent(text), **more}
        return project(files, settings=SETTINGS, root=f"r{abs(hash((options, answer)))}")

    return make


def bodies(app: Application, ask: Ask, *requests: Fields, target: str = "/v1") -> list[Any]:
    return [ask(app, "GET", target, headers=headers).json()["n"] for headers in requests]


def test_an_answer_is_kept_with_its_fields(counting: Callable[..., Application], ask: Ask) -> None:
    app = counting(
        answer="Response.json(who(request), headers={'X-A': 'b', 'Cache-Control': 'max-age=5'})"
    )
    first, second = ask(app, "GET", "/v1"), ask(app, "GET", "/v1")
    assert first.json() == second.json() == {"n": 1, "by": ""}
    for answer in (first, second):
        assert answer.fields("x-a") == ["b"]
        assert answer.fields("cache-control") == ["max-age=5"]
        assert answer.fields("content-type") == ["application/json"]
        assert len(answer.fields("etag")) == 1
    ids = [answer.fields("x-request-id")[0] for answer in (first, second)]
    assert ids[0] != ids[1]


def test_a_client_that_has_the_answer_gets_304(
    counting: Callable[..., Application], ask: Ask
) -> None:
    app = counting()
    etag = ask(app, "GET", "/v1").fields("etag")[0]
    assert etag.startswith('"')
    for sent in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        answer = ask(app, "GET", "/v1", headers=[("if-none-match", sent)])
        assert (answer.status, answer.body, answer.fields("etag")) == (304, b"", [etag])
    assert ask(app, "GET", "/v1", headers=[("if-none-match", '"x"')]).status == 200
    assert ask(app, "GET", "/v1", headers=[("if-match", '"x"')]).status == 412
    get_cache().sync.clear()
    answer = ask(app, "GET", "/v1", headers=[("if-none-match", etag)])
    assert (answer.status, answer.json()["n"]) == (200, 2)


def test_tags_make_the_next_answer_a_new_one(
    counting: Callable[..., Application], ask: Ask
) -> None:
    app = counting("60, tags=lambda request: ['list', request.query.get('q', 'all')]")
    for target in ("/v1", "/v1?q=a"):
        assert bodies(app, ask, [], [], target=target)[0] == bodies(app, ask, [], target=target)[0]
    get_cache().sync.invalidate("a")
    assert (bodies(app, ask, [])[0], bodies(app, ask, [], target="/v1?q=a")[0]) == (1, 3)
    get_cache().sync.invalidate("list")
    assert (bodies(app, ask, [])[0], bodies(app, ask, [], target="/v1?q=a")[0]) == (4, 5)


# -- S-52: never the answer of another user


ANN: Fields = [("x-user", "ann"), ("cookie", "s=ann")]
BOB: Fields = [("x-user", "bob"), ("cookie", "s=bob")]


@pytest.mark.parametrize(
    ("options", "answer", "headers"),
    [
        ("60", "who(request)", [("authorization", "Bearer {user}")]),
        ("60", "who(request)", [("cookie", "s={user}")]),
        ("60", "who(request)", [("cookie", "")]),
        ("60", "Response.json(who(request), headers={'Set-Cookie': 's=1'})", []),
        ("60", "Response.json(who(request), headers={'Cache-Control': 'PRIVATE'})", []),
        ("60", "Response.json(who(request), headers={'Cache-Control': 'a,  Private=\"x\"'})", []),
        ("60", "Response.json(who(request), headers={'Cache-Control': 'public, No-Store'})", []),
        ("60", "Response.json(who(request), headers={'Vary': ' * '})", []),
        ("60", "Response.json(who(request), headers={'Vary': 'accept,*'})", []),
        ("60", "Response.json(who(request), headers={'Vary': 'X-User'})", []),
        ("60, vary=['accept']", "Response.json(who(request), headers={'Vary': 'Cookie'})", []),
        ("60, key=lambda request: None", "who(request)", []),
        ("60, key=lambda request: request.headers['x-user']", "who(request)", [("cookie", "a")]),
        ("60, vary=['X-User']", "who(request)", []),
        ("60, vary=['Cookie']", "who(request)", [("cookie", "s={user}")]),
        ("60, vary=['Authorization']", "who(request)", [("authorization", "Bearer {user}")]),
    ],
)
def test_s52_two_users_never_see_each_others_answers(
    counting: Callable[..., Application], ask: Ask, options: str, answer: str, headers: Fields
) -> None:
    app = counting(options, answer)
    for user in ("ann", "bob", "ann", "bob", ""):
        own = [(name, value.format(user=user)) for name, value in headers]
        found = ask(app, "GET", "/v1", headers=[("x-user", user), *own]).json()
        assert found["by"] == user


def test_s52_an_absent_field_is_not_an_empty_one(
    counting: Callable[..., Application], ask: Ask
) -> None:
    app = counting("60, vary=['x-user']")
    first, second = (ask(app, "GET", "/v1", headers=h) for h in ([], [("x-user", "")]))
    assert (first.json()["n"], second.json()["n"]) == (1, 2)
    assert first.fields("vary") == ["x-user"]


def test_s52_the_same_answer_serves_those_without_credentials_only(
    counting: Callable[..., Application], ask: Ask
) -> None:
    app = counting()
    assert bodies(app, ask, [], ANN, [], BOB, []) == [1, 2, 1, 3, 1]


def test_s52_an_answer_with_a_session_is_not_kept(project: Project, ask: Ask) -> None:
    app = project(
        {
            "Api/v1/Get.py": "from treefold_http.cache import cached\n"
            "calls = []\n@cached(60)\nasync def handler(request):\n"
            "    calls.append(1)\n    return [request.session.csrf_token(), len(calls)]",
            "Middleware/__init__.py": "from treefold_http.middleware import Sessions\n"
            "middlewares = [Sessions()]",
        },
        settings=SETTINGS,
    )
    first, second = (ask(app, "GET", "/v1").json() for _ in range(2))
    assert (first[1], second[1]) == (1, 2)
    assert first[0] != second[0]


@pytest.mark.parametrize(
    "answer",
    [
        "(who(request), 201)",
        "(who(request), 404)",
        "Response.json(who(request), background=print)",
        "(x for x in [str(who(request)['n'])])",
    ],
)
def test_only_whole_answers_with_200_are_kept(
    counting: Callable[..., Application], ask: Ask, answer: str
) -> None:
    app = counting(answer=answer)
    first, second = (ask(app, "GET", "/v1").body for _ in range(2))
    assert first != second


# -- S-53: what tells answers apart


@pytest.fixture
def echoing(project: Project) -> Application:
    text = dedent("""
        from treefold_http.cache import cached

        calls = []

        @cached(60)
        async def handler(request):
            calls.append(1)
            return {"n": len(calls)}
        """)
    return project(
        {
            "Api/v1/[name]/Get.py": text,
            "Api/v1/[name]/Head.py": text,
            "Api/v1/[name]/Post.py": text,
            "Api/v2/[name]/Get.py": text,
        }
    )


def number(app: Application, ask: Ask, target: str, host: str = "a") -> int:
    return ask(app, "GET", target, headers=[("host", host)], host=False).json()["n"]


def test_s53_one_resource_has_one_answer(echoing: Application, ask: Ask) -> None:
    same = ["/v1/a", "/v1/%61", "//v1//a/"]
    assert [number(echoing, ask, target) for target in same] == [1, 1, 1]
    assert number(echoing, ask, "/v1/a?x=1&y=2") == number(echoing, ask, "/v1/a?y=2&x=1") == 2
    assert number(echoing, ask, "/v1/a", host="A") == 1


def test_s53_different_resources_have_different_answers(echoing: Application, ask: Ask) -> None:
    targets = [
        "/v1/a",
        "/v1/b",
        "/v1/a%2Fb",
        "/v1/a%252Fb",
        "/v1/a?a=1&b=2",
        "/v1/a?a=1%26b=2",
        "/v1/a?a=1&b=",
        "/v1/a?a=1&a=1",
        "/v1/a?a=1",
        "/v1/a?a=1%00",
        "/v1/a?",
        "/v1/a?=",
        "/v1/%C3%A9",
        "/v1/e%CC%81",
        "/v1/a?q=%C3%A9",
        "/v1/a?q=e%CC%81",
    ]
    first = [number(echoing, ask, target) for target in targets]
    empty = targets.index("/v1/a?")
    assert first[empty] == first[0]
    distinct = [n for index, n in enumerate(first) if index != empty]
    assert len(set(distinct)) == len(distinct)
    assert [number(echoing, ask, target) for target in targets] == first
    assert number(echoing, ask, "/v1/a", host="b") not in first
    assert number(echoing, ask, "/v1/a", host="a:81") not in first


def test_s53_methods_and_versions_are_separate(echoing: Application, ask: Ask) -> None:
    assert number(echoing, ask, "/v1/a") == 1
    assert number(echoing, ask, "/v2/a") == 1
    head = ask(echoing, "HEAD", "/v1/a")
    assert (head.status, head.body) == (200, b"")
    assert [ask(echoing, "POST", "/v1/a").json()["n"] for _ in range(2)] == [1, 2]
    assert number(echoing, ask, "/v1/a") == 1


# -- S-55: one call


def test_s55_two_hundred_requests_at_once_are_one_call(
    project: Project, exchange: type[Exchange]
) -> None:
    app = project(
        {
            "Api/v1/Get.py": "import asyncio\nfrom treefold_http.cache import cached\n"
            "calls = []\n@cached(60)\nasync def handler(request):\n"
            "    calls.append(1)\n    await asyncio.sleep(0.05)\n    return {'n': len(calls)}",
        }
    )

    async def main() -> list[Answer]:
        return await asyncio.gather(*(exchange("GET", "/v1").run(app) for _ in range(200)))

    answers = asyncio.run(main())
    assert [answer.json()["n"] for answer in answers] == [1] * 200
    assert len({answer.fields("x-request-id")[0] for answer in answers}) == 200


def test_answers_that_may_not_be_shared_are_made_for_each(
    project: Project, exchange: type[Exchange]
) -> None:
    app = project(
        {
            "Api/v1/Get.py": "import asyncio\nfrom treefold_http import Response\n"
            "from treefold_http.cache import cached\n"
            "@cached(60)\nasync def handler(request):\n    await asyncio.sleep(0.01)\n"
            "    user = request.headers['x-user']\n"
            "    return Response.json(user, headers={'Cache-Control': 'private'})",
        }
    )

    async def main() -> list[Answer]:
        sent = [exchange("GET", "/v1", headers=[("x-user", f"u{n}")]) for n in range(50)]
        return await asyncio.gather(*(one.run(app) for one in sent))

    assert [answer.json() for answer in asyncio.run(main())] == [f"u{n}" for n in range(50)]


def test_a_first_request_that_fails_or_is_cancelled_fails_no_other(
    project: Project, exchange: type[Exchange]
) -> None:
    app = project(
        {
            "Services/turns.py": "import asyncio\nbegun, finish = asyncio.Event(), asyncio.Event()",
            "Api/v1/Get.py": "from Services.turns import begun, finish\n"
            "from treefold_http.cache import cached\ncalls = []\n"
            "@cached(60)\nasync def handler(request):\n    calls.append(1)\n"
            "    mine = len(calls)\n    begun.set()\n    await finish.wait()\n"
            "    if mine == 1: raise LookupError\n    return {'ok': True}",
        }
    )

    app.boot()
    turns: Any = sys.modules["Services.turns"]

    async def main() -> list[int]:
        asked = [asyncio.ensure_future(exchange("GET", "/v1").run(app)) for _ in range(5)]
        await turns.begun.wait()
        turns.finish.set()
        answers = await asyncio.gather(*asked)

        turns.begun.clear()
        turns.finish.clear()
        cancelled = asyncio.ensure_future(exchange("GET", "/v1?x=1").run(app))
        waiting = asyncio.ensure_future(exchange("GET", "/v1?x=1").run(app))
        await turns.begun.wait()
        cancelled.cancel()
        await asyncio.wait([cancelled])
        turns.finish.set()
        return [*(answer.status for answer in answers), (await waiting).status]

    assert sorted(asyncio.run(main())) == [200, 200, 200, 200, 200, 500]


FAILING = {
    "Services/turns.py": """
import asyncio
calls, begun, finish = [], asyncio.Event(), asyncio.Event()
""",
    "Api/v1/Get.py": """
from Services.turns import begun, calls, finish
from treefold_http import HTTPError
from treefold_http.cache import cached

@cached(60)
async def handler(request):
    calls.append(1)
    begun.set()
    await finish.wait()
    if len(calls) > int(request.query["good"]):
        return {"n": len(calls)}
    raise HTTPError(503, "the database is away")
""",
}


@pytest.mark.parametrize(("good", "calls", "expected"), [(99, 2, 503), (1, 2, 200)])
def test_a_failing_handler_is_not_called_by_all_who_waited(
    project: Project, exchange: type[Exchange], good: int, calls: int, expected: int
) -> None:
    app = project(FAILING)
    app.boot()
    turns: Any = sys.modules["Services.turns"]

    async def main() -> list[Answer]:
        asked = [exchange("GET", f"/v1?good={good}") for _ in range(40)]
        running = [asyncio.ensure_future(one.run(app)) for one in asked]
        await turns.begun.wait()
        for _ in range(20):  # every request reaches the cache
            await asyncio.sleep(0)
        turns.finish.set()
        return await asyncio.gather(*running)

    answers = asyncio.run(main())
    assert len(turns.calls) == calls
    assert sorted(answer.status for answer in answers) == sorted([expected] * 39 + [503])
    told = [answer.fields("retry-after") for answer in answers if answer.status == 503]
    assert told.count(["1"]) == (38 if expected == 503 else 0)


def test_in_development_a_changed_handler_answers_anew(live: Callable[..., Any]) -> None:
    text = (
        "from treefold_http.cache import cached\n@cached(60)\n"
        "async def handler(request): return ['WORD']"
    )
    running = live({"Api/v1/Get.py": text.replace("WORD", "old")})
    assert running.get("/v1") == ["old"]
    running.edit({"Api/v1/Get.py": text.replace("WORD", "new")})
    assert running.get("/v1") == ["new"]


def test_cached_in_a_list_of_middleware_keeps_answers_too(project: Project, ask: Ask) -> None:
    handler = (
        "calls = []\nasync def handler(request):\n    calls.append(1)\n    return {'n': len(calls)}"
    )
    app = project(
        {
            "Api/v1/A/Get.py": handler,
            "Api/v1/B/Get.py": handler,
            "Middleware/__init__.py": "from treefold_http.cache import cached\n"
            "from treefold_http import under\nmiddlewares = [under('/v1/a', cached(60))]",
        }
    )
    assert bodies(app, ask, [], [], target="/v1/a") == [1, 1]
    assert bodies(app, ask, [], [], target="/v1/b") == [1, 2]
