"""The setting `root_path` over real sockets: direct, behind proxies, under plain uvicorn.

The proxy is a small one of this module; `hatch run nginx` puts nginx in its place.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from serving import Lines, write_tree
from websockets.sync.client import connect

SHOW = "async def handler(request):\n    return [str(request.url), request.root_path]\n"
CHAT = """
    async def handler(websocket):
        await websocket.accept()
        await websocket.send_json([websocket.path, websocket.root_path])
    """
HOOKS = """
    from treefold_http import StaticFiles

    async def mount(app):
        app.mount("/static", StaticFiles("web", index="index.html"))

    on_startup = [mount]
    """
NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location /api/ {{
            proxy_pass http://127.0.0.1:{upstream}{slash};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $http_connection;
        }}
    }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def running(words: list[str], root: Path, pattern: str) -> Generator[str]:
    """Run a server until the end of the block; give what the pattern finds in its output."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
    environment = plain | {"TREEFOLD_APP_DIR": str(root), "TREEFOLD_DOCS": "true"}
    if words[-1] == "setting":
        words, environment = words[:-1], environment | {"TREEFOLD_ROOT_PATH": "/api"}
    with subprocess.Popen(
        words, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        lines = Lines(process.stdout)
        try:
            yield lines.wait_for(lambda seen: next(filter(None, map(found(pattern), seen)), None))
        finally:
            process.terminate()
            process.wait(30)
            lines.close()


def found(pattern: str) -> Callable[[str], str | None]:
    return lambda line: match[1] if (match := re.search(pattern, line)) else None


@contextmanager
def small_proxy(upstream: int, *, strips: bool) -> Generator[int]:
    """Pass connections on, one request each, with or without `/api`."""

    def serve(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", upstream)) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            assert head.split(b" ", 2)[1].startswith(b"/api/")
            server.sendall(head.replace(b" /api/", b" /", 1) if strips else head)
            threading.Thread(target=copy, args=(client, server), daemon=True).start()
            copy(server, client)

    def copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)  # to close it would not do: another thread reads it
        except OSError:
            return

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


@contextmanager
def nginx(upstream: int, folder: Path, *, strips: bool) -> Generator[int]:
    port = free_port()
    slash = "/" if strips else ""
    text = NGINX.format(folder=folder, port=port, upstream=upstream, slash=slash)
    (folder / "nginx.conf").write_text(text)
    words = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until_open(port, process)
            yield port
        finally:
            process.terminate()


def wait_until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            continue
    raise AssertionError("nginx did not start")


def get(port: int, path: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Connection": "close"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers.get("location", ""), body


def check(port: int, path: str) -> None:
    """Ask for a route, a document, a page, a redirect and a socket below a path."""
    address = f"http://127.0.0.1:{port}/api/v1/show"
    assert json.loads(get(port, f"{path}/v1/show")[2]) == [address, "/api"]
    assert json.loads(get(port, f"{path}/openapi.json")[2])["servers"] == [{"url": "/api"}]
    assert get(port, f"{path}/docs/")[0] == 200
    assert get(port, f"{path}/static/guide")[:2] == (307, "./guide/")
    assert get(port, f"{path}/static/guide/")[2] == b"guide"
    with connect(f"ws://127.0.0.1:{port}{path}/v1/chat") as client:
        assert json.loads(client.recv()) == ["/api/v1/chat", "/api"]


TREEFOLD = [sys.executable, "-m", "treefold", "serve", "--port", "0", "--root-path", "/api"]
UVICORN = [sys.executable, "-m", "uvicorn", "--factory", "treefold.asgi:create_app", "--port", "0"]
SERVERS = {
    "serve": (TREEFOLD, "serving on http://127.0.0.1:([0-9]+)"),
    "h11": ([*UVICORN, "--http", "h11", "setting"], "running on http://127.0.0.1:([0-9]+)"),
    "httptools": (
        [*UVICORN, "--root-path", "/api", "--http", "httptools", "setting"],
        "running on http://127.0.0.1:([0-9]+)",
    ),
}


@pytest.mark.parametrize("server", SERVERS)
def test_a_prefix_is_cut_direct_and_behind_both_kinds_of_proxy(tmp_path: Path, server: str) -> None:
    tree = {"Api/v1/Show/Get.py": SHOW, "Api/v1/Chat/Socket.py": CHAT, "hooks.py": HOOKS}
    root = write_tree(tmp_path / "shop", {**tree, "web/guide/index.html": "guide"})
    words, pattern = SERVERS[server]
    with running(words, root, pattern) as text:
        port = int(text)
        for path in ("/api", ""):
            check(port, path)
        assert get(port, "/api/api/v1/show")[0] == 404
        for strips in (True, False):
            if os.environ.get("TREEFOLD_TEST_PROXY") == "nginx":
                proxy = nginx(port, tmp_path, strips=strips)
            else:
                proxy = small_proxy(port, strips=strips)
            with proxy as public:
                check(public, "/api")
