"""Forms and files of one request and one response, through the whole application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, FileResponse, Request, Response, UnsupportedMediaType

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
RequestOf = Callable[..., Request]

FORM = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")]


def test_a_form_is_parsed_once_and_its_body_is_kept(request_of: RequestOf) -> None:
    async def main() -> None:
        request = request_of("POST", chunks=[b"a=1&b=", b"x&a=2"], headers=FORM)
        form = await request.form()
        assert form.multi_items() == [("a", "1"), ("b", "x"), ("a", "2")]
        assert await request.form() is form
        assert len(await request.files()) == 0
        assert await request.body() == b"a=1&b=x&a=2"

    asyncio.run(main())


def test_a_body_that_was_read_is_still_a_form(request_of: RequestOf) -> None:
    async def main() -> None:
        request = request_of("POST", chunks=[b"a=1"], headers=FORM)
        assert await request.body() == b"a=1"
        assert (await request.form())["a"] == "1"

    asyncio.run(main())


@pytest.mark.parametrize("read", ["form", "files"])
@pytest.mark.parametrize("headers", [[], [("content-type", "application/json")]])
def test_a_body_that_is_no_form_is_415_each_time(
    request_of: RequestOf, read: str, headers: list[tuple[str, str]]
) -> None:
    async def main() -> None:
        request = request_of("POST", chunks=[b"{}"], headers=headers)
        for _ in range(2):
            with pytest.raises(UnsupportedMediaType):
                await getattr(request, read)()

    asyncio.run(main())


def test_parts_of_what_is_not_multipart_are_415(request_of: RequestOf) -> None:
    async def main() -> None:
        request = request_of("POST", chunks=[b"a=1"], headers=FORM)
        with pytest.raises(UnsupportedMediaType):
            async for _ in request.parts():
                pass

    asyncio.run(main())


def test_the_limit_of_the_module_holds_for_forms(serving: Project, ask: Ask) -> None:
    app = serving(
        "max_body = 10\nasync def handler(request):\n    return dict(await request.form())\n",
        "Api/v1/X/Post.py",
    )

    assert ask(app, "POST", "/v1/x", chunks=[b"a=12345678"], headers=FORM).status == 200
    assert ask(app, "POST", "/v1/x", chunks=[b"a=123456789"], headers=FORM).status == 413
    assert ask(app, "POST", "/v1/x", chunks=[b"a=12345", b"6789"], headers=FORM).status == 413


def test_a_response_of_a_file_is_a_file_response(tmp_path: Any) -> None:
    ran: list[int] = []
    made = Response.file(
        tmp_path / "a.txt",
        203,
        headers={"x-a": "1"},
        filename="b.txt",
        media_type="text/x",
        disposition="attachment",
        background=lambda: ran.append(1),
    )

    assert isinstance(made, FileResponse)
    assert made.status == 203
    assert made.headers["x-a"] == "1"
    assert made.headers["content-type"].startswith("text/x")
    assert made.background is not None


@pytest.fixture
def downloads(serving: Project) -> Application:
    """An application that sends one file, in each way."""
    return serving(
        """
        from pathlib import Path

        FILE = Path(__file__).parents[3] / "files" / "report.txt"

        def handler(request):
            return Response.file(
                FILE,
                filename=request.query.get("name"),
                disposition=request.query.get("as"),
                background=lambda: None,
            )
        """
    )


@pytest.fixture
def report(downloads: Application) -> bytes:
    folder = downloads.root / "files"
    folder.mkdir()
    (folder / "report.txt").write_bytes(b"0123456789")
    return b"0123456789"


def test_a_file_is_sent_with_what_a_cache_needs(
    downloads: Application, report: bytes, ask: Ask
) -> None:
    answer = ask(downloads, "GET", "/v1/x")
    (tag,) = answer.fields("etag")

    assert (answer.status, answer.body) == (200, report)
    assert answer.fields("content-length") == ["10"]
    assert answer.fields("content-type") == ["text/plain; charset=utf-8"]
    again = ask(downloads, "GET", "/v1/x", headers=[("if-none-match", tag)])
    assert (again.status, again.body) == (304, b"")


def test_a_part_of_a_file_is_206_and_logged_so(
    downloads: Application, report: bytes, ask: Ask, lines: Lines
) -> None:
    answer = ask(downloads, "GET", "/v1/x", headers=[("range", "bytes=2-4")])

    assert (answer.status, answer.body) == (206, b"234")
    assert answer.fields("content-range") == ["bytes 2-4/10"]
    assert [text.split(" ")[2] for text in lines.texts() if text.startswith("GET")] == ["206"]


@pytest.mark.parametrize(
    "name", ['a"b.txt', "a\r\nx: 1.txt", "../../etc/passwd", "日本.txt", "a;b.txt", "\x00"]
)
def test_a_hostile_name_stays_inside_its_header(
    downloads: Application, report: bytes, ask: Ask, name: str
) -> None:
    from urllib.parse import quote

    answer = ask(downloads, "GET", f"/v1/x?as=attachment&name={quote(name)}")

    assert answer.status == 200
    (field,) = answer.fields("content-disposition")
    assert field.startswith("attachment; ")
    assert field.isprintable()
    assert "/" not in field
    assert [name for name, _ in answer.headers if name == "x"] == []


def test_a_file_that_is_not_there_is_no_leak_of_its_path(downloads: Application, ask: Ask) -> None:
    answer = ask(downloads, "GET", "/v1/x")

    assert answer.status in (404, 500)
    assert b"report" not in answer.body
