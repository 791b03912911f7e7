"""Lines of a plain uvicorn beside ours: their targets are masked as well (S-76, S-80, S-81)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from serving import write_tree
from uvicorn.server import ServerState

from treefold_http import Application

TREE = {
    "Api/v1/Reset/[token]/Get.py": "async def handler(request): return {}",
    "Api/v1/Echo/Ws.py": "async def handler(websocket): await websocket.accept()",
}
SOCKET = (
    b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PLAIN = b"Host: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture
def written() -> Iterator[list[str]]:
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, names = Kept(), ("uvicorn.error", "uvicorn.access")
    for name in names:
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(logging.INFO)
    yield lines
    for name in names:
        logging.getLogger(name).removeHandler(handler)
        logging.getLogger(name).setLevel(logging.NOTSET)


async def ask(app: Application, http: Any, request: bytes) -> bytes:
    config = uvicorn.Config(app, http=http, lifespan="off", log_config=None)
    config.load()
    state, protocol = ServerState(), config.http_protocol_class
    server = await asyncio.get_running_loop().create_server(
        lambda: protocol(config=config, server_state=state, app_state={}),  # type: ignore[call-arg]
        *("127.0.0.1", 0),
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await asyncio.gather(*state.tasks, return_exceptions=True)
    return answer


@pytest.mark.parametrize("http", ["h11", "httptools"])
@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (b"GET /v1/echo?token=S3cret&a=1 HTTP/1.1\r\n" + SOCKET, "/v1/echo?token=***&a=1"),
        (b"GET /v1/none?token=S3cret HTTP/1.1\r\n" + SOCKET, "/v1/none?token=***"),
        (b"GET /v1/reset/S3cret?pin=1&b=2 HTTP/1.1\r\n" + PLAIN, "/v1/reset/***?pin=***&b=2"),
        (b"GET /v1/reset/S3cret/more HTTP/1.1\r\n" + PLAIN, "/v1/reset/***/more"),
    ],
)
def test_s76_s80_s81_a_line_of_uvicorn_shows_no_secret(
    tmp_path: Path, written: list[str], http: str, request_: bytes, line: str
) -> None:
    app = Application(write_tree(tmp_path, TREE))
    asyncio.run(ask(app, http, request_))

    (shown,) = [each for each in written if " - " in each]
    assert line in shown
    assert "S3cret" not in "".join(written)
