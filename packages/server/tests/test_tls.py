"""TLS over real sockets: a client that does not end its handshake keeps no connection."""

from __future__ import annotations

import asyncio
import importlib.util
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from treefold_server._connection_timeouts import ConnectionTimeouts
from treefold_server._options import ServerOptions
from treefold_server._server import Server, build_server_config

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
if importlib.util.find_spec("uvloop"):  # an extra; the other suites always have it
    LOOPS["uvloop"] = importlib.import_module("uvloop").new_event_loop

CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 32


async def answer(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


async def read_to_the_end(port: int, sent: bytes) -> float:
    """Send bytes on a connection; return the seconds until the server has closed it."""
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begun = loop.time()
    writer.write(sent)
    assert await reader.read() == b""
    writer.close()
    return loop.time() - begun


@pytest.mark.parametrize("loop_name", LOOPS)
def test_a_handshake_takes_as_long_as_a_head(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loop_name: str
) -> None:
    monkeypatch.setattr(ConnectionTimeouts, "HEAD_SECONDS", 0.4)
    authority: Any = trustme.CA()
    issued = authority.issue_cert("localhost")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    options = ServerOptions(tls_certificate=str(certificate), tls_key=str(key), lifespan="off")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def main() -> None:
        server = Server(build_server_config(answer, options), on_start=lambda: None)
        server.config.host, server.config.port = "127.0.0.1", 0
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            assert not serving.done(), serving.exception()
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            async with asyncio.timeout(10):
                await use(port)
        finally:
            server.should_exit = True
            await serving

    async def use(port: int) -> None:
        seconds = await asyncio.gather(
            read_to_the_end(port, b""), read_to_the_end(port, CLIENT_HELLO)
        )
        assert [each for each in seconds if not 0.3 < each < 5] == []
        reader, writer = await asyncio.open_connection("localhost", port, ssl=trusting)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"\r\nok\r\n" in await reader.read()
        writer.close()

    loop = LOOPS[loop_name]()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
