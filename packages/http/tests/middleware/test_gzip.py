"""GZip: what a client takes, what is never compressed, streams piece by piece (S-50, S-51)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.middleware import GZip
from treefold_http.middleware._codings import choose_content_coding

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

TEXT = "a box of words until you open it " * 100
TREE = {
    "Services/texts.py": f"TEXT = {TEXT[:33]!r} * 100\n",
    "Api/v1/Text/Get.py": "from Services.texts import TEXT\n"
    "async def handler(request):\n    return TEXT\n",
    "Api/v1/Text/Head.py": "from Services.texts import TEXT\n"
    "async def handler(request):\n    return TEXT\n",
    "Api/v1/Json/Get.py": "from Services.texts import TEXT\n"
    "async def handler(request):\n    return {'text': TEXT}\n",
    "Api/v1/Small/Get.py": "async def handler(request):\n    return 'x' * 999\n",
    "Api/v1/Exact/Get.py": "async def handler(request):\n    return 'x' * 1000\n",
    "Api/v1/Large/Get.py": "async def handler(request):\n    return 'x' * 300_000\n",
    "Api/v1/Bytes/Get.py": "async def handler(request):\n    return b'x' * 5000\n",
    "Api/v1/Set/Get.py": "from Services.texts import TEXT\n"
    "async def handler(request):\n"
    "    return TEXT, int(request.query.get('status', '200')), dict(request.query)\n",
    "Api/v1/Crash/Get.py": "from treefold_http import HTTPError\n"
    "async def handler(request):\n    raise HTTPError(418, 'tea ' * 500)\n",
    "Api/v1/Stream/Get.py": """
        from treefold_http import StreamingResponse

        async def chunks():
            yield "one "
            yield "two " * 20_000
            yield "three"

        async def handler(request):
            return StreamingResponse(chunks(), headers={"Content-Length": "80009"},
                                     media_type="text/plain")
        """,
    "Api/v1/Events/Get.py": """
        from treefold_http import EventStream

        async def events():
            yield "x" * 5000

        async def handler(request):
            return EventStream(events())
        """,
    "Api/v1/File/Get.py": """
        from pathlib import Path
        from treefold_http import FileResponse

        async def handler(request):
            return FileResponse(Path(__file__).parents[3] / "Public" / "words.txt")
        """,
    "Public/words.txt": TEXT,
}
GZIP = ("accept-encoding", "gzip")


def application(project: Project, entries: str = "GZip(codings=['gzip'])") -> Application:
    code = f"""
from treefold_http.middleware import *
async def cookie(request, call_next):
    response = await call_next(request)
    if "cookie" in request.query:
        response.set_cookie("a", "b")
    return response
middlewares = [{entries}]
"""
    return project({**TREE, "Middleware/__init__.py": code})


@pytest.fixture
def app(project: Project) -> Application:
    return application(project)


def is_plain(answer: Answer, text: str = TEXT) -> bool:
    return answer.fields("content-encoding") == [] and answer.body == text.encode()


OFFERED = ("zstd", "br", "gzip")


@pytest.mark.parametrize(
    ("field", "coding"),
    [
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, br", "br"),
        ("gzip;q=1.0, br;q=0.9", "gzip"),
        ("gzip ; q=0.5 , br ; q = 0.4", "gzip"),
        ("*", "zstd"),
        ("*;q=0.1", "zstd"),
        ("zstd;q=0, *", "br"),
        ("gzip;q=0.001", "gzip"),
        ("gzip;q=0, *;q=1, br;q=0, zstd;q=0", None),
        ("", None),
        ("identity", None),
        ("gzip;q=0", None),
        ("gzip;q=0.000", None),
        ("identity;q=1, *;q=0", None),
        ("identity;q=1, gzip;q=0.5", None),
        ("identity;q=0.5, gzip;q=0.5", "gzip"),
        ("identity;q=0", None),
        ("identity;q=0, *;q=0", None),
        ("x-gzip", None),
        ("deflate", None),
        ("gzip;q=2", None),
        ("gzip;q=-1", None),
        ("gzip;q=nan", None),
        ("gzip;q=1e3", None),
        ("gzip;q=\u0661", None),
        ("gzip;q=", None),
        ("gzip;level=9", None),
        ("gzipx", None),
        ("gz ip", None),
        (",,;;,", None),
        ("gzip," * 200, None),
    ],
)
def test_s51_the_coding_that_a_client_likes_best(field: str, coding: str | None) -> None:
    assert choose_content_coding(field, OFFERED) == coding


@pytest.mark.parametrize("target", ["/v1/text", "/v1/json", "/v1/exact", "/v1/large"])
def test_s51_an_accepted_coding_is_used_and_said(app: Application, ask: Ask, target: str) -> None:
    plain = ask(app, "GET", target)
    answer = ask(app, "GET", target, headers=[GZIP])

    assert answer.fields("content-encoding") == ["gzip"]
    assert gzip.decompress(answer.body) == plain.body
    assert answer.fields("content-length") == [str(len(answer.body))]
    assert answer.fields("content-type") == plain.fields("content-type")
    assert answer.fields("vary") == plain.fields("vary") == ["Accept-Encoding"]
    assert plain.fields("content-encoding") == []


@pytest.mark.parametrize("field", ["gzip;q=0", "identity;q=1, *;q=0", "x-gzip", "br", None])
def test_s51_a_refused_coding_is_not_used_and_the_answer_varies(
    app: Application, ask: Ask, field: str | None
) -> None:
    answer = ask(app, "GET", "/v1/text", headers=[("accept-encoding", field)] if field else [])

    assert is_plain(answer)
    assert answer.fields("vary") == ["Accept-Encoding"]


def test_s51_repeated_fields_are_one_list(app: Application, ask: Ask) -> None:
    pair = [("accept-encoding", "gzip;q=0"), ("accept-encoding", "br")]

    assert is_plain(ask(app, "GET", "/v1/text", headers=pair))
    assert is_plain(ask(app, "GET", "/v1/text", headers=pair[::-1]))
    both = [GZIP, ("accept-encoding", "br;q=0.1")]
    assert ask(app, "GET", "/v1/text", headers=both).fields("content-encoding") == ["gzip"]


@pytest.mark.parametrize("target", ["/v1/small", "/v1/bytes", "/v1/none", "/v1/events"])
def test_d18_an_answer_that_gets_no_smaller_is_left_alone(
    app: Application, ask: Ask, target: str
) -> None:
    answer = ask(app, "GET", target, headers=[GZIP])

    assert (answer.fields("content-encoding"), answer.fields("vary")) == ([], [])


@pytest.mark.parametrize(
    "query",
    [
        "set-cookie=a%3Db",
        "cache-control=private",
        "cache-control=max-age%3D5, PRIVATE%3D%22x%22",
        "cache-control=no-transform",
        "content-encoding=br",
        "status=206&content-range=bytes%200-3299/3300",
    ],
)
def test_s50_an_answer_with_a_secret_is_never_compressed(
    app: Application, ask: Ask, query: str
) -> None:
    answer = ask(app, "GET", f"/v1/set?{query.replace(' ', '%20')}", headers=[GZIP])

    assert answer.body == TEXT.encode()
    assert answer.fields("content-length") == ["3300"]


@pytest.mark.parametrize("entries", ["cookie, GZip()", "GZip(), cookie"])
def test_s50_a_cookie_counts_wherever_it_is_set(project: Project, ask: Ask, entries: str) -> None:
    app = application(project, entries)

    assert is_plain(ask(app, "GET", "/v1/text?cookie", headers=[GZIP]))
    assert not is_plain(ask(app, "GET", "/v1/text", headers=[GZIP]))


def test_s50_a_field_for_every_answer_counts(project: Project, ask: Ask) -> None:
    app = application(project, "SecurityHeaders(more={'Cache-Control': 'private'}), GZip()")

    assert is_plain(ask(app, "GET", "/v1/text", headers=[GZIP]))


@pytest.mark.parametrize(("sent", "expected"), [('"tag"', 'W/"tag"'), ('W/"tag"', 'W/"tag"')])
def test_s51_the_entity_tag_of_compressed_bytes_is_weak(
    app: Application, ask: Ask, sent: str, expected: str
) -> None:
    target = f"/v1/set?etag={sent}&accept-ranges=bytes".replace('"', "%22")

    answer = ask(app, "GET", target, headers=[GZIP])
    assert (answer.fields("etag"), answer.fields("accept-ranges")) == ([expected], [])
    assert ask(app, "GET", target).fields("etag") == [sent]


def test_s51_head_has_no_body_and_varies(app: Application, ask: Ask) -> None:
    answer = ask(app, "HEAD", "/v1/text", headers=[GZIP])

    assert answer.body == b""
    assert (answer.fields("content-encoding"), answer.fields("vary")) == ([], ["Accept-Encoding"])


@pytest.mark.parametrize("status", [204, 304])
def test_s51_an_answer_without_a_body_stays_so(app: Application, ask: Ask, status: int) -> None:
    answer = ask(app, "GET", f"/v1/set?status={status}", headers=[GZIP])

    assert (answer.status, answer.body, answer.fields("content-encoding")) == (status, b"", [])


def test_errors_are_compressed_too(app: Application, ask: Ask) -> None:
    answer = ask(app, "GET", "/v1/crash", headers=[GZIP])

    assert (answer.status, answer.fields("content-encoding")) == (418, ["gzip"])
    assert b"tea tea" in gzip.decompress(answer.body)


def test_a_stream_is_flushed_with_each_piece(app: Application, ask: Ask) -> None:
    answer = ask(app, "GET", "/v1/stream", headers=[GZIP])
    reader = zlib.decompressobj(31)
    pieces = [reader.decompress(chunk) for chunk in answer.chunks]

    assert b"".join(pieces) == b"one " + b"two " * 20_000 + b"three"
    assert len(pieces) > 1
    assert all(pieces[:-1])
    assert reader.eof
    assert (answer.fields("content-length"), answer.complete) == ([], True)


def test_s51_event_streams_are_never_compressed(app: Application, ask: Ask) -> None:
    answer = ask(app, "GET", "/v1/events", headers=[GZIP])

    assert answer.body == b"data: " + b"x" * 5000 + b"\n\n"


def test_s51_a_file_is_compressed_whole_and_its_parts_are_byte_exact(
    app: Application, ask: Ask
) -> None:
    whole = ask(app, "GET", "/v1/file", headers=[GZIP])
    part = ask(app, "GET", "/v1/file", headers=[GZIP, ("range", "bytes=5-20")])
    tag = whole.fields("etag")[0]
    again = ask(app, "GET", "/v1/file", headers=[GZIP, ("if-none-match", tag)])
    resumed = ask(
        app, "GET", "/v1/file", headers=[GZIP, ("if-range", tag), ("range", "bytes=5-20")]
    )

    assert gzip.decompress(whole.body) == TEXT.encode()
    assert whole.fields("accept-ranges") == []
    assert (part.status, part.body) == (206, TEXT[5:21].encode())
    assert (again.status, again.body) == (304, b"")
    assert resumed.status == 200
    by_path = ask(app, "GET", "/v1/file", headers=[GZIP], more={"extensions": {}})
    assert by_path.fields("content-encoding") == ["gzip"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0}, "GZip level must be 1 to 9, got 0"),
        ({"level": 10}, "GZip level must be 1 to 9, got 10"),
        ({"codings": ["lzma"]}, "A coding of GZip must be one of .*gzip, got 'lzma'; install more"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GZip(**options)


def test_types_and_minimum_are_options(project: Project, ask: Ask) -> None:
    app = application(project, "GZip(minimum=10, types=['application/octet-stream'])")

    assert ask(app, "GET", "/v1/bytes", headers=[GZIP]).fields("content-encoding") == ["gzip"]
    assert ask(app, "GET", "/v1/text", headers=[GZIP]).fields("content-encoding") == []
