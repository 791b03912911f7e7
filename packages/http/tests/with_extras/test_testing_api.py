"""The routes of an application as a tree of calls of the test client."""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from treefold_contract import Lock, write_python_client
from treefold_http import Application
from treefold_http.testing import (
    AsyncTestClient,
    AsyncWebSocketSession,
    ContractError,
    TestClient,
    WebSocketSession,
)

FILES = {
    "Api/v1/User/Get.py": """
        async def handler(page: int = 1, tag: list[str] = []):
            return {"page": page, "tag": tag}
    """,
    "Api/v1/User/Post.py": """
        from typing import Annotated, Any
        from treefold_http import Body, Header

        async def handler(body: Annotated[Any, Body()], x_trace: Annotated[str, Header()] = ""):
            return {"body": body, "trace": x_trace}, 201
    """,
    "Api/v1/User/[id]/Get.py": "async def handler(id: int):\n    return {'id': id}",
    "Api/v1/User/Me/Get.py": "async def handler():\n    return {'me': True}",
    "Api/v1/Order-Line/Get.py": "async def handler():\n    return {'line': 1}",
    "Api/v1/Get/Get.py": "async def handler():\n    return {'get': 1}",
    "Api/v1/Class/Get.py": "async def handler():\n    return {'class': 1}",
    "Api/v1/File/[name]/Get.py": "async def handler(name: str):\n    return {'name': name}",
    "Api/v1/Form/Post.py": """
        from typing import Annotated
        from treefold_http import Form

        async def handler(name: Annotated[str, Form()]):
            return {"name": name}
    """,
    "Api/v1/Chat/[room]/Socket.py": """
        from typing import Annotated
        from treefold_http import Header, WebSocket

        async def handler(
            websocket: WebSocket, room: str, name: str = "", x_trace: Annotated[str, Header()] = ""
        ):
            await websocket.accept()
            await websocket.send_json({"room": room, "name": name, "trace": x_trace})
    """,
}


@pytest.fixture
def client(project: Callable[..., Application]) -> Iterator[TestClient]:
    with TestClient(project(FILES, default_version="v1")) as client:
        yield client


CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "segment": (lambda api: api.v1.user.get(), {"page": 1, "tag": []}),
    "query": (
        lambda api: api.v1.user.get(page=2, tag=["a", "b&"]),
        {"page": 2, "tag": ["a", "b&"]},
    ),
    "parameter": (lambda api: api.v1.user(7).get(), {"id": 7}),
    "static beside a parameter": (lambda api: api.v1.user.me.get(), {"me": True}),
    "default version": (lambda api: api.user(7).get(), {"id": 7}),
    "no identifier": (lambda api: api.v1["order-line"].get(), {"line": 1}),
    "method as a segment": (lambda api: api.v1["get"].get(), {"get": 1}),
    "keyword": (lambda api: api.v1["class"].get(), {"class": 1}),
    "slash": (lambda api: api.v1.file("a/b ü%").get(), {"name": "a/b ü%"}),
    "form": (lambda api: api.v1.form.post(form={"name": "Ann"}), {"name": "Ann"}),
    "json and headers": (
        lambda api: api.v1.user.post(json={"a": None}, headers={"x-trace": "t"}),
        {"body": {"a": None}, "trace": "t"},
    ),
}


@pytest.mark.parametrize(("call", "body"), CALLS.values(), ids=CALLS)
def test_a_call_reaches_its_route(
    call: Callable[[Any], Any], body: Any, client: TestClient
) -> None:
    assert call(client.api).json() == body


def test_a_call_returns_the_response_of_the_client(client: TestClient) -> None:
    answer = client.api.v1.user.get(page="x")
    assert answer.status_code == 422
    assert client.api.v1.user.post(json=[]).status_code == 201


def test_a_socket_is_opened_with_its_inputs(client: TestClient) -> None:
    opened = client.api.v1.chat("a/b").socket(name="Ann &", headers={"x-trace": "t"})
    with opened as socket:
        assert socket.receive_json() == {"room": "a/b", "name": "Ann &", "trace": "t"}


def run_async(app: Application, use: Callable[[Any, AsyncTestClient], Awaitable[Any]]) -> Any:
    """Return what a function returns that uses the tree of an async client."""

    async def run() -> Any:
        async with AsyncTestClient(app) as client:
            return await use(client.api, client)

    return asyncio.run(run())


@pytest.mark.parametrize(("call", "body"), CALLS.values(), ids=CALLS)
def test_an_async_call_is_awaited(
    call: Callable[[Any], Any], body: Any, project: Callable[..., Application]
) -> None:
    async def use(api: Any, _: AsyncTestClient) -> Any:
        return (await call(api)).json()

    assert run_async(project(FILES, default_version="v1"), use) == body


def test_an_async_socket_is_opened_with_its_inputs(project: Callable[..., Application]) -> None:
    async def use(api: Any, _: AsyncTestClient) -> Any:
        async with api.v1.chat("a/b").socket(name="Ann &", headers={"x-trace": "t"}) as socket:
            return await socket.receive_json()

    assert run_async(project(FILES), use) == {"room": "a/b", "name": "Ann &", "trace": "t"}


def test_an_async_tree_sends_what_the_client_sends(project: Callable[..., Application]) -> None:
    async def use(api: Any, client: AsyncTestClient) -> Any:
        client.headers["x-trace"] = "of the client"
        own = await api.v1.user.post(json=[])
        return own.status_code, own.json(), repr(api.v1.user(7))

    sent: dict[str, Any] = {"body": [], "trace": "of the client"}
    assert run_async(project(FILES), use) == (201, sent, "<place /v1/user/{id}>")


@pytest.mark.parametrize("name", ["usr", "user.xyz"])
def test_an_unknown_place_of_an_async_tree_is_named(
    name: str, project: Callable[..., Application]
) -> None:
    async def use(api: Any, _: AsyncTestClient) -> None:
        for part in name.split("."):
            api = getattr(api.v1 if part != "xyz" else api, part)

    with pytest.raises(AttributeError, match=r"has no '(usr|xyz)'"):
        run_async(project(FILES), use)


def read_stub_methods(name: str) -> dict[str, list[str]]:
    """Return the public methods of a class in the stub of a client, with their parameters."""
    text = write_python_client(Lock(), name="shop")["shop/__init__.pyi"]
    classes = {each.name: each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)}
    return {
        each.name: [argument.arg for argument in each.args.args]
        for each in classes[name].body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name[0] != "_"
    }


def test_the_types_of_sockets_are_those_of_sessions() -> None:
    declared = read_stub_methods("AsyncTestSocket")
    plain = read_stub_methods("TestSocket")
    assert declared == plain
    assert set(plain) == {name for name in vars(WebSocketSession) if name[0] != "_"}
    methods = {
        name: list(inspect.signature(value).parameters)
        for name, value in vars(AsyncWebSocketSession).items()
        if inspect.isfunction(value) and name[0] != "_"
    }
    assert methods.items() <= declared.items()
    assert set(declared) - set(methods) == {
        *("accepted_subprotocol", "headers", "close_code", "close_reason")
    }


def test_a_client_with_the_types_of_a_generated_one_is_the_same(
    project: Callable[..., Application],
) -> None:
    generic: Any = TestClient  # the types of a generated client are `dict` at run time
    with generic[dict](project(FILES)) as client:
        assert client.api.v1.user.get().json() == {"page": 1, "tag": []}


UNKNOWN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "near": (lambda api: api.v1.usr, r"/v1 has no 'usr'; did you mean 'user'"),
    "far": (lambda api: api.v1.user.xyz, r"it has get, post, me, \(id\)"),
    "method": (lambda api: api.v1.user.delete, r"/v1/user has no 'delete'; it has get, post"),
    "below a parameter": (
        lambda api: api.v1.user(7).gte,
        r"/v1/user/\{id\} has no 'gte'; did you mean 'get'",
    ),
    "subscript": (lambda api: api.v1["order-lin"], r"did you mean 'order-line'"),
    "is a subscript": (lambda api: getattr(api.v1, "class"), r"is a subscript: \['class'\]"),
    "no parameter": (lambda api: api.v1.form(7), r"/v1/form has no parameter; it has post"),
    "private": (lambda api: api._x, r"'_x' is a subscript"),
    "socket": (lambda api: api.v1.user.socket, r"has no 'socket'"),
    "upper": (lambda api: api.v1.user.GET, r"has no 'GET'"),
    "empty root": (lambda api: api[""], r"/ has no ''; it has"),
}


@pytest.mark.parametrize(("call", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_place_names_the_nearest(
    call: Callable[[Any], Any], message: str, client: TestClient
) -> None:
    with pytest.raises(AttributeError, match=message):
        call(client.api)


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_parameter_that_is_no_segment_is_refused(value: str, client: TestClient) -> None:
    with pytest.raises(ValueError, match="must not be"):
        client.api.v1.user(value)


def test_a_place_lists_what_follows_and_can_be_copied(client: TestClient) -> None:
    place = client.api.v1.user
    assert {"get", "post", "me"} <= set(dir(place))
    assert copy.copy(place).me.get().json() == {"me": True}
    assert repr(place(7)) == "<place /v1/user/{id}>"


def test_the_contract_of_a_call_is_checked(project: Callable[..., Application]) -> None:
    app = project({"Api/v1/X/Get.py": "async def handler() -> list[int]:\n    return ['a']"})
    with TestClient(app, contract="strict") as client, pytest.raises(ContractError):
        client.api.v1.x.get()


def test_another_application_has_no_tree() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="needs a treefold Application"):
        _ = TestClient(app).api


def test_a_missing_package_names_the_extra(project: Callable[..., Application]) -> None:
    program = """
import sys
sys.modules["treefold_contract"] = None
from treefold_http.testing import TestClient
TestClient(".").api
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project(FILES).root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 'pip install "treefold-http[contract]"' in done.stderr
