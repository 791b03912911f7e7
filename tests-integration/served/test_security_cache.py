"""Security rows of cached answers (S-52, S-53, S-55) on the wire, with either parser."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from http_messages import Answer, Call
from serving import Process
from wire import ServeOnSocket

TREE = {
    "Api/v1/Book/Get.py": """
        import asyncio
        from treefold.cache import cached

        calls = []

        @cached(600, tags=["books"])
        async def handler(request):
            calls.append(1)
            await asyncio.sleep(0.2)
            return {"n": len(calls), "user": request.headers.get("x-user")}
        """,
    "Api/v1/Book/Post.py": """
        from treefold.cache import get_cache

        async def handler(request):
            await get_cache().invalidate("books")
        """,
    "Api/v1/Echo/[name]/Get.py": """
        from treefold.cache import cached

        @cached(600)
        def handler(name, request):
            return {"name": name, "query": request.query.multi_items(), "host": request.host}
        """,
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


def get(server: Process, target: str, *headers: tuple[str, str]) -> Answer:
    return server.request("GET", target, headers=headers)


def test_s55_requests_at_once_are_one_call(server: Process) -> None:
    server.request("POST", "/v1/book")
    before = json.loads(get(server, "/v1/book?x").body)["n"]
    calls = [Call(method="GET", target="/v1/book?y", headers=(), body=b"", host="a")] * 40
    answers = server.send(calls)
    assert {json.loads(answer.body)["n"] for answer in answers} == {before + 1}
    assert len({answer.id for answer in answers}) == 40


@pytest.mark.parametrize(
    "headers",
    [
        [("Cookie", "s={user}")],
        [("cookie", "")],
        [("Authorization", "Bearer {user}")],
        [("Cookie", "a=b"), ("Cookie", "s={user}")],
    ],
)
def test_s52_users_never_see_each_others_answers(
    server: Process, headers: Sequence[tuple[str, str]]
) -> None:
    for user in ("ann", "bob", "ann"):
        own = [(name, value.format(user=user)) for name, value in headers]
        answer = get(server, "/v1/book", ("X-User", user), *own)
        assert json.loads(answer.body)["user"] == user


def test_s53_different_requests_get_their_own_answers(server: Process) -> None:
    targets = ["a", "%61", "a%2Fb", "%C3%A9", "e%CC%81", "a?a=1&b=2", "a?a=1%26b=2", "a?b=2&a=1"]
    for _ in range(2):
        found = [json.loads(get(server, f"/v1/echo/{target}").body) for target in targets]
        assert [one["name"] for one in found[:5]] == ["a", "a", "a/b", "\xe9", "e\u0301"]
        assert found[6]["query"] == [["a", "1&b=2"]]
        assert sorted(found[5]["query"]) == sorted(found[7]["query"]) == [["a", "1"], ["b", "2"]]
    other = server.request("GET", "/v1/echo/a", host="other.example")
    assert json.loads(other.body)["host"] == "other.example"


def test_a_client_that_has_the_answer_gets_304_until_it_is_invalidated(server: Process) -> None:
    answer = get(server, "/v1/book")
    etag = dict(answer.headers)["etag"]
    again = get(server, "/v1/book", ("If-None-Match", etag))
    assert (again.status, again.body) == (304, b"")
    server.request("POST", "/v1/book")
    assert get(server, "/v1/book", ("If-None-Match", etag)).status == 200
