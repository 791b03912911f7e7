"""What a request costs the process of a real server: bare and treefold behind uvicorn, in turns.

    python http_served.py bare|treefold ROOT      (started by `compare`; prints its port)

The client is plain sockets in this process; only the server's CPU time counts. Linux only: the time
is read from /proc.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import http_cases

Client = Callable[[int], None]
BARS = {"user": 0.75, "items": 0.50, "stream": 0.92, "upload": 0.22, "socket": 0.90}
_COUNT = {"user": 1000, "items": 1000, "stream": 150, "upload": 20, "socket": 1500}
_KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
_UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" + _KEY
_CORES = sorted(os.sched_getaffinity(0))
_SERVER_CORES, _CLIENT_CORES = _CORES[:1], _CORES[-1:]
"""A server that wanders between cores finds its caches cold, and so much of its time is theirs."""
_FRAME = b"\x81\x85\0\0\0\0hello"
_ECHO = b"\x81\x05hello"


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Answer constants on every path, echo on every socket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
    elif scope["type"] == "http" and scope["path"] == "/v1/stream":
        await http_cases.bare_stream(scope, receive, send)
    elif scope["type"] == "http":
        await http_cases.bare(scope, receive, send)


def serve(name: str, root: str) -> None:
    """Run one of the two behind uvicorn, on a free port that is printed."""
    import uvicorn

    app: Any = bare
    if name == "treefold":
        from treefold_http import Application

        os.environ["TREEFOLD_LOG_LEVEL"] = "CRITICAL"
        app = Application(root)
        app.boot()
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        app,
        http="httptools",
        loop="uvloop",
        ws="websockets-sansio",
        lifespan="off",
        log_level="critical",
        access_log=False,
        ws_per_message_deflate=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


class Server:
    """A server process and one connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = port

    def cpu(self) -> float:
        """Seconds that its threads have run."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def ask(self, request: bytes, end: bytes, count: int) -> None:
        """Send a request so many times, each once the answer before has ended."""
        for _ in range(count):
            self._socket.sendall(request)
            received = b""
            while not received.endswith(end):
                received += self._socket.recv(1 << 20)

    def echo(self, count: int) -> None:
        """Send so many messages over a socket of its own, each once the one before is back."""
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.sendall(b"GET /v1/socket HTTP/1.1\r\nHost: a\r\n" + _UPGRADE + b"\r\n")
            while not connection.recv(4096).endswith(b"\r\n\r\n"):
                pass
            for _ in range(count):
                connection.sendall(_FRAME)
                received = b""
                while len(received) < len(_ECHO):
                    received += connection.recv(64)

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(10)


def _request(method: bytes, path: bytes, body: bytes = b"", kind: bytes = b"") -> bytes:
    head = method + b" " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n"
    if body:
        head += b"Content-Type: " + kind + b"\r\nContent-Length: %d\r\n" % len(body)
    return head + b"\r\n" + body


def _work(name: str, server: Server, count: int) -> None:
    form = b"multipart/form-data; boundary=" + http_cases.BOUNDARY
    if name == "user":
        server.ask(_request(b"GET", b"/v1/user/42"), b"}", count)
    elif name == "items":
        request = _request(b"POST", b"/v1/items", http_cases.BODY, b"application/json")
        server.ask(request, b"}", count)
    elif name == "stream":
        server.ask(_request(b"GET", b"/v1/stream"), b"0\r\n\r\n", count)
    elif name == "upload":
        server.ask(_request(b"POST", b"/v1/upload", http_cases.UPLOAD, form), b"}", count)
    else:
        server.echo(count)


@contextmanager
def _running(name: str, root: Path) -> Generator[Server]:
    command = [sys.executable, __file__, name, str(root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.sched_setaffinity(process.pid, _SERVER_CORES)
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    with process.stdout as said:
        server = Server(process, int(said.readline()))
    try:
        yield server
    finally:
        server.close()


def compare(root: Path, *, rounds: int) -> dict[str, tuple[float, float]]:
    """Give, for each kind of request, what bare takes as a part of what treefold takes.

    Medians: of the ratio of a batch of ours to those of bare before and after it, and of the
    microseconds of CPU that a request takes the server of bare.
    """
    found: dict[str, tuple[float, float]] = {}
    with ExitStack() as stack:
        os.sched_setaffinity(0, _CLIENT_CORES)
        bare, ours = (stack.enter_context(_running(n, root)) for n in ("bare", "treefold"))
        for name in BARS:
            _spent(name, ours)
            _spent(name, bare)
            before, parts, bases = _spent(name, bare), list[float](), list[float]()
            for _ in range(rounds):
                taken, after = _spent(name, ours), _spent(name, bare)
                parts.append((before + after) / 2 / taken)
                bases.append(after)
                before = after
            found[name] = median(parts), median(bases)
    return found


def _spent(name: str, server: Server) -> float:
    before = server.cpu()
    _work(name, server, _COUNT[name])
    return (server.cpu() - before) / _COUNT[name] * 1e6


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
