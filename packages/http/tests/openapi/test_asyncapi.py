"""Sockets and event streams: in the AsyncAPI document, and beside the operations of OpenAPI.

That the documents are valid AsyncAPI is tested in tests-integration, with the standard's schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application
from treefold_http.openapi import asyncapi_document

Project = Callable[..., Application]

CHAT = """
    from dataclasses import dataclass
    from typing import Annotated
    from treefold_http import Header, secured

    @dataclass
    class Said:
        text: str

    response_model = Said
    tags = ["talk"]

    @secured("bearer")
    async def handler(
        websocket, room: int, since: int = 0, token: Annotated[str, Header()] = ""
    ):
        '''Talk in a room.

        Everybody hears it.
        '''
        async for message in websocket.iter_text():
            await websocket.send_json({"text": message})
    """
NEWS = """
    from treefold_http import EventStream

    response_model = dict[str, int]

    async def handler(request) -> EventStream:
        'News as they come.'
    """
FILES = {"Api/v1/Chat/[room]/Socket.py": CHAT, "Api/v2/News/Get.py": NEWS}
SAID = {"$ref": "#/components/schemas/Said"}


def test_a_socket_is_a_channel_with_messages_in_both_directions(project: Project) -> None:
    made = asyncapi_document(project(FILES), "v1")
    channel = "#/channels/socket_v1_chat_by_room"

    assert made["channels"] == {
        "socket_v1_chat_by_room": {
            "address": "/v1/chat/{room}",
            "messages": {
                "receive_plain": {"contentType": "text/plain", "payload": {"type": "string"}},
                "send_json": {"contentType": "application/json", "payload": SAID},
            },
            "summary": "Talk in a room.",
            "description": "Everybody hears it.",
            "tags": [{"name": "talk"}],
            "parameters": {"room": {}},
            "bindings": {
                "ws": {
                    "method": "GET",
                    "query": {
                        "type": "object",
                        "properties": {"since": {"type": "integer", "default": 0}},
                    },
                    "headers": {
                        "type": "object",
                        "properties": {"token": {"type": "string", "default": ""}},
                    },
                }
            },
        }
    }
    assert made["operations"] == {
        "socket_v1_chat_by_room_receive": {
            "action": "receive",
            "channel": {"$ref": channel},
            "messages": [{"$ref": f"{channel}/messages/receive_plain"}],
            "summary": "Talk in a room.",
        },
        "socket_v1_chat_by_room_send": {
            "action": "send",
            "channel": {"$ref": channel},
            "messages": [{"$ref": f"{channel}/messages/send_json"}],
            "summary": "Talk in a room.",
        },
    }
    assert list(made["components"]["schemas"]) == ["Said"]


def test_an_event_stream_is_a_channel_that_sends(project: Project) -> None:
    made = asyncapi_document(project(FILES), "v2")

    assert list(made["channels"]) == ["get_v2_news"]
    assert made["channels"]["get_v2_news"]["messages"]["event"] == {
        "contentType": "text/event-stream",
        "payload": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    assert made["operations"]["get_v2_news_send"]["bindings"] == {"http": {"method": "GET"}}


MESSAGES = """
from dataclasses import dataclass
import types
@dataclass
class Move: x: int
@dataclass
class Leave: why: str
Said = Move | Leave
here = types.SimpleNamespace(Move=Move)
"""
MOVE, LEAVE = ({"$ref": f"#/components/schemas/{name}"} for name in ("Move", "Leave"))


@pytest.mark.parametrize(
    ("code", "schema"),
    [
        ("[m async for m in websocket.iter_json(Move)]", MOVE),
        ("await websocket.receive_json(Move)", MOVE),
        ("await websocket.receive_json(model=Move)", MOVE),
        ("await websocket.receive_json(here.Move)", MOVE),
        ("await websocket.receive_json(Said)", {"anyOf": [MOVE, LEAVE]}),
        ("await websocket.receive_json(Move | Leave)", {"anyOf": [MOVE, LEAVE]}),
        ("await websocket.receive_json(list[Move])", {"type": "array", "items": MOVE}),
        ("await websocket.receive_json(dict[str, int])", None),
        (
            "await websocket.receive_json(Move); await websocket.receive_json(Leave)",
            {"anyOf": [MOVE, LEAVE]},
        ),
        ("await websocket.receive_json(Move); await websocket.receive_json()", {}),
        ("await websocket.receive_json(choose())", {}),
        ("await websocket.receive_json(Nowhere)", {}),
        ("await websocket.receive_json(Move if websocket.id else Leave)", {}),
        ("await websocket.receive_json(websocket.id)", {}),
        ("model = Move; await websocket.receive_json(model)", {}),
        ("await websocket.receive_json(3)", {}),
        ("await websocket.receive_json(None)", {}),
    ],
)
def test_the_model_that_a_message_is_read_as_is_its_schema(
    project: Project, code: str, schema: Any
) -> None:
    file = f"{MESSAGES}\nasync def handler(websocket):\n    {code}\n"
    made = asyncapi_document(project({"Api/v1/Chat/Socket.py": file}))
    found = made["channels"]["socket_v1_chat"]["messages"]["receive_json"]["payload"]

    if schema is None:
        schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert found == schema


@pytest.mark.parametrize(
    ("code", "receive", "send"),
    [
        ("await websocket.receive_json()", ["application/json"], None),
        ("await websocket.receive_bytes()", ["application/octet-stream"], None),
        ("await websocket.send_text('x')", None, ["text/plain"]),
        (
            "await websocket.send_bytes(await websocket.receive_text())",
            ["text/plain"],
            ["application/octet-stream"],
        ),
        ("await websocket.accept()", None, None),
    ],
)
def test_the_document_of_requests_says_it_beside_the_operations(
    document: Callable[..., Any], code: str, receive: list[str] | None, send: list[str] | None
) -> None:
    made = document(
        {
            "Api/v1/Chat/Socket.py": f"async def handler(websocket):\n    {code}\n",
            "Api/v1/Chat/Get.py": "async def handler(request): ...\n",
        }
    )
    item = made["paths"]["/v1/chat"]
    found = item["x-websocket"]

    assert list(item) == ["get", "x-websocket"]
    assert found["operationId"] == "socket_v1_chat"
    assert list(found.get("receive", ())) == (receive or [])
    assert list(found.get("send", ())) == (send or [])


def test_words_parameters_and_credentials_of_a_socket_are_said_there_too(
    document: Callable[..., Any],
) -> None:
    made = document(FILES)
    found = made["paths"]["/v1/chat/{room}"]["x-websocket"]

    assert found["summary"] == "Talk in a room."
    assert [parameter["name"] for parameter in found["parameters"]] == ["room", "since", "token"]
    assert found["security"] == [{"bearer": []}]
    assert found["send"] == {"application/json": SAID}
    assert made["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}


def test_without_sockets_and_streams_nothing_is_said(project: Project) -> None:
    made = asyncapi_document(project({"Api/v1/Get.py": "async def handler(request): ..."}))

    assert made["channels"] == made["operations"] == {}
    assert "components" not in made


def test_a_channel_of_a_deprecated_version_is_marked(project: Project) -> None:
    app = project({**FILES, "Api/v1/version.toml": "deprecated = true\nsunset = 2027-06-30"})
    channels = asyncapi_document(app)["channels"]
    chat, news = (
        next(each for each in channels.values() if each["address"].startswith(f"/v{number}"))
        for number in (1, 2)
    )
    assert (chat["x-deprecated"], chat["x-sunset"]) == (True, "2027-06-30")
    assert "x-deprecated" not in news
