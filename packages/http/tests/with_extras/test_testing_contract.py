"""Test clients that hold answers against the contract of their routes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest

from treefold_http import Application, NotFound, TreefoldError
from treefold_http.contract import UnreadableProject
from treefold_http.testing import AsyncTestClient, ContractError, ContractWarning, TestClient

Project = Callable[..., Application]

MODELS = """
from dataclasses import dataclass
from treefold_http import *

@dataclass
class Item:
    price: float

@dataclass
class Page:
    items: list[Item]

@dataclass
class Account:
    price: float
    password: str
"""


def handle(text: str) -> dict[str, str]:
    return {"Api/v1/X/Get.py": MODELS + dedent(text)}


@pytest.fixture
def answer(project: Project) -> Callable[..., httpx.Response]:
    """The answer of one handler to a strict client."""

    def send(text: str, path: str = "/v1/x", method: str = "GET", **options: Any) -> httpx.Response:
        files = {**handle(text), "treefold.toml": "auto_head = true\nauto_options = true\n"}
        with TestClient(project(files), contract="strict") as client:
            return client.request(method, path, **options)

    return send


Send = Callable[..., httpx.Response]


FITTING = {
    "model": "async def handler() -> Page:\n    return Page([Item(1.5)])",
    "mapping": "async def handler() -> Page:\n    return {'items': [{'price': 1}], 'more': 7}",
    "untyped": "async def handler():\n    return {'any': 1}",
    "created": """
        from typing import Literal
        async def handler() -> tuple[Item, Literal[201]]:
            return Item(1.0), 201
    """,
    "nothing": "async def handler() -> None:\n    pass",
    "text": "async def handler() -> str:\n    return 'a'",
    "response": "async def handler() -> Response:\n    return Response(b'', 204)",
    "default": "async def handler():\n    return {'a': 1}",
    "typed lines": """
        from collections.abc import AsyncIterator
        async def handler() -> AsyncIterator[Item]:
            yield Item(1.0)
    """,
    "events": "async def handler():\n    async def feed():\n        yield {'a': 1}\n"
    "    return EventStream(feed())",
    "raised": "async def handler():\n    raise NotFound('no')",
    "declared": "responses = {409: 'taken'}\nasync def handler():\n    raise HTTPError(int('409'))",
    "declared model": "responses = {409: Item}\nasync def handler():\n    return Item(1.0), 409",
}


@pytest.mark.parametrize("text", FITTING.values(), ids=FITTING)
def test_an_answer_that_is_declared_passes(text: str, answer: Send) -> None:
    assert answer(text).status_code < 410


REFUSED = {
    "status": ("async def handler():\n    return {}, 409", "status", "2XX any", "409"),
    "success": ("async def handler() -> Page:\n    return Page([]), 202", "status", "Page", "202"),
    "member": (
        "async def handler() -> Page:\n    return {'items': [{'price': 1}, {'price': '2'}]}",
        ".items[1].price",
        "float",
        '"2"',
    ),
    "missing": (
        "async def handler() -> Page:\n    return {}",
        ".items",
        "[Item]",
        "no such member",
    ),
    "kind": ("async def handler() -> Page:\n    return [1]", "body", "Page", "[1]"),
    "text for json": (
        "async def handler() -> Page:\n    return 'text'",
        "media type",
        "json Page",
        "text/plain",
    ),
    "made response": (
        "async def handler() -> Page:\n    return Response('<p>', media_type='text/html')",
        "media type",
        "json Page",
        "text/html",
    ),
    "no JSON": (
        "async def handler() -> Page:\n    return Response(b'{', media_type='application/json')",
        "body",
        "Page",
        "no valid JSON",
    ),
    "not a number": (
        "async def handler() -> Page:\n    return Response(b'NaN', media_type='application/json')",
        "body",
        "Page",
        "no valid JSON",
    ),
    "own form of an error": (
        "async def handler():\n    if 1:\n        return {'oops': 1}, 404\n    raise NotFound()",
        "media type",
        "problem",
        "application/json",
    ),
    "problem": (
        'async def handler():\n    if 1:\n        return Response(b\'{"status": "no"}\', 404,'
        " media_type='application/problem+json')\n    raise NotFound()",
        ".status",
        "int",
        '"no"',
    ),
    "body for none": (
        "async def handler() -> None:\n    return Response(b'x', 200)",
        "status",
        "204 no body",
        "200",
    ),
    "line": (
        "from collections.abc import AsyncIterator\nfrom treefold_http import StreamingResponse\n"
        "async def handler() -> AsyncIterator[Item]:\n    async def feed():\n"
        '        yield b\'{"price": 1}\\n{"price": null}\\n\'\n'
        "    return StreamingResponse(feed(), media_type='application/x-ndjson')",
        "line 2 .price",
        "float",
        "null",
    ),
}


@pytest.mark.parametrize(("text", "place", "declared", "got"), REFUSED.values(), ids=REFUSED)
def test_an_answer_that_is_not_declared_fails(
    text: str, place: str, declared: str, got: str, answer: Send
) -> None:
    with pytest.raises(ContractError) as caught:
        answer(text)
    message = str(caught.value)
    assert message.startswith("GET /v1/x answered ")
    lines = {line.split(":")[0].strip(): line for line in message.split("\n")[1:]}
    assert place in (lines["at"] if "at" in lines else message.split("\n")[0])
    assert declared in lines["declared"]
    assert got in lines["got"]
    assert "Api/v1/X/Get.py:" in lines["handler"]
    assert "responses = {" in lines["change"]


def test_the_whole_text_of_an_error(answer: Send) -> None:
    with pytest.raises(ContractError) as caught:
        answer("async def handler() -> Page:\n    return {'items': [{'price': '1'}]}")
    assert str(caught.value) == (
        "GET /v1/x answered 200 with a body that is not declared\n"
        "  at:       .items[0].price\n"
        "  declared: float\n"
        '  got:      "1"\n'
        "  handler:  Api/v1/X/Get.py:17\n"
        "  change:   annotate what the handler returns, or declare it: responses = {200: Model}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "async def handler() -> list[Account]:\n    return [{'price': 1, 'password': ['s3cret']}]",
        "async def handler() -> Page:\n    return {'items': {'password': 's3cret'}}",
        "async def handler() -> dict[str, Item]:\n    return {'token': {'price': 's3cret'}}",
        "async def handler() -> list[Item]:\n    return {'access_token': 's3cret'}",
    ],
)
def test_a_secret_is_masked(text: str, answer: Send) -> None:
    with pytest.raises(ContractError, match=r"\*\*\*") as caught:
        answer(text)
    assert "s3cret" not in str(caught.value)


def test_a_long_value_is_cut(answer: Send) -> None:
    with pytest.raises(ContractError) as caught:
        answer("async def handler() -> list[int]:\n    return {'a': 'x' * 100_000}")
    assert len(str(caught.value)) < 500


IMPLIED: dict[str, tuple[str, dict[str, Any], int]] = {
    "query": (
        "async def handler(n: int) -> list[int]:\n    return [n]",
        {"params": {"n": "x"}},
        422,
    ),
    "no route": ("async def handler():\n    pass", {"path": "/v1/y"}, 404),
    "no method": ("async def handler():\n    pass", {"method": "DELETE"}, 405),
    "head": ("async def handler() -> Page:\n    return Page([])", {"method": "HEAD"}, 200),
    "options": ("async def handler() -> Page:\n    return Page([])", {"method": "OPTIONS"}, 204),
    "malformed": ("async def handler():\n    pass", {"headers": {"host": "a b"}}, 400),
    "timeout": (
        "import asyncio\ntimeout = 0.01\n"
        "async def handler() -> list[int]:\n    await asyncio.sleep(5)",
        {},
        503,
    ),
    "credential": (
        "from treefold_http.auth import bearer\nasync def find(token: str):\n    return None\n"
        "async def handler(who: dict = Depends(bearer(find))) -> list[int]:\n    return [1]",
        {},
        401,
    ),
}


@pytest.mark.parametrize(("text", "request_", "status"), IMPLIED.values(), ids=IMPLIED)
def test_a_status_that_other_facts_imply_passes(
    text: str, request_: dict[str, Any], status: int, answer: Send
) -> None:
    assert answer(text, **request_).status_code == status


def test_parts_of_a_file_pass(project: Project, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0123456789")
    text = f"""
        async def handler() -> FileResponse:
            return FileResponse({str(tmp_path / "a.txt")!r})
    """
    with TestClient(project(handle(text)), contract="strict") as client:
        whole = client.get("/v1/x")
        part = client.get("/v1/x", headers={"range": "bytes=0-1"})
        none = client.get("/v1/x", headers={"range": "bytes=99-"})
        same = client.get("/v1/x", headers={"if-none-match": whole.headers["etag"]})
    assert [whole.status_code, part.status_code, none.status_code] == [200, 206, 416]
    assert same.status_code == 304


def test_an_exception_of_the_application_is_raised_itself(answer: Send) -> None:
    with pytest.raises(ZeroDivisionError):
        answer("async def handler() -> list[int]:\n    return [1 // 0]")


def test_a_500_is_returned_where_errors_are_not_raised(project: Project) -> None:
    app = project(handle("async def handler() -> list[int]:\n    return [1 // 0]"))
    with TestClient(app, contract="strict", raise_app_errors=False) as client:
        assert client.get("/v1/x").status_code == 500


def test_a_compressed_body_is_decoded(project: Project) -> None:
    files = handle("async def handler() -> list[int]:\n    return ['a' * 5000]")
    files["Middleware/__init__.py"] = (
        "from treefold_http.middleware import GZip\nmiddlewares = [GZip()]\n"
    )
    with TestClient(project(files), contract="strict") as client, pytest.raises(ContractError):
        client.get("/v1/x")


def test_lines_that_were_read_are_checked_when_the_client_leaves(project: Project) -> None:
    text = """
        from collections.abc import AsyncIterator
        import asyncio

        async def handler() -> AsyncIterator[int]:
            async def feed():
                yield b'1\\n"a"\\n'
                await asyncio.sleep(30)
            return StreamingResponse(feed(), media_type="application/x-ndjson")
    """
    with (
        TestClient(project(handle(text)), contract="strict") as client,
        pytest.raises(ContractError, match="line 2"),
        client.stream("GET", "/v1/x") as got,
    ):
        assert next(got.iter_lines()) == "1"


def test_the_default_version_is_that_of_its_routes(project: Project) -> None:
    app = project(
        handle("async def handler() -> list[int]:\n    return ['a']"), default_version="v1"
    )
    with TestClient(app, contract="strict") as client, pytest.raises(ContractError, match="/v1/x"):
        client.get("/x")


def test_an_override_has_facts_of_its_own(project: Project) -> None:
    app = project(
        handle("""
            def find():
                return 1

            async def handler(found: int = Depends(find)) -> list[int]:
                return [found]
        """)
    )
    app.boot()
    with TestClient(app, contract="strict") as client:
        assert client.get("/v1/x").json() == [1]

        def refuse() -> None:
            raise NotFound

        module: Any = next(iter(app.project.modules.values()))
        app.overrides[module.handler.__globals__["find"]] = refuse
        assert client.get("/v1/x").status_code == 404


def test_an_async_client_checks_as_well(project: Project) -> None:
    app = project(handle("async def handler() -> list[int]:\n    return ['a']"))

    async def send() -> None:
        async with AsyncTestClient(app, contract="strict") as client:
            await client.get("/v1/x")

    with pytest.raises(ContractError, match=r"declared: int"):
        asyncio.run(send())


def test_a_warning_is_given_once_for_each_route_and_cause(project: Project) -> None:
    app = project(
        handle(
            "async def handler(n: int = 0) -> list[int]:\n    return ([1], 299) if n else {'a': 1}"
        )
    )
    with TestClient(app, contract="warn") as client, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        statuses = [client.get("/v1/x", params={"n": n}).status_code for n in (0, 0, 1, 1)]
    assert statuses == [200, 200, 299, 299]
    assert [each.category for each in found] == [ContractWarning] * 2
    assert ["body" in str(each.message) for each in found] == [True, False]
    assert found[0].filename.endswith("Api/v1/X/Get.py")


def test_a_broken_project_is_named(project: Project) -> None:
    app = project({**handle("async def handler():\n    pass"), "Api/v1/Y/Get.py": "import nothing"})
    with TestClient(app, contract="strict") as client, pytest.raises(UnreadableProject, match="Y"):
        client.get("/v1/x")


def test_another_application_has_no_contract() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="needs a treefold Application"):
        TestClient(app, contract="strict")


def test_an_unknown_word_is_refused(project: Project) -> None:
    with pytest.raises(TreefoldError, match="'strict', 'warn' or 'off', got 'loud'"):
        TestClient(project(handle("")), contract="loud")  # type: ignore[arg-type]


@pytest.fixture
def outside(project: Project) -> Callable[..., str]:
    """The output of a program in a process of its own, beside a project whose answer is wrong."""
    app = project(handle("async def handler() -> list[int]:\n    return ['a']"))

    def run(text: str) -> str:
        program = f"""
import sys
from treefold_http import Application
from treefold_http.testing import TestClient
{dedent(text)}
"""
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, cwd=app.root, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    return run


def test_nothing_is_imported_without_a_contract(outside: Callable[..., str]) -> None:
    shown = outside("""
        with TestClient(Application(".")) as client:
            assert client.get("/v1/x").status_code == 200
        print("treefold_contract" in sys.modules, "treefold_http._facts" in sys.modules)
    """)
    assert "False False\n" in shown


def test_a_missing_package_names_the_extra(outside: Callable[..., str]) -> None:
    shown = outside("""
        sys.modules["treefold_contract"] = None
        with TestClient(Application("."), contract="strict") as client:
            client.get("/v1/x")
    """)
    assert 'pip install "treefold-http[contract]"' in shown
