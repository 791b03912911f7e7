"""A WebSocket server that speaks what the tests of clients expect, on a free port."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager

from websockets.sync.server import ServerConnection, serve


def answer(socket: ServerConnection) -> None:
    """Echo messages with the path of the handshake; `close` and `fail` end it."""
    assert socket.request is not None
    path = socket.request.path
    if path.startswith("/v1/plain"):
        for message in socket:
            socket.send(message)
        return
    socket.send(json.dumps({"path": path, "trace": socket.request.headers.get("X-Trace")}))
    for message in socket:
        if isinstance(message, bytes):
            socket.send(message)
            continue
        value = json.loads(message)
        if value == "close":
            return
        if value == "fail":
            socket.close(4001, "no room")
            return
        socket.send(json.dumps({"echo": value}))


@contextmanager
def serve_sockets() -> Generator[str]:
    """Serve until the end of the block; yield the address, as that of an HTTP service."""
    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()
