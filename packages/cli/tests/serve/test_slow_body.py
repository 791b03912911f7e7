"""A body that the server has refused as too slow is logged with the status of the server."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from uvicorn.server import ServerState

from treefold_http import Application
from treefold_server._connection_timeouts import ConnectionTimeouts
from treefold_server._server import ServerConfig

PARSERS = ["_h11_protocol:HardenedH11Protocol"]
if importlib.util.find_spec("httptools"):
    PARSERS.append("_http_protocol:HardenedHttpToolsProtocol")

HEAD = b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("slow", [True, False])
def test_r12_a_body_that_was_too_slow_is_logged_as_it_was_answered(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    parser: str,
    *,
    slow: bool,
) -> None:
    monkeypatch.setattr(ConnectionTimeouts, "BODY_TICK", 0.05)
    handler = tmp_path / "Api/v1/X/Post.py"
    handler.parent.mkdir(parents=True)
    handler.write_text("async def handler(request):\n    return len(await request.body())\n")
    app = Application(tmp_path)

    async def main() -> None:
        http: Any = f"treefold_server.{parser}"
        config = ServerConfig(app, http=http, lifespan="off", log_config=None)
        config.load()
        state = ServerState()
        protocol: Any = config.http_protocol_class
        make: Any = lambda: protocol(config=config, server_state=state, app_state={})  # noqa: E731
        server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
        async with server, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(HEAD + b"abc")
            if slow:
                assert (await reader.read()).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            else:
                while not state.tasks:  # noqa: ASYNC110 - the server tells nobody
                    await asyncio.sleep(0.001)
            writer.close()
            while "POST /v1/x" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        await app.lifespan.run_shutdown()

    caplog.set_level("INFO")
    asyncio.run(main())
    assert f"POST /v1/x {408 if slow else 499} " in caplog.text
    assert "Traceback" not in caplog.text
