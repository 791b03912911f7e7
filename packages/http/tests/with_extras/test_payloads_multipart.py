"""Multipart forms through the application: files as parameters, parts, and the payload logged."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Encode = Callable[..., bytes]
Post = Callable[..., "Answer"]

MULTIPART = [("content-type", "multipart/form-data; boundary=X-bound")]
POST = "Api/v1/X/Post.py"


@pytest.fixture
def post(serving: Project, ask: Ask, encode: Encode) -> Post:
    """Send parts to a handler of these lines."""

    def run(text: str, *parts: Any, chunks: list[bytes] | None = None, **options: Any) -> Answer:
        app = serving(f"from typing import Annotated\n{text}", POST, **options)
        app.boot()
        assert app.report.broken == ()
        body = chunks if chunks is not None else [encode(*parts)]
        return ask(app, "POST", "/v1/x", chunks=body, headers=MULTIPART)

    return run


def payload(lines: Lines) -> str:
    (text,) = [text for text in lines.texts() if text.startswith("POST")]
    return text.partition("payload=")[2]


# -- parameters

FILE = ('name="a"; filename="a.txt"', b"first", "Content-Type: text/plain")
SECOND = ('name="a"; filename="b.txt"', b"second")
TEXT = ('name="t"', b"5")
CHOSEN_NONE = ('name="a"; filename=""', b"", "Content-Type: application/octet-stream")

READ = """
async def read(file):
    return [file.filename, file.content_type, (await file.read()).decode()]
"""


@pytest.mark.parametrize(
    ("parameter", "result", "value"),
    [
        ("a: UploadFile", "await read(a)", ["a.txt", "text/plain", "first"]),
        ("a: UploadFile | None = None", "await read(a)", ["a.txt", "text/plain", "first"]),
        ("b: Annotated[UploadFile, File('a')]", "await read(b)", ["a.txt", "text/plain", "first"]),
        ("a: list[UploadFile]", "[f.filename for f in a]", ["a.txt", "b.txt"]),
        ("a: Annotated[list[UploadFile], File()]", "[f.filename for f in a]", ["a.txt", "b.txt"]),
        ("a: UploadFile, t: Annotated[int, Form()]", "[a.filename, t]", ["a.txt", 5]),
        ("t: Annotated[str, Form()]", "[t]", ["5"]),
    ],
)
def test_files_and_fields_are_parameters(
    post: Post, parameter: str, result: str, value: Any
) -> None:
    answer = post(
        f"{READ}\nasync def handler({parameter}):\n    return {result}\n", FILE, SECOND, TEXT
    )

    assert (answer.status, answer.json()) == (200, value)


@pytest.mark.parametrize(
    ("parameter", "parts", "loc"),
    [
        ("a: UploadFile", [TEXT], ["file", "a"]),
        ("a: UploadFile", [('name="a"', b"a field")], ["file", "a"]),
        ("a: list[UploadFile]", [TEXT], ["file", "a"]),
        ("a: UploadFile", [CHOSEN_NONE], ["file", "a"]),
        ("a: list[UploadFile]", [CHOSEN_NONE], ["file", "a"]),
        ("a: Annotated[str, Form()]", [FILE], ["form", "a"]),
    ],
)
def test_a_file_is_no_field_and_what_is_not_there_is_required(
    post: Post, parameter: str, parts: list[Any], loc: list[str]
) -> None:
    answer = post(f"async def handler({parameter}):\n    return 'no'\n", *parts)

    assert answer.status == 422
    assert answer.json()["errors"] == [{"loc": loc, "msg": "a is required", "type": "missing"}]


def test_no_file_chosen_is_the_default(post: Post) -> None:
    answer = post(
        "async def handler(a: UploadFile | None = None):\n    return [a is None]\n", CHOSEN_NONE
    )

    assert answer.json() == [True]


def test_form_and_files_are_two_views_of_one_form(post: Post) -> None:
    answer = post(
        """
async def handler(request):
    form, files = await request.form(), await request.files()
    same = await request.form() is form and await request.files() is files
    return [form.multi_items(), [name for name, _ in files.multi_items()], same]
""",
        TEXT,
        FILE,
        SECOND,
    )

    assert answer.json() == [[["t", "5"]], ["a", "a"], True]


def test_parts_arrive_one_after_the_other(post: Post, encode: Encode) -> None:
    body = encode(TEXT, FILE, SECOND)
    answer = post(
        """
async def handler(request):
    seen = []
    async for part in request.parts():
        seen.append([part.name, part.filename, (await part.read()).decode()])
    return seen
""",
        chunks=[body[n : n + 7] for n in range(0, len(body), 7)],
    )

    assert answer.json() == [
        ["t", None, "5"],
        ["a", "a.txt", "first"],
        ["a", "b.txt", "second"],
    ]


@pytest.mark.parametrize("take", ["await request.form()", "[p async for p in request.parts()]"])
def test_the_limit_of_the_module_holds_for_the_whole_form(post: Post, take: str) -> None:
    answer = post(f"max_body = 100\nasync def handler(request):\n    {take}\n", FILE, SECOND)

    assert answer.status == 413


@pytest.mark.parametrize("take", ["form", "files"])
def test_a_form_that_is_cut_off_is_400_and_leaves_no_file(
    post: Post, encode: Encode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: str
) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    body = encode(('name="a"; filename="a"', b"x" * 3 * 1024 * 1024), end=False)
    answer = post(
        f"async def handler(request):\n    await request.{take}()\n", chunks=[body[:-100]]
    )

    assert answer.status == 400
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("ending", ["return 'ok'", "raise ValueError", "raise NotFound"])
def test_a_large_file_is_removed_however_the_request_ends(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    post(
        f"async def handler(a: UploadFile):\n    assert len(await a.read()) == a.size\n"
        f"    {ending}\n",
        ('name="a"; filename="a"', b"x" * 3 * 1024 * 1024),
    )

    assert list(folder.iterdir()) == []


# -- the log line


def test_fields_are_masked_and_files_are_name_size_and_type(post: Post, lines: Lines) -> None:
    post(
        "async def handler(request):\n    await request.form()\n",
        ('name="user"', b"ada"),
        ('name="user"', b"bob"),
        ('name="password"', b"s3cret"),
        ('name="a"; filename="cv.pdf"', b"%PDF-s3cret", "Content-Type: application/pdf"),
        ('name="token"; filename="s3cret.txt"', b"s3cret"),
    )

    assert json.loads(payload(lines)) == {
        "user": ["ada", "bob"],
        "password": "***",
        "a": {"name": "cv.pdf", "size": 11, "type": "application/pdf"},
        "token": "***",
    }


def test_a_multipart_body_that_was_read_before_its_form_is_shown_too(
    post: Post, lines: Lines
) -> None:
    post(
        "async def handler(request):\n    await request.body()\n    await request.form()\n",
        TEXT,
        ('name="password"', b"s3cret"),
    )

    assert json.loads(payload(lines)) == {"t": "5", "password": "***"}


@pytest.mark.parametrize(
    "handler",
    [
        "async def handler(request): ...",
        "async def handler(request):\n    [p async for p in request.parts()]",
        "async def handler(request):\n    await request.body()",
    ],
)
def test_a_form_that_nobody_parsed_is_its_type_and_size(
    post: Post, encode: Encode, lines: Lines, handler: str
) -> None:
    parts = [TEXT, ('name="password"', b"s3cret")]
    post(f"{handler}\n", *parts)

    assert payload(lines) == f"<multipart/form-data {len(encode(*parts))}>"


def test_a_form_that_was_refused_is_its_type_and_size(post: Post, lines: Lines) -> None:
    post(
        "async def handler(request):\n    await request.form()\n",
        chunks=[b"--X-bound\r\ns3cret"],
    )

    assert payload(lines) == "<multipart/form-data 17>"


@pytest.mark.parametrize(
    "filename", ["a\x1b[2J.txt", 'a\\"b', "x" * 3000, "日本", "id=forged payload={}"]
)
def test_a_hostile_file_name_stays_inside_the_line(post: Post, lines: Lines, filename: str) -> None:
    post(
        "async def handler(request):\n    await request.form()\n",
        (f'name="a"; filename="{filename}"', b"x"),
    )
    text = payload(lines)

    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 4096


def test_fields_above_64_kib_are_not_described(post: Post, lines: Lines) -> None:
    answer = post(
        "async def handler(request):\n    await request.form()\n",
        ('name="a"', b"x" * 100_000),
        ('name="b"; filename="b"', b"x"),
    )

    assert answer.status == 204
    assert payload(lines).startswith("<multipart/form-data 100")


def test_a_large_file_is_described_like_a_small_one(post: Post, lines: Lines) -> None:
    post(
        "async def handler(request):\n    await request.form()\n",
        ('name="a"; filename="a.bin"', b"x" * 200_000),
    )

    assert json.loads(payload(lines)) == {"a": {"name": "a.bin", "size": 200_000, "type": ""}}
