"""What middleware adds to the document: header fields of every answer, and refusals of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Document = Callable[..., dict[str, Any]]

OK = "async def handler(request) -> str:\n    return 'ok'\n"
LIMIT = "from treefold_http.middleware import *\n"
FIELDS = ["RateLimit", "RateLimit-Policy"]
TREE = {
    "Api/v1/Open/Get.py": OK,
    "Api/v1/Admin/Get.py": OK,
    "Api/v1/Admin/[id]/Delete.py": OK.replace("request", "id: int"),
}


def answers(found: dict[str, Any], path: str, method: str = "get") -> dict[str, Any]:
    return found["paths"][path][method]["responses"]


def limited(found: dict[str, Any]) -> list[str]:
    """The paths whose answers name a limit."""
    return [
        path
        for path, item in found["paths"].items()
        for operation in item.values()
        if "429" in operation["responses"]
    ]


@pytest.mark.parametrize(
    ("files", "paths"),
    [
        (
            {"Middleware/__init__.py": f"{LIMIT}middlewares = [RateLimit('5/min')]\n"},
            ["/v1/admin", "/v1/admin/{id}", "/v1/open"],
        ),
        (
            {
                "Middleware/__init__.py": LIMIT
                + "middlewares = [under('/v1/Admin', RateLimit('5/min'))]\n"
            },
            ["/v1/admin", "/v1/admin/{id}"],
        ),
        (
            {"Api/v1/Open/Get.py": f"{LIMIT}middlewares = [RateLimit('5/min')]\n{OK}"},
            ["/v1/open"],
        ),
    ],
)
def test_s99_a_limit_is_told_where_it_holds_and_nowhere_else(
    document: Document, files: dict[str, str], paths: list[str]
) -> None:
    found = document(TREE | files)
    assert limited(found) == paths
    for path, item in found["paths"].items():
        for operation in item.values():
            for status, response in operation["responses"].items():
                more = ["Retry-After"] if status == "429" else []
                expected = [*FIELDS, *more] if path in paths else []
                assert sorted(response.get("headers", {})) == expected


def test_a_refusal_is_a_problem_that_says_when_to_come_back(document: Document) -> None:
    code = f"{LIMIT}middlewares = [RateLimit('100/hour', name='api')]\n"
    found = document({**TREE, "Middleware/__init__.py": code})
    refusal = answers(found, "/v1/open")["429"]
    assert refusal["description"] == "Too Many Requests"
    content = refusal["content"]["application/problem+json"]
    assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert refusal["headers"]["Retry-After"]["schema"] == {"type": "integer", "minimum": 1}
    fields = found["components"]["headers"]
    assert sorted(fields) == FIELDS
    assert '`"api";q=100;w=3600`' in fields["RateLimit-Policy"]["description"]
    assert answers(found, "/v1/open")["200"]["headers"] == {
        name: {"$ref": f"#/components/headers/{name}"} for name in FIELDS
    }


def test_each_limit_is_told_as_it_is(document: Document) -> None:
    middleware = f"{LIMIT}middlewares = [under('/v1/admin', RateLimit('5/min'))]\n"
    own = f"{LIMIT}middlewares = [RateLimit('9/s', name='own')]\n{OK}"
    found = document({**TREE, "Middleware/__init__.py": middleware, "Api/v1/Open/Get.py": own})

    def policy(path: str) -> str:
        said = answers(found, path)["200"]["headers"]["RateLimit-Policy"]
        shared = found["components"]["headers"]["RateLimit-Policy"]
        return (shared if "$ref" in said else said)["description"]

    assert '`"default";q=5;w=60`' in policy("/v1/admin")
    assert '`"own";q=9;w=1`' in policy("/v1/open")


def test_the_words_of_a_handler_win_and_the_fields_stay(document: Document) -> None:
    own = (
        f"{LIMIT}middlewares = [RateLimit('9/s')]\n"
        "responses = {429: 'Slower, please', 200: {'headers': {'X-Count': int}}}\n" + OK
    )
    found = document({"Api/v1/Open/Get.py": own})
    refusal = answers(found, "/v1/open")["429"]
    assert refusal["description"] == "Slower, please"
    assert sorted(refusal["headers"]) == [*FIELDS, "Retry-After"]
    assert sorted(answers(found, "/v1/open")["200"]["headers"]) == [*FIELDS, "X-Count"]


def test_middleware_of_a_project_says_what_it_adds(document: Document) -> None:
    code = """
class Shop:
    openapi_headers = {"X-Shop": "Open or closed"}
    openapi_responses = {418: "Closed", 503: {"headers": {"Retry-After": int}}}

    async def http(self, request, call_next):
        return await call_next(request)

middlewares = [Shop()]
"""
    found = document({**TREE, "Middleware/__init__.py": code})
    responses = answers(found, "/v1/open")
    assert sorted(responses) == ["200", "418", "503"]
    assert responses["418"]["description"] == "Closed"
    assert sorted(responses["503"]["headers"]) == ["Retry-After", "X-Shop"]
    assert found["components"]["headers"] == {
        "X-Shop": {"description": "Open or closed", "schema": {"type": "string"}}
    }
