"""Forms that drip: what they take from others, on disk and in memory (S-42, S-143)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from facts import MIB, cost_of, eventually, spooled
from serving import Process
from wire import ServeOnSocket, Wire, statuses

TREE = {
    "Middleware/__init__.py": """
        from treefold.middleware import ProxyHeaders
        middlewares = [ProxyHeaders(["127.0.0.1"])]
        """,
    "Api/v1/Form/Post.py": """
        async def handler(request):
            files = await request.files()
            return {"size": sum(file.size for _, file in files.multi_items())}
        """,
}
FORM = "multipart/form-data; boundary=frontier"
FILE = b'--frontier\r\nContent-Disposition: form-data; name="file"; filename="f.bin"\r\n\r\n'
FIELD = b'--frontier\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"x" * 500_000 + b"\r\n"
END = b"\r\n--frontier--\r\n"
LENGTH = 31 * MIB


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server puts its temporary files."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture
def server(serve_on_socket: ServeOnSocket, disk: Path) -> Iterator[Process]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(disk))
        server = serve_on_socket(TREE)
    yield server
    server.stop()


def head(client: str | None, length: int = LENGTH) -> bytes:
    lines = ["POST /v1/form HTTP/1.1", "Host: localhost", f"Content-Type: {FORM}"]
    lines += [f"X-Forwarded-For: {client}"] if client else []
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


def drip(stack: ExitStack, server: Process, client: str | None, body: bytes) -> Wire:
    """Send a body without its last bytes."""
    wire = stack.enter_context(Wire(server))
    wire.send(head(client) + body)
    return wire


def whole(server: Process, client: str | None) -> int:
    body = FILE + b"x" * (20 * MIB) + END
    with Wire(server) as wire:
        wire.send(head(client, len(body)) + body)
        return wire.answer("POST").status


def test_s143_uploads_of_one_client_that_drip_leave_room_for_others(
    server: Process, disk: Path
) -> None:
    with ExitStack() as stack:
        for _ in range(9):
            drip(stack, server, "203.0.113.1", FILE + b"x" * (30 * MIB))
        assert eventually(lambda: spooled(server, disk) > 100 * MIB)
        assert whole(server, "203.0.113.2") == 200
        assert whole(server, "203.0.113.3") == 200
        assert eventually(lambda: spooled(server, disk) <= 128 * MIB)
    assert eventually(lambda: spooled(server, disk) == 0)
    assert whole(server, "203.0.113.1") == 200


def test_s143_the_slowest_upload_gives_way_where_the_address_is_not_known(
    server: Process, disk: Path
) -> None:
    with ExitStack() as stack:
        wires = [drip(stack, server, None, FILE + b"x" * (30 * MIB)) for _ in range(8)]
        assert eventually(lambda: spooled(server, disk) > 239 * MIB)
        assert eventually(lambda: whole(server, None) == 200)
        assert eventually(lambda: spooled(server, disk) <= 226 * MIB)
        for wire in wires:
            wire.send(b"x" * 20_000)
            wire.end_sending()
        assert [503] in [statuses(wire.rest()) for wire in wires]


def test_s143_the_text_of_forms_has_a_limit_for_all_together(server: Process) -> None:
    assert whole(server, None) == 200
    with cost_of(server) as cost, ExitStack() as stack:
        wires = [drip(stack, server, f"203.0.113.{n}", FIELD * 60) for n in range(15)]
        for wire in wires:
            wire.end_sending()
        answered = [statuses(wire.rest()) for wire in wires]
    assert answered.count([503]) == 13  # the two others were still arriving
    assert cost.memory < 160 * MIB
