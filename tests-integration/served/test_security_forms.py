"""Security rows of forms and uploads against a real server (S-36 to S-42).

What the parser refuses is tabled byte for byte beside it, in the tests of the package. Here is what
only a server shows: processor time, memory, open files, the disk, and clients that leave.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from facts import MIB, cost_of, descriptors, eventually, spooled
from http_messages import Answer
from serving import Process
from wire import ServeOnSocket, Wire

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Form/Post.py": """
        async def handler(request):
            fields, files = await request.form(), await request.files()
            return {
                "fields": [[name, len(value)] for name, value in fields.multi_items()],
                "files": [[name, file.size] for name, file in files.multi_items()],
            }
        """,
    "Api/v1/Large/Post.py": """
        max_body = 256 * 1024 * 1024

        async def handler(request):
            files = await request.files()
            return [file.size for _, file in files.multi_items()]
        """,
    "Api/v1/Fields/Post.py": """
        async def handler(request):
            return list((await request.form()).multi_items())
        """,
    "Api/v1/Crash/Post.py": """
        async def handler(request):
            await request.files()
            raise LookupError("with files open")
        """,
    "Api/v1/Save/Post.py": """
        from pathlib import Path

        here = Path(__file__).parents[3] / "uploads"
        here.mkdir(exist_ok=True)

        async def handler(request):
            file = (await request.files())["file"]
            saved = await file.save(here)
            return {"name": saved.name, "inside": saved.parent == here}
        """,
    "Api/v1/Hold/Post.py": """
        import asyncio

        released = asyncio.Event()

        async def handler(request):
            await request.files()
            await released.wait()
        """,
    "Api/v1/Release/Post.py": """
        from ..Hold.Post import released

        async def handler(request):
            released.set()
            released.clear()  # those that wait go on, the next ones wait again
        """,
}
FORM = "multipart/form-data; boundary=frontier"
FIELD = b'--frontier\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
FILE = b'--frontier\r\nContent-Disposition: form-data; name="file"; filename="f.bin"\r\n\r\n'
END = b"\r\n--frontier--\r\n"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server puts its temporary files."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket, disk: Path) -> Iterator[Process]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(disk))
        server = serve_on_socket(TREE)
    assert upload(server, "/v1/form", FILE + b"x" * 2 * MIB + END).status == 200  # threads, imports
    yield server
    assert eventually(lambda: is_clean(server, disk))


def is_clean(server: Process, disk: Path) -> bool:
    return not os.listdir(disk) and spooled(server, disk) == 0


def upload(server: Process, target: str, body: bytes, media: str = FORM) -> Answer:
    return server.post(target, body, media)


def head(target: str, length: int) -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: localhost", f"Content-Type: {FORM}"]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        pytest.param((FIELD + b"\r\n") * 20_000 + END, (400, 413), id="20,000 parts"),
        pytest.param((FIELD + b"\r\n") * 1_001 + END, (400, 413), id="1,001 parts"),
        pytest.param((FILE + b"x\r\n") * 101 + END, (400, 413), id="101 files"),
        pytest.param(
            FIELD[:-2] + b"X-Long: " + b"x" * MIB + b"\r\n\r\n" + END, (400,), id="1 MiB of header"
        ),
        pytest.param(FIELD[:-2] + b"X: y\r\n" * 20_000 + b"\r\n" + END, (400,), id="20,000 fields"),
        pytest.param(b"x" * MIB + b"\r\n" + FIELD + END, (400,), id="1 MiB before"),
        pytest.param(FIELD + END + b"x" * MIB, (400,), id="1 MiB behind"),
        pytest.param(FIELD + b"x" * 524_289 + END, (413,), id="a field of 512 KiB and one"),
        pytest.param(FILE + b"x" * 33 * MIB + END, (413,), id="33 MiB in one file"),
        pytest.param(b"--frontier" + b" " * 4 * MIB + b"\r\n" + END, (400,), id="4 MiB of blanks"),
        pytest.param(
            (FILE.replace(b"f.bin", b"n" * 7000) + b"\r\n") * 100 + END, (200, 400), id="long names"
        ),
    ],
)
def test_s36_a_form_above_a_limit_costs_little(
    server: Process, disk: Path, body: bytes, statuses: tuple[int, ...]
) -> None:
    with cost_of(server) as cost:
        answer = upload(server, "/v1/form", body)
    assert answer.status in statuses
    assert cost.cpu < 0.75
    assert cost.memory < 16 * MIB
    assert server.line(answer)
    assert eventually(lambda: is_clean(server, disk))


@pytest.mark.parametrize("boundary", ["b" * 300, "b" * 71, "", '"b;c"x', "\xff", "b\x7f"])
def test_s36_s37_a_boundary_that_is_none_is_400(server: Process, boundary: str) -> None:
    media = f"multipart/form-data; boundary={boundary}"
    assert upload(server, "/v1/form", b"--x--", media).status == 400


@pytest.mark.parametrize(
    ("body", "media"),
    [
        pytest.param(FILE + b"x" * 2 * MIB, FORM, id="no boundary at the end"),
        pytest.param(FILE + b"x" * 2 * MIB + END[:-4], FORM, id="half a boundary at the end"),
        pytest.param(FIELD[:-3], FORM, id="half a header at the end"),
        pytest.param(b"", FORM, id="nothing"),
        pytest.param(b"garbage" * 1000, FORM, id="garbage"),
        pytest.param(FIELD.replace(b'; name="a"', b"") + END, FORM, id="no name"),
        pytest.param(
            FILE
            + b"x" * 2 * MIB
            + b"\r\n--frontier\r\nContent-Disposition: form-data\r\n\r\n"
            + END,
            FORM,
            id="no name after a file",
        ),
        pytest.param(
            FIELD[:-2] + b"Content-Type: text/plain; charset=zzz\r\n\r\nx" + END, FORM, id="charset"
        ),
        pytest.param(
            FIELD[:-2] + b"Content-Length: -1\r\n\r\nx" + END, FORM, id="length of a part"
        ),
        pytest.param(FIELD + b"\xff" + END, FORM, id="field is no UTF-8"),
        pytest.param(FIELD.replace(b'"a"', b'"\xff"') + END, FORM, id="name is no UTF-8"),
        pytest.param(FIELD + END, "multipart/form-data", id="no boundary named"),
    ],
)
def test_s37_a_malformed_form_is_400_and_leaves_nothing(
    server: Process, disk: Path, body: bytes, media: str
) -> None:
    assert upload(server, "/v1/form", body, media).status == 400
    assert eventually(lambda: is_clean(server, disk))


# seconds of processor time; work that grows with the square of the body takes minutes
LIGHT, HEAVY = 0.5, 5.0
TRAPS = [
    pytest.param(FILE + b"\r" + b"x" * 10 * MIB + END, 200, LIGHT, id="CR, then 10 MiB"),
    pytest.param(FILE + b"\r\n" * 5 * MIB + END, 200, HEAVY, id="10 MiB of line ends"),
    pytest.param(FILE + b"\r" * 10 * MIB + END, 200, HEAVY, id="10 MiB of CR"),
    pytest.param(FILE + b"\r\n-" * 3 * MIB + END, 200, HEAVY, id="9 MiB of half boundaries"),
    pytest.param(FILE + b"-" * 10 * MIB + END, 200, LIGHT, id="10 MiB of dashes"),
    pytest.param(
        FILE[:-2] + b"Content-Transfer-Encoding: base64\r\n\r\n" + b" " * 10 * MIB + END,
        200,
        LIGHT,
        id="base64 of blanks",
    ),
    pytest.param(FILE + b"\r\n--frontieR" * 800_000 + END, 200, HEAVY, id="nearly the boundary"),
    pytest.param((b"--frontier\r\nX\r\n\r\n") * 100_000 + END, 400, LIGHT, id="100,000 bad parts"),
    pytest.param(
        (b"--frontier\r\n\r\n") * 100_000 + END, 400, LIGHT, id="100,000 parts without a header"
    ),
    pytest.param(b"--frontier\r\n" * 100_000 + END, 400, LIGHT, id="100,000 boundaries"),
]


@pytest.mark.parametrize(("body", "status", "limit"), TRAPS)
def test_s38_no_form_is_slow_and_each_is_one_line(
    server: Process, body: bytes, status: int, limit: float
) -> None:
    with cost_of(server) as cost:
        answer = upload(server, "/v1/form", body)
    assert answer.status == status
    assert cost.cpu < limit
    assert cost.memory < 32 * MIB
    assert len(server.block(answer).splitlines()) == 1


def test_s39_a_hundred_thousand_fields_are_refused_at_little_cost(server: Process) -> None:
    media = "application/x-www-form-urlencoded"
    with cost_of(server) as cost:
        assert upload(server, "/v1/fields", b"a=1&" * 100_000, media).status in (400, 413)
    assert cost.cpu < 0.25


def test_s39_only_an_ampersand_separates_fields(server: Process) -> None:
    media = "application/x-www-form-urlencoded"
    answer = upload(server, "/v1/fields", b"a=1;b=2&c=3", media)
    assert answer.json() == [["a", "1;b=2"], ["c", "3"]]


@pytest.mark.parametrize(
    "filename",
    [
        b"../../outside",
        b"..\\..\\outside",
        b"/etc/outside",
        b"C:\\outside",
        b"//host/share/outside",
        b"CON",
        b"con.txt",
        b"aux .txt",
        b".htaccess",
        b"..",
        b".",
        b"...",
        b"-rf",
        b"a:stream",
        b"trailing. ",
        b"x" * 3000,
        "gpj.\u202eexe".encode(),
        b"%2e%2e%2foutside",
    ],
    ids=lambda name: name[:20].decode(errors="replace").replace("\u202e", "RLO"),
)
def test_s40_an_upload_is_saved_inside_the_directory_under_a_harmless_name(
    server: Process, filename: bytes
) -> None:
    folder = server.root / "uploads"
    known = set(os.listdir(folder)) if folder.is_dir() else set[str]()
    around = set(os.listdir(server.root.parent))
    body = FILE.replace(b"f.bin", filename.replace(b"\\", b"\\\\")) + b"data" + END
    answer = upload(server, "/v1/save", body)
    assert answer.status == 200
    (new,) = set(os.listdir(folder)) - known
    assert answer.json() == {"name": new, "inside": True}
    assert new[0] not in ".-"
    assert new.split(".")[0].strip().lower() not in ("con", "aux")
    assert len(new.encode()) <= 200
    assert set(os.listdir(server.root.parent)) == around
    (folder / new).unlink()


def test_s40_an_extended_file_name_means_nothing(server: Process) -> None:
    body = FILE.replace(b'filename="f.bin"', b"filename*=UTF-8''..%2foutside; filename=\"f.bin\"")
    assert upload(server, "/v1/save", body + b"data" + END).json()["name"] == "f.bin"


@pytest.mark.parametrize("filename", [b"a\x00.png", b"a\nb", b"a\rb", b"a\x1bb"])
def test_s40_a_control_character_in_a_file_name_is_400(server: Process, filename: bytes) -> None:
    body = FILE.replace(b"f.bin", filename) + b"data" + END
    assert upload(server, "/v1/save", body).status == 400


def test_s41_a_spooled_file_is_private_and_without_a_name(server: Process, disk: Path) -> None:
    body = FILE + b"x" * 4 * MIB
    with Wire(server) as wire:
        wire.send(head("/v1/form", len(body) + 9) + body)
        assert eventually(lambda: spooled(server, disk) >= 3 * MIB)
        assert os.listdir(disk) == []
        (mode,) = {file.st_mode for file in open_files(server, disk)}
        assert stat.S_IMODE(mode) & 0o077 == 0
    assert eventually(lambda: is_clean(server, disk))


def open_files(server: Process, folder: Path) -> Iterator[os.stat_result]:
    for name in os.listdir(f"/proc/{server.pid}/fd"):
        path = f"/proc/{server.pid}/fd/{name}"
        if os.readlink(path).startswith(f"{folder}/"):
            yield os.stat(path)


def aborted(server: Process, times: int) -> None:
    """Leave uploads half way, eight at a time, and wait until the server has noticed them all."""
    body = FILE + b"x" * 2 * MIB
    before = descriptors(server)

    def leave(_: int) -> None:
        with Wire(server) as wire:
            wire.send(head("/v1/form", 2 * len(body)) + body)
        assert eventually(lambda: descriptors(server) < before + 16)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(leave, range(times)))
    assert server.get("/v1/ok").status == 200  # connections are accepted in their order


@pytest.mark.parametrize("times", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_s41_uploads_that_break_off_leave_neither_files_nor_descriptors(
    server: Process, disk: Path, times: int
) -> None:
    aborted(server, 30)
    assert eventually(lambda: is_clean(server, disk))
    before = descriptors(server)
    with cost_of(server) as cost:
        aborted(server, times)
        assert eventually(lambda: is_clean(server, disk) and descriptors(server) <= before)
    assert cost.memory < 128 * MIB  # a MiB kept of each of the thousand would be a thousand


def test_s41_a_handler_that_fails_leaves_nothing(server: Process, disk: Path) -> None:
    assert upload(server, "/v1/crash", FILE + b"x" * 2 * MIB + END).status == 500
    assert eventually(lambda: is_clean(server, disk))


@pytest.mark.parametrize("size", [30 * MIB, pytest.param(200 * MIB, marks=pytest.mark.long)])
def test_s41_other_requests_are_answered_while_an_upload_goes_to_disk(
    server: Process, size: int
) -> None:
    waits: list[float] = []
    with cost_of(server) as cost, Wire(server) as upload_wire, Wire(server) as other_wire:
        upload_wire.send(head("/v1/large", len(FILE) + size + len(END)) + FILE)
        for _ in range(size // MIB):
            upload_wire.send(b"x" * MIB)
            started = time.monotonic()
            other_wire.send(b"GET /v1/ok HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert other_wire.answer().status == 200
            waits.append(time.monotonic() - started)
        upload_wire.send(END)
        assert upload_wire.answer("POST").json() == [size]
    assert max(waits) < 10
    assert cost.memory < 16 * MIB


@pytest.mark.parametrize("uploads", [9, pytest.param(50, marks=pytest.mark.long)])
def test_s42_uploads_share_the_disk_and_the_late_ones_are_503(
    server: Process, disk: Path, uploads: int
) -> None:
    body = FILE + b"x" * 31 * MIB + END
    fits = 256 // 31
    # What the test before has sent may take its room a moment longer than its answer.
    assert eventually(lambda: is_clean(server, disk))
    with ExitStack() as stack:
        stack.callback(server.post, "/v1/release", b"")  # a server that holds any does not end
        wires = [stack.enter_context(Wire(server)) for _ in range(uploads)]
        early, late = wires[:fits], wires[fits:]
        for wire in early:
            wire.send(head("/v1/hold", len(body)) + body)
        # What the kernel still has of the early ones may be more than the late ones must not take.
        assert eventually(lambda: spooled(server, disk) >= fits * 31 * MIB)
        for wire in late:
            wire.send(head("/v1/hold", len(body)) + body)
        refused = [wire.answer("POST") for wire in late]
        assert [answer.status for answer in refused] == [503] * (uploads - fits)
        assert all(answer.value("retry-after") for answer in refused)
        assert spooled(server, disk) <= 256 * MIB
        assert server.post("/v1/release", b"").status == 204
        assert [wire.answer("POST").status for wire in early] == [204] * fits
    assert eventually(lambda: is_clean(server, disk))
    assert upload(server, "/v1/form", FILE + b"x" * 2 * MIB + END).status == 200
