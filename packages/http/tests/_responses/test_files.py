"""A file as an answer: fields, conditions, ranges, HEAD, hostile inputs, every way to end early."""

from __future__ import annotations

import asyncio
import contextlib
import email.parser
import email.policy
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from treefold_http import Application, Request
from treefold_http._headers.dates import format_http_date
from treefold_http._responses.files import CHUNK, FileResponse
from treefold_http._runtime.threads import LIMIT, run_in_disk_thread

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines, Message

T = TypeVar("T")

WAIT = 20.0
CONTENT = bytes(range(256)) * 4
MODIFIED = 1_700_000_000
Fields = Sequence[tuple[str, str]]


def run(body: Coroutine[Any, Any, T]) -> T:
    """Run a test in a loop of its own; what never ends fails."""

    async def bounded() -> T:
        async with asyncio.timeout(WAIT):
            return await body

    return asyncio.run(bounded())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    made = Application(tmp_path)
    yield made
    made.threads.shutdown()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.bin"
    path.write_bytes(CONTENT)
    os.utime(path, (MODIFIED, MODIFIED))
    return path


Get = Callable[..., "Answer"]


@pytest.fixture
def get(app: Application, exchange: type[Exchange]) -> Get:
    """Send a response to a request of its own and give what arrived."""

    def send(
        response: FileResponse, *, method: str = "GET", headers: Fields = (), **options: Any
    ) -> Answer:
        async def main() -> Answer:
            here = exchange(method, "/v1/x", headers=headers, **options)
            request = Request(here.scope, here.receive, app, "id-1")
            async with asyncio.timeout(WAIT):
                await response.send(request, here.send, common=[(b"x-common", b"1")])
            return here.answer

        return run(main())

    return send


def value(answer: Answer, name: str) -> str:
    (found,) = answer.fields(name)
    return found


def test_a_file_is_sent_whole_with_its_validators(get: Get, file: Path) -> None:
    answer = get(FileResponse(file, headers={"X-A": "1"}))

    assert answer.status == 200
    assert answer.body == CONTENT
    assert answer.complete
    assert answer.headers == [
        ("x-a", "1"),
        ("content-type", "application/octet-stream"),
        ("etag", f'"{MODIFIED * 10**9:x}-400"'),
        ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"),
        ("accept-ranges", "bytes"),
        ("content-length", "1024"),
        ("x-common", "1"),
    ]


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_a_file_of_any_size_is_sent_in_chunks_and_closed(
    get: Get, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(os.urandom(size))
    before = open_files()

    answer = get(FileResponse(path))

    assert answer.body == path.read_bytes()
    assert value(answer, "content-length") == str(size)
    assert answer.complete
    assert max(len(chunk) for chunk in answer.chunks) <= CHUNK
    assert open_files() == before


def test_a_change_of_size_or_time_changes_the_tag(get: Get, file: Path) -> None:
    def tag() -> str:
        return value(get(FileResponse(file)), "etag")

    first = tag()
    assert tag() == first
    os.utime(file, ns=(0, MODIFIED * 10**9 + 1))
    second = tag()
    file.write_bytes(CONTENT + b"x")
    os.utime(file, ns=(0, MODIFIED * 10**9 + 1))
    assert len({first, second, tag()}) == 3


def test_the_authors_validators_take_the_place_of_ours(get: Get, file: Path) -> None:
    day = "Sun, 06 Nov 1994 08:49:37 GMT"

    def response() -> FileResponse:
        return FileResponse(file, headers={"ETag": '"v1"', "Last-Modified": day})

    answer = get(response())
    assert value(answer, "etag") == '"v1"'
    assert value(answer, "last-modified") == day
    assert get(response(), headers=[("if-none-match", '"v1"')]).status == 304
    assert get(response(), headers=[("if-modified-since", day)]).status == 304


def test_a_last_modified_in_the_future_is_now(get: Get, file: Path) -> None:
    os.utime(file, (2**33, 2**33))
    before = int(time.time())
    shown = value(get(FileResponse(file)), "last-modified")
    assert shown in {format_http_date(second) for second in range(before, before + 30)}


@pytest.mark.parametrize(
    "name", ["Content-Length", "Content-Range", "Transfer-Encoding", "Accept-Ranges"]
)
def test_fields_of_the_framing_are_ours(get: Get, file: Path, name: str) -> None:
    answer = get(FileResponse(file, headers={name: "7"}))
    assert "7" not in [text for _, text in answer.headers]
    assert value(answer, "content-length") == "1024"
    assert value(answer, "accept-ranges") == "bytes"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "application/octet-stream"),
        ({"filename": "a.html"}, "text/html; charset=utf-8"),
        ({"media_type": "image/png"}, "image/png"),
        ({"headers": {"Content-Type": "image/gif"}}, "image/gif"),
        ({"media_type": "image/png", "headers": {"Content-Type": "image/gif"}}, "image/png"),
    ],
)
def test_the_media_type_is_given_or_read_off_the_name(
    get: Get, file: Path, options: dict[str, Any], kind: str
) -> None:
    assert value(get(FileResponse(file, **options)), "content-type") == kind


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, []),
        ({"filename": "a.txt"}, ['attachment; filename="a.txt"']),
        ({"filename": "a.txt", "disposition": "inline"}, ['inline; filename="a.txt"']),
        ({"disposition": "attachment"}, ["attachment"]),
        (
            {"filename": 'a".bat;x="\r\n'},
            ["attachment; filename=\"a_.bat_x____\"; filename*=UTF-8''a%22.bat%3Bx%3D%22__"],
        ),
    ],
)
def test_a_file_is_saved_under_one_safe_name(
    get: Get, file: Path, options: dict[str, Any], field: list[str]
) -> None:
    assert get(FileResponse(file, **options)).fields("content-disposition") == field


@pytest.mark.parametrize("status", [204, 205, 206, 304])
def test_a_status_without_a_whole_body_is_refused(file: Path, status: int) -> None:
    expected = (
        f"^FileResponse sends a whole file and cannot have the status {status};"
        " leave the status out, ranges and conditions set it$"
    )
    with pytest.raises(ValueError, match=expected):
        FileResponse(file, status)


def test_a_relative_path_starts_at_the_working_directory(
    get: Get, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    response = FileResponse(file.name)
    monkeypatch.chdir("/")
    assert get(response).body == CONTENT


# Conditions


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_copy_that_is_current_is_answered_304_without_what_describes_it(
    get: Get, file: Path, method: str
) -> None:
    headers = {"Cache-Control": "max-age=60", "Content-Language": "en", "Vary": "Accept"}

    def response() -> FileResponse:
        return FileResponse(file, headers=headers, filename="a.txt")

    tag = value(get(response()), "etag")
    answer = get(response(), method=method, headers=[("if-none-match", tag)])

    assert (answer.status, answer.body, answer.complete) == (304, b"", True)
    assert answer.headers == [
        ("cache-control", "max-age=60"),
        ("vary", "Accept"),
        ("etag", tag),
        ("x-common", "1"),
    ]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([("if-modified-since", format_http_date(MODIFIED))], 304),
        ([("if-modified-since", format_http_date(MODIFIED - 1))], 200),
        ([("if-none-match", '"other"')], 200),
        ([("if-match", "*")], 200),
        ([("if-match", '"other"')], 412),
        ([("if-unmodified-since", format_http_date(MODIFIED - 1))], 412),
        ([("if-unmodified-since", format_http_date(MODIFIED))], 200),
        ([("range", "bytes=0-1"), ("if-range", format_http_date(MODIFIED))], 206),
        ([("range", "bytes=0-1"), ("if-range", '"other"')], 200),
        ([("range", "bytes=0-1"), ("if-match", '"other"')], 412),
    ],
)
def test_conditions_decide_the_status(get: Get, file: Path, fields: Fields, status: int) -> None:
    response = FileResponse(file)
    answer = get(response, headers=fields)
    assert (answer.status, response.status) == (status, 200)
    assert answer.complete


def test_a_failed_condition_is_a_problem_document_that_keeps_what_middleware_set(
    get: Get, file: Path
) -> None:
    response = FileResponse(file, headers={"Cache-Control": "max-age=60"}, filename="a.txt")
    response.headers["access-control-allow-origin"] = "https://a.example"

    answer = get(response, headers=[("if-match", '"other"')])

    assert answer.json()["status"] == answer.status == 412
    assert answer.json()["detail"] == "The file is not the one that the request is meant for"
    assert value(answer, "content-type") == "application/problem+json"
    assert value(answer, "access-control-allow-origin") == "https://a.example"
    assert value(answer, "x-common") == "1"
    for name in ("cache-control", "content-disposition", "etag", "last-modified", "accept-ranges"):
        assert answer.fields(name) == []


@pytest.mark.parametrize(
    ("method", "status"), [("POST", 200), ("PUT", 201), ("GET", 404), ("GET", 503), ("DELETE", 200)]
)
def test_another_method_or_status_is_sent_whole_whatever_is_asked(
    get: Get, file: Path, method: str, status: int
) -> None:
    fields = [("if-none-match", "*"), ("if-match", '"x"'), ("range", "bytes=0-1")]
    answer = get(FileResponse(file, status), method=method, headers=fields)
    assert (answer.status, answer.body) == (status, CONTENT)


def test_a_response_that_is_sent_again_starts_anew(get: Get, file: Path) -> None:
    response = FileResponse(file)
    assert get(response, headers=[("if-none-match", "*")]).status == 304
    assert get(response, headers=[("range", "bytes=0-0")]).status == 206
    os.utime(file, (MODIFIED + 1, MODIFIED + 1))
    answer = get(response)
    assert (answer.status, answer.body) == (200, CONTENT)
    assert value(answer, "last-modified") == format_http_date(MODIFIED + 1)


# Ranges


@pytest.mark.parametrize(
    ("field", "content_range", "body"),
    [
        ("bytes=0-0", "bytes 0-0/1024", CONTENT[:1]),
        ("bytes=10-19", "bytes 10-19/1024", CONTENT[10:20]),
        ("bytes=1000-", "bytes 1000-1023/1024", CONTENT[1000:]),
        ("bytes=-4", "bytes 1020-1023/1024", CONTENT[-4:]),
        ("bytes=0-9999", "bytes 0-1023/1024", CONTENT),
        ("bytes=0-9,5-14", "bytes 0-14/1024", CONTENT[:15]),
        ("bytes=0-9,5000-", "bytes 0-9/1024", CONTENT[:10]),
    ],
)
def test_one_range_is_sent_alone(
    get: Get, file: Path, field: str, content_range: str, body: bytes
) -> None:
    answer = get(FileResponse(file, media_type="image/png"), headers=[("range", field)])
    assert (answer.status, answer.body) == (206, body)
    assert value(answer, "content-range") == content_range
    assert value(answer, "content-length") == str(len(body))
    assert value(answer, "content-type") == "image/png"


def parts_of(answer: Answer) -> list[tuple[str, str, bytes]]:
    """Split a multipart body with the parser of the standard library."""
    head = f"Content-Type: {value(answer, 'content-type')}\r\n\r\n".encode()
    parser = email.parser.BytesParser(policy=email.policy.HTTP)
    parsed = parser.parsebytes(head + answer.body)
    assert not parsed.defects
    boundary = str(parsed.get_boundary())
    raw = answer.body.split(f"--{boundary}".encode())
    bodies = [part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for part in raw[1:-1]]
    parts = list(parsed.iter_parts())
    assert len(parts) == len(bodies)
    return [
        (str(part["content-type"]), str(part["content-range"]), body)
        for part, body in zip(parts, bodies, strict=True)
    ]


def test_several_ranges_are_parts_with_a_random_boundary(get: Get, file: Path) -> None:
    fields = [("range", "bytes=1000-,0-1,20-29")]
    response = FileResponse(file, media_type="image/png")
    answer = get(response, headers=fields)

    assert answer.status == 206
    assert parts_of(answer) == [
        ("image/png", "bytes 1000-1023/1024", CONTENT[1000:]),
        ("image/png", "bytes 0-1/1024", CONTENT[:2]),
        ("image/png", "bytes 20-29/1024", CONTENT[20:30]),
    ]
    assert value(answer, "content-length") == str(len(answer.body))
    assert answer.fields("content-range") == []
    assert re.fullmatch(
        "multipart/byteranges; boundary=[0-9a-f]{32}", value(answer, "content-type")
    )
    again = get(FileResponse(file), headers=fields)
    assert value(again, "content-type") != value(answer, "content-type")


def test_long_parts_are_read_in_chunks(get: Get, tmp_path: Path) -> None:
    path = tmp_path / "long"
    content = os.urandom(4 * CHUNK)
    path.write_bytes(content)
    end = len(content) - 1
    fields = [("range", f"bytes=0-{CHUNK + 9},{2 * CHUNK}-{end}")]

    answer = get(FileResponse(path), headers=fields)

    bodies = [body for _, _, body in parts_of(answer)]
    assert bodies == [content[: CHUNK + 10], content[2 * CHUNK :]]
    assert max(len(chunk) for chunk in answer.chunks) <= CHUNK
    assert value(answer, "content-length") == str(len(answer.body))


def test_a_range_behind_the_end_is_answered_416_with_the_length(get: Get, file: Path) -> None:
    answer = get(FileResponse(file), headers=[("range", "bytes=1024-")])
    assert answer.json()["status"] == answer.status == 416
    assert answer.json()["detail"] == "The file has 1024 bytes, and none of those asked for"
    assert value(answer, "content-range") == "bytes */1024"


def test_a_range_of_an_empty_file_is_ignored(get: Get, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    answer = get(FileResponse(path), headers=[("range", "bytes=0-")])
    assert (answer.status, answer.body, answer.complete) == (200, b"", True)


@pytest.mark.parametrize(
    "field",
    [
        "bytes=" + ",".join(f"{n}-{n}" for n in range(0, 18, 2)),
        "bytes=" + "0-," * 100,
        "bytes=" + "0-1," * 5000,
        "bytes=5-4",
        "items=0-1",
        "",
    ],
)
def test_a_range_that_is_not_served_is_ignored(get: Get, file: Path, field: str) -> None:
    answer = get(FileResponse(file), headers=[("range", field)])
    assert (answer.status, answer.body) == (200, CONTENT)


spec = st.one_of(
    st.tuples(st.integers(0, 1100), st.integers(0, 1100)).map(lambda pair: "{}-{}".format(*pair)),
    st.integers(0, 1100).map("-{}".format),
    st.integers(0, 1100).map("{}-".format),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(spec, min_size=1, max_size=10))
def test_no_ranges_make_the_body_longer_than_the_file_and_the_part_heads(
    get: Get, file: Path, specs: list[str]
) -> None:
    answer = get(FileResponse(file), headers=[("range", "bytes=" + ",".join(specs))])
    assert answer.status in (200, 206, 416)
    assert value(answer, "content-length") == str(len(answer.body))
    assert len(answer.body) <= len(CONTENT) + 8 * 200
    if value(answer, "content-type").startswith("multipart/"):
        for _, where, body in parts_of(answer):
            start, stop = (int(number) for number in where[6:].partition("/")[0].split("-"))
            assert body == CONTENT[start : stop + 1]


# HEAD


@pytest.mark.parametrize("fields", [[], [("range", "bytes=0-1")], [("if-none-match", '"x"')]])
def test_head_has_the_fields_of_get_and_no_body(get: Get, file: Path, fields: Fields) -> None:
    head = get(FileResponse(file), method="HEAD", headers=fields)
    assert head.headers == get(FileResponse(file)).headers
    assert (head.status, head.body, head.complete) == (200, b"", True)


# Files that cannot be sent


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo"])
def test_a_file_that_is_no_file_is_an_error_of_the_program(
    get: Get, app: Application, exchange: type[Exchange], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    before = open_files()

    async def main() -> None:
        here = exchange("GET", "/v1/x")
        request = Request(here.scope, here.receive, app, "id-1")
        response = FileResponse(path)
        async with asyncio.timeout(WAIT):
            await response.send(request, here.send, common=[])
        assert here.answer.json()["status"] == here.answer.status == request.sent_status == 500
        assert str(tmp_path) not in here.answer.body.decode()
        assert isinstance(request.error, OSError)

    run(main())
    assert open_files() == before


def test_a_file_that_becomes_shorter_while_it_is_sent_cuts_the_answer(
    app: Application, exchange: type[Exchange], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(4 * CHUNK))
    before = open_files()

    async def main() -> None:
        here = exchange("GET", "/v1/x")
        request = Request(here.scope, here.receive, app, "id-1")

        async def send(message: Message) -> None:
            if len(here.answer.messages) == 2:
                os.truncate(path, CHUNK)
            await here.send(message)

        with pytest.raises(OSError, match=r"became shorter while it was sent$"):
            await FileResponse(path).send(request, send, common=[])
        assert not here.answer.complete
        assert here.answer.body == bytes(2 * CHUNK)

    run(main())
    assert open_files() == before


def test_a_file_that_grows_is_sent_as_long_as_it_was(
    app: Application, exchange: type[Exchange], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(2 * CHUNK))

    async def main() -> None:
        here = exchange("GET", "/v1/x")
        request = Request(here.scope, here.receive, app, "id-1")

        async def send(message: Message) -> None:
            with path.open("ab") as more:
                more.write(b"more")
            await here.send(message)

        await FileResponse(path).send(request, send, common=[])
        assert here.answer.complete
        assert len(here.answer.body) == 2 * CHUNK

    run(main())


# Ends before the end


def test_a_client_that_leaves_stops_the_reading_and_closes_the_file(
    app: Application, exchange: type[Exchange], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(100 * CHUNK))
    before = open_files()

    async def main() -> None:
        here = exchange("GET", "/v1/x")
        request = Request(here.scope, here.receive, app, "id-1")

        async def send(message: Message) -> None:
            await here.send(message)
            if len(here.answer.messages) == 3:
                here.gone.set()
                await asyncio.Event().wait()

        async with asyncio.timeout(WAIT):
            await FileResponse(path).send(request, send, common=[])
        assert not here.answer.complete
        assert len(here.answer.messages) == 3
        assert len(asyncio.all_tasks()) == 1
        assert open_files() <= before + 3  # the loop's own

    run(main())
    assert open_files() == before


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_server_that_says_that_the_client_left_closes_the_file(
    app: Application, exchange: type[Exchange], tmp_path: Path, at: int
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(3 * CHUNK))
    before = open_files()

    async def main() -> None:
        here = exchange("GET", "/v1/x")
        request = Request(here.scope, here.receive, app, "id-1")

        async def send(message: Message) -> None:
            if len(here.answer.messages) == at:
                raise ConnectionResetError
            await here.send(message)

        with contextlib.suppress(ConnectionResetError):
            await FileResponse(path).send(request, send, common=[])
        assert len(here.answer.messages) == at

    run(main())
    assert open_files() == before


def test_a_cancelled_request_closes_a_file_that_is_still_being_opened(
    app: Application, exchange: type[Exchange], file: Path
) -> None:
    before = open_files()
    free = threading.Event()

    async def main() -> None:
        # Every disk thread is taken, so the opening waits in line while it is cancelled.
        blocked = [asyncio.ensure_future(run_in_disk_thread(free.wait, WAIT)) for _ in range(LIMIT)]
        await asyncio.sleep(0)
        here = exchange("GET", "/v1/x")
        request = Request(here.scope, here.receive, app, "id-1")
        sending = asyncio.ensure_future(FileResponse(file).send(request, here.send, common=[]))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.sleep(0)
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.gather(*blocked)
        await asyncio.gather(*(run_in_disk_thread(int) for _ in range(LIMIT)))
        assert here.answer.messages == []

    run(main())
    assert open_files() == before


def test_a_slow_client_holds_no_more_than_one_chunk(
    app: Application, exchange: type[Exchange], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(10 * CHUNK))

    async def main() -> None:
        here = exchange("GET", "/v1/x")
        request = Request(here.scope, here.receive, app, "id-1")
        gate, given, offered = asyncio.Semaphore(0), asyncio.Semaphore(0), list[int]()

        async def send(message: Message) -> None:
            offered.append(len(message.get("body", b"")))
            given.release()
            await gate.acquire()
            await here.send(message)

        sending = asyncio.ensure_future(FileResponse(path).send(request, send, common=[]))
        for turn in range(1, 13):
            await given.acquire()
            await run_in_disk_thread(int)  # a read ahead would have come first
            assert len(offered) == turn
            gate.release()
        await sending
        assert here.answer.complete
        assert max(offered) == CHUNK

    run(main())


# Servers that send files themselves


class Pathsend:
    """A server with the extension: it opens the path of the message by itself."""

    def __init__(self, app: Application, exchange: Exchange) -> None:
        exchange.scope["extensions"] = {"http.response.pathsend": {}}
        self.request = Request(exchange.scope, exchange.receive, app, "id-1")
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self.messages.append(message)


@pytest.mark.parametrize(
    ("method", "fields", "sent"),
    [
        ("GET", [], "http.response.pathsend"),
        ("POST", [("range", "bytes=0-1")], "http.response.pathsend"),
        ("GET", [("range", "bytes=0-1")], "http.response.body"),
        ("GET", [("if-none-match", "*")], "http.response.body"),
        ("HEAD", [], "http.response.body"),
    ],
)
def test_a_server_that_sends_files_is_given_the_path_of_a_whole_one(
    app: Application, exchange: type[Exchange], file: Path, method: str, fields: Fields, sent: str
) -> None:
    async def main() -> None:
        server = Pathsend(app, exchange(method, "/v1/x", headers=fields))
        await FileResponse(file).send(server.request, server.send, common=[])
        start, last = server.messages
        assert start["type"] == "http.response.start"
        assert last["type"] == sent
        if sent == "http.response.pathsend":
            assert last == {"type": sent, "path": str(file)}
            assert (b"content-length", b"1024") in start["headers"]

    before = open_files()
    run(main())
    assert open_files() == before


# In an application


def test_a_handler_answers_with_a_file_and_a_missing_one_is_logged_with_its_traceback(
    project: Callable[..., Application], ask: Callable[..., Answer], lines: Lines
) -> None:
    app = project(
        {
            "Api/v1/Get.py": """
                from treefold_http._responses.files import FileResponse
                def handler(request):
                    return FileResponse(request.app.root / request.query["name"], filename="ü.txt")
                """,
            "there.txt": "here",
        }
    )
    answer = ask(app, "GET", "/v1?name=there.txt")
    assert (answer.status, answer.body) == (200, b"here")
    assert answer.fields("x-content-type-options") == ["nosniff"]

    assert ask(app, "GET", "/v1?name=missing.txt").status == 500
    assert [type(error) for error in lines.errors()] == [FileNotFoundError]
