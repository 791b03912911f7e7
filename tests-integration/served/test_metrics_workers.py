"""Metrics of a server with two workers: in the multi-process mode of the library they add up."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from facts import eventually
from serving import Process, write_tree
from socket_client import dial
from wire import Wire

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Slow/Get.py": """
        import asyncio, os

        async def handler(request):
            yield f"pid {os.getpid()};"
            await asyncio.Event().wait()
        """,
    "Api/v1/Stay/Ws.py": """
        import asyncio, os

        async def handler(websocket):
            await websocket.accept()
            await websocket.send_text(str(os.getpid()))
            await asyncio.Event().wait()
        """,
    "Middleware/__init__.py": """
        from treefold.middleware import Metrics

        middlewares = [Metrics()]
        """,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the library keeps the numbers."""
    made = tmp_path / "metrics"
    made.mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(made))
    return made


@pytest.fixture
def server(tmp_path: Path, folder: Path) -> Iterator[Process]:
    server = Process(
        write_tree(tmp_path / "project", TREE),
        "httptools",
        dev=False,
        default_version=None,
        workers=2,
    )
    try:
        server.wait_for(lambda lines: sum("booted in" in line for line in lines) == 2)
        yield server
    finally:
        server.stop()


def test_workers_add_up(server: Process) -> None:
    assert {server.get("/v1/ok").status for _ in range(40)} == {200}
    seen = [server.get("/metrics").text for _ in range(5)]
    line = r'^http_requests_total\{method="GET",route="/v1/ok",status="200"\} ([0-9.]+)$'
    assert [re.findall(line, text, re.MULTILINE) for text in seen] == [["40.0"]] * 5


def now_served(server: Process) -> list[str]:
    """The open sockets, and the requests in progress."""
    text = server.get("/metrics").text
    line = r"^(?:websockets_open|http_requests_in_progress) ([0-9.]+)$"
    return re.findall(line, text, re.MULTILINE)


def test_a_killed_worker_takes_its_sockets_and_requests_out_of_the_sum(
    server: Process, folder: Path
) -> None:
    request = b"GET /v1/slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Wire(server) as slow, dial(server, "/v1/stay") as socket:
        slow.send(request)
        received = b""
        while b";" not in received:
            received += slow.at_least(1)
        (first,) = re.findall(rb"pid ([0-9]+);", received)
        killed = {int(first), int(socket.recv(timeout=10))}
        assert sorted(now_served(server)) == ["1.0", "1.0"]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
    ended = "was ended by SIGKILL; another takes its place"
    server.wait_for(lambda lines: sum(ended in line for line in lines) == len(killed) or None)
    assert eventually(lambda: now_served(server) == ["0.0", "0.0"])
    left = {int(file.stem.rpartition("_")[2]) for file in folder.glob("gauge_live*.db")}
    assert left.isdisjoint(killed)
