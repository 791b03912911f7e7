"""Security rows of files: what a folder gives out, and what a `Range` may cost (S-47, S-48).

The folder lies beside secrets and is full of traps: links that lead out, hidden names, things that
are no files. Whatever is refused is answered like what is not there.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from facts import MIB, cost_of
from serving import Process, Serve, Served
from wire import ServeOnSocket, Wire

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/File/Get.py": """
        from pathlib import Path
        from treefold_http import FileResponse

        async def handler(request):
            return FileResponse(Path(__file__).parents[3] / "public" / "large.bin")
        """,
    "extensions.py": """
        from treefold_http import StaticFiles

        class Files:
            def setup(self, app):
                app.mount("/static", StaticFiles("public"))

        extensions = [Files()]
        """,
    "public/page.html": "<html></html>",
    "public/deep/page.txt": "deep",
    "public/large.bin": "",
    "public/.env": "S3cr3t",
    "public/.git/config": "S3cr3t",
    "public/deep/.hidden/page.txt": "S3cr3t",
    "public-secret/page.txt": "S3cr3t",
    "secret.txt": "S3cr3t",
}
SIZE = 300_000


def prepared(served: Served) -> None:
    """Put beside the files of the tree what a tree of text cannot hold."""
    public = served.root / "public"
    (public / "large.bin").write_bytes(bytes(range(256)) * (SIZE // 256) + b"x" * (SIZE % 256))
    (public / "inside.txt").symlink_to(public / "deep" / "page.txt")
    (public / "outside.txt").symlink_to(served.root / "secret.txt")
    (public / "sibling").symlink_to(served.root / "public-secret")
    (public / "up").symlink_to("..")
    (public / "loop").symlink_to("loop")
    (public / "system").symlink_to("/etc")
    os.mkfifo(public / "pipe")
    (public / "with\nnewline.txt").write_text("S3cr3t")
    (public / "a\\b.txt").write_text("S3cr3t")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(public)  # the path of a socket may be no longer than 107 bytes
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    served = serve(TREE)
    prepared(served)
    return served


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    served = serve_on_socket(TREE)
    prepared(served)
    return served


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("/static/page.html", "<html></html>"),
        ("/static/deep/page.txt", "deep"),
        ("/static//deep//page.txt", "deep"),
        ("/static/%64eep/page.txt", "deep"),
        ("/static/inside.txt", "deep"),
    ],
)
def test_s47_a_file_of_the_folder_is_served(app: Served, target: str, text: str) -> None:
    assert app.get(target).text == text


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "../public-secret/page.txt",
        "..%2fpublic-secret/page.txt",
        "%2e%2e/secret.txt",
        "%2e%2e%2fsecret.txt",
        ".%2e/secret.txt",
        "%252e%252e/secret.txt",
        "..%5csecret.txt",
        "..\\secret.txt",
        "deep/../../secret.txt",
        "deep/..%2f..%2fsecret.txt",
        "deep/../page.html",
        "./page.html",
        "page.html/.",
        "page.html/..",
        "%2fetc%2fpasswd",
        "/etc/passwd",
        "//etc/passwd",
        "%2f%2fetc/passwd",
        "C:/secret.txt",
        "page.html::$DATA",
        "page.html%00.txt",
        "%00",
        "page.html%0a",
        "page.html.",
        "page.html%20",
        "PAGE.html",
        "deep%2fpage.txt",
        "%c0%ae%c0%ae/secret.txt",
        "%ff",
        "outside.txt",
        "sibling/page.txt",
        "up/secret.txt",
        "system/passwd",
        "loop",
        "pipe",
        "socket",
        ".env",
        ".git/config",
        "deep/.hidden/page.txt",
        "",
        "deep",
        "deep/",
        "with%0anewline.txt",
        "a%5cb.txt",
        "n" * 3000,
        "d/" * 2000,
        "none.txt",
        "~root",
        "page.html~",
    ],
    ids=lambda path: path[:40],
)
def test_s47_nothing_else_is(app: Served, path: str) -> None:
    answer = app.get(f"/static/{path}")
    assert answer.status in (400, 404)
    assert b"S3cr3t" not in answer.body
    assert b"root:" not in answer.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_s47_a_file_is_only_read(app: Served, method: str) -> None:
    answer = app.request(method, "/static/page.html")
    assert (answer.status, answer.value("allow")) == (405, "GET, HEAD")


def test_s47_a_prefix_sibling_is_not_mounted(app: Served) -> None:
    for target in ("/static-secret/page.txt", "/staticpage.html", "/public/page.html"):
        assert app.get(target).status == 404


@pytest.mark.parametrize("target", ["/static/large.bin", "/v1/file"])
@pytest.mark.parametrize(
    "ranges",
    [
        ",".join(f"{n}-{n}" for n in range(0, 1000, 2)),
        ",".join(["0-"] * 100),
        ",".join(["0-"] * 8),
        ",".join(["0-", "1-", "2-", "-300000"]),
        "0-" + "9" * 3000,
        "9" * 3000 + "-",
        "-0",
        ",",
        "0-0," * 1000,
        "0-1,3-4,6-7,9-10,12-13,15-16,18-19,21-22",
        "5-1",
        "a-b",
        "--1",
    ],
    ids=lambda ranges: ranges[:20],
)
def test_s48_no_range_makes_an_answer_longer_than_the_file(
    app: Served, target: str, ranges: str
) -> None:
    answer = app.get(target, ("Range", f"bytes={ranges}"))
    assert answer.status in (200, 206, 416)
    assert len(answer.body) <= SIZE + 4096
    if answer.status == 200:
        assert len(answer.body) == SIZE


@pytest.mark.parametrize("ranges", ["0-0," * 7000, "0-," * 9000, " " * 28_000, "-" * 28_000])
def test_s48_no_range_is_slow(server: Process, ranges: str) -> None:
    head = f"HEAD /static/large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes={ranges}\r\n\r\n"
    with cost_of(server) as cost, Wire(server) as wire:
        for _ in range(10):
            wire.send(head.encode())
            assert wire.answer("HEAD").status in (200, 206, 416)
    assert cost.cpu < 0.2


def test_s48_a_slow_reader_of_a_file_fills_no_memory(server: Process) -> None:
    (server.root / "public" / "huge.bin").write_bytes(b"x" * 64 * MIB)
    with cost_of(server) as cost, Wire(server, window=4096) as wire:
        wire.send(b"GET /static/huge.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert wire.at_least(1000).startswith(b"HTTP/1.1 200 ")
        for _ in range(50):
            assert server.get("/v1/ok").status == 200
    assert cost.memory < 8 * MIB
