"""Static files: what is served, and the long list of what is not (S-47, S-122, D-22)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from treefold_http import Application, BootError, HTTPError, NotFound, Request
from treefold_http._responses.static import StaticFiles, has_exact_names, means_file_absent

if TYPE_CHECKING:
    from conftest import Answer, Exchange

WAIT = 20.0


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    """An application with a public folder, a secret beside it, and things that are no files."""
    public = tmp_path / "public"
    served = ("app.js", "docs/index.html", "docs/deep/a b.txt", "Read.TXT")
    # Each of the others is a file, so that only a rule keeps it from being served.
    others = (".env", ".git/config", "...", "app.js.", "app.js ", "C:", "app.js::$DATA", "docs\\x")
    for name in (*served, *others):
        path = public / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for name in ("public-secret/x.txt", "outside.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    (public / "link-in").symlink_to("docs/index.html")
    (public / "link-out").symlink_to("../outside.txt")
    (public / "link-absolute").symlink_to(tmp_path / "outside.txt")
    (public / "folder-out").symlink_to("../public-secret", target_is_directory=True)
    (public / "link-hidden").symlink_to(".env")
    (public / "link-loop").symlink_to("link-loop")
    (public / "link-nowhere").symlink_to("missing")
    (public / "up").symlink_to("..", target_is_directory=True)
    os.mkfifo(public / "pipe")
    made = Application(tmp_path)
    yield made
    made.threads.shutdown()


Get = Callable[..., "Answer"]


@pytest.fixture
def get(app: Application, exchange: type[Exchange]) -> Get:
    """Ask a mount for a path below it, as the router splits and decodes it."""

    def send(
        target: str, *, static: StaticFiles | None = None, method: str = "GET", **options: Any
    ) -> Answer:
        async def main() -> Answer:
            here = exchange(method, f"/static{target}", **options)
            request = Request(here.scope, here.receive, app, "id-1")
            path = target.partition("?")[0]
            segments = [unquote(part, errors="strict") for part in path.split("/") if part]
            async with asyncio.timeout(WAIT):
                try:
                    response = await (static or StaticFiles("public")).response(segments, request)
                except HTTPError as error:
                    response = await app.render(error, request)
                await response.send(request, here.send, common=[])
            return here.answer

        return asyncio.run(main())

    return send


def refused(answer: Answer) -> bool:
    """A 404 that says what every other 404 says."""
    return answer.status == 404 and answer.json()["detail"] == "There is nothing at this path"


@pytest.mark.parametrize(
    ("target", "body", "kind"),
    [
        ("/app.js", "app.js", "text/javascript; charset=utf-8"),
        ("/docs/index.html", "docs/index.html", "text/html; charset=utf-8"),
        ("//docs///index.html", "docs/index.html", "text/html; charset=utf-8"),
        ("/docs/deep/a%20b.txt", "docs/deep/a b.txt", "text/plain; charset=utf-8"),
        ("/%61pp.js", "app.js", "text/javascript; charset=utf-8"),
        ("/Read.TXT", "Read.TXT", "text/plain; charset=utf-8"),
        ("/link-in", "docs/index.html", "text/html; charset=utf-8"),
    ],
)
def test_regular_files_below_the_folder_are_served(
    get: Get, target: str, body: str, kind: str
) -> None:
    answer = get(target)
    assert (answer.status, answer.body.decode()) == (200, body)
    assert answer.fields("content-type") == [kind]
    assert answer.fields("cache-control") == ["no-cache"]
    assert answer.fields("accept-ranges") == ["bytes"]
    assert len(answer.fields("etag")) == 1


HOSTILE = [
    # out of the folder, by every way of writing it
    "/../public-secret/x.txt",
    "/../outside.txt",
    "/%2e%2e/outside.txt",
    "/%2E%2E%2foutside.txt",
    "/..%2foutside.txt",
    "/docs/../app.js",
    "/docs/%2e%2e/app.js",
    "/./app.js",
    "/..%5coutside.txt",
    "/..\\outside.txt",
    "/docs\\index.html",
    "/docs%2findex.html",
    "/%2fetc/passwd",
    "/%2Fetc%2Fpasswd",
    "/etc/passwd",
    "/%252e%252e/outside.txt",
    "/.../outside.txt",
    "/...",
    "/docs%5cx",
    "/C:",
    "/C:/windows/win.ini",
    "/C:%5cwindows%5cwin.ini",
    "/file:%2f%2f%2fetc%2fpasswd",
    "/%5c%5cserver%5cshare",
    # links
    "/link-out",
    "/link-absolute",
    "/folder-out/x.txt",
    "/link-hidden",
    "/link-loop",
    "/link-loop/x",
    "/link-nowhere",
    "/up/outside.txt",
    "/up/public/app.js/x",
    # hidden, folders, and what is no file
    "/.env",
    "/%2eenv",
    "/.git/config",
    "/",
    "",
    "/docs",
    "/docs/",
    "/docs/deep",
    "/pipe",
    "/app.js/x",
    "/missing",
    "/docs/missing/x",
    # names that other systems read in another way
    "/app.js.",
    "/app.js%20",
    "/app.js::$DATA",
    "/app.js%00",
    "/app.js%00.png",
    "/%00",
    "/app.js%0a",
    "/app.js%7f",
    "/APP.JS",
    "/Docs/index.html",
    "/read.txt",
    "/" + "a" * 300,
    "/" + "a/" * 3000,
]


@pytest.mark.parametrize("target", HOSTILE)
@pytest.mark.parametrize("index", [None, "missing.html"])
def test_everything_else_is_answered_like_what_is_not_there(
    get: Get, target: str, index: str | None
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert refused(get(target, static=StaticFiles("public", index=index)))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "segments",
    [
        ["a/b"],
        ["..", "outside.txt"],
        ["/etc/passwd"],
        ["docs", ""],
        ["\ud800"],
        ["a\r\nb"],
    ],
)
def test_segments_that_the_router_never_gives_are_refused_too(
    app: Application, exchange: type[Exchange], segments: Sequence[str]
) -> None:
    here = exchange("GET", "/static/x")
    request = Request(here.scope, here.receive, app, "id-1")
    with pytest.raises(NotFound):
        asyncio.run(StaticFiles("public").response(segments, request))


@pytest.mark.parametrize("name", ["pipe", "docs", "link-out", "missing"])
def test_a_refusal_comes_before_there_is_a_response(
    app: Application, exchange: type[Exchange], name: str
) -> None:
    here = exchange("GET", f"/static/{name}")
    request = Request(here.scope, here.receive, app, "id-1")
    with pytest.raises(NotFound, match=r"^404 There is nothing at this path$"):
        asyncio.run(StaticFiles("public").response([name], request))


def test_a_socket_is_no_file(get: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's address is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("public/socket")
        assert refused(get("/socket"))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            [
                "..",
                ".",
                "docs",
                "index.html",
                "up",
                "folder-out",
                "x.txt",
                "outside.txt",
                "~",
                "a:b",
            ]
        )
        | st.text(max_size=4).filter(lambda text: "/" not in text),
        max_size=5,
    )
)
def test_no_path_reads_outside_the_folder(
    app: Application, exchange: type[Exchange], segments: list[str]
) -> None:
    async def main() -> bytes:
        here = exchange("GET", "/static")
        request = Request(here.scope, here.receive, app, "id-1")
        response = await StaticFiles("public").response(segments, request)
        await response.send(request, here.send, common=[])
        return here.answer.body

    with contextlib.suppress(NotFound):
        assert asyncio.run(main()) != b"secret"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get"])
@pytest.mark.parametrize("target", ["/app.js", "/missing", "/.env"])
def test_other_methods_are_answered_405_whatever_the_path(
    get: Get, method: str, target: str
) -> None:
    answer = get(target, method=method)
    assert answer.status == 405
    assert answer.fields("allow") == ["GET, HEAD"]
    assert answer.json()["detail"] == "This path answers GET, HEAD"


def test_head_conditions_and_ranges_are_those_of_a_file_response(get: Get) -> None:
    whole = get("/app.js")
    head = get("/app.js", method="HEAD")
    assert (head.headers, head.body) == (whole.headers, b"")
    current = get("/app.js", headers=[("if-none-match", whole.fields("etag")[0])])
    assert (current.status, current.fields("cache-control")) == (304, ["no-cache"])
    part = get("/app.js", headers=[("range", "bytes=0-2")])
    assert (part.status, part.body) == (206, b"app")


@pytest.mark.parametrize(("max_age", "field"), [(0, "no-cache"), (3600, "max-age=3600")])
def test_max_age_says_how_long_a_copy_is_good(get: Get, max_age: int, field: str) -> None:
    answer = get("/app.js", static=StaticFiles("public", max_age=max_age))
    assert answer.fields("cache-control") == [field]


# The index of a folder


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/docs", "./docs/"),
        ("/docs?a=1&b=%20x", "./docs/?a=1&b=%20x"),
        ("/%64ocs", "./%64ocs/"),
        ("//docs", "./docs/"),
    ],
)
def test_a_folder_with_an_index_has_one_address(get: Get, target: str, location: str) -> None:
    static = StaticFiles("public", index="index.html")
    answer = get(target, static=static)
    assert (answer.status, answer.fields("location")) == (307, [location])

    slashed = target.replace("?", "/?") if "?" in target else f"{target}/"
    answer = get(slashed, static=static)
    assert (answer.status, answer.body) == (200, b"docs/index.html")


def test_the_mount_itself_may_have_an_index(get: Get, tmp_path: Path) -> None:
    static = StaticFiles("public", index="index.html")
    (tmp_path / "public/index.html").write_text("home")
    assert get("/", static=static).body == b"home"
    assert get("", static=static).fields("location") == ["./static/"]


def test_an_index_that_leads_out_is_refused(get: Get, tmp_path: Path) -> None:
    (tmp_path / "public/index.html").symlink_to("../outside.txt")
    assert refused(get("/", static=StaticFiles("public", index="index.html")))


@pytest.mark.parametrize("index", ["", ".", "..", ".env", "a/b", "..\\x", "a\0", "C:"])
def test_an_index_that_is_no_plain_name_is_refused(index: str) -> None:
    expected = r"^The index of StaticFiles must be a plain file name such as 'index.html', got "
    expected += re.escape(repr(index)) + "$"
    with pytest.raises(ValueError, match=expected):
        StaticFiles("public", index=index)


def test_a_negative_max_age_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^max_age must be 0 or more seconds, got -1$"):
        StaticFiles("public", max_age=-1)


# The folder


def test_a_relative_folder_starts_at_the_application_root(
    get: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert get("/app.js", static=StaticFiles("public")).status == 200
    assert get("/app.js", static=StaticFiles(tmp_path / "public")).status == 200


def test_a_folder_behind_a_link_is_looked_up_anew(get: Get, tmp_path: Path) -> None:
    static = StaticFiles("current")
    current = tmp_path / "current"
    current.symlink_to("public")
    assert get("/app.js", static=static).body == b"app.js"
    current.unlink()
    (tmp_path / "next").mkdir()
    (tmp_path / "next/app.js").write_text("next")
    current.symlink_to("next")
    assert get("/app.js", static=static).body == b"next"


def test_a_folder_that_is_gone_serves_nothing(get: Get) -> None:
    assert refused(get("/app.js", static=StaticFiles("gone")))


def test_a_file_that_is_replaced_by_a_link_after_the_check_is_not_read(
    app: Application, exchange: type[Exchange], tmp_path: Path
) -> None:
    async def main() -> Answer:
        here = exchange("GET", "/static/app.js")
        request = Request(here.scope, here.receive, app, "id-1")
        response = await StaticFiles("public").response(["app.js"], request)
        (tmp_path / "public/app.js").unlink()
        (tmp_path / "public/app.js").symlink_to("../outside.txt")
        await response.send(request, here.send, common=[])
        return here.answer

    assert refused(asyncio.run(main()))


def test_a_failure_of_the_server_is_not_a_missing_file() -> None:
    assert means_file_absent(FileNotFoundError(2, "x"))
    assert means_file_absent(PermissionError(13, "x"))
    assert not means_file_absent(OSError(24, "Too many open files"))
    assert not means_file_absent(OSError(5, "Input/output error"))
    assert not means_file_absent(ValueError("x"))


def test_the_folder_is_checked_when_an_application_starts(app: Application) -> None:
    StaticFiles("public").check(app.root)
    for missing in ("gone", "public/app.js"):
        expected = r"^Static folder '.*' does not exist; create it or correct its name$"
        with pytest.raises(BootError, match=expected):
            StaticFiles(missing).check(app.root)


@pytest.mark.parametrize("directory", [".", "..", "Api", "/", "public/.."])
def test_a_folder_that_holds_the_application_is_refused(app: Application, directory: str) -> None:
    (app.root / "Api").mkdir()
    expected = (
        r"^Static folder '.*' contains the application itself;"
        r" choose a folder of public files$"
    )
    with pytest.raises(BootError, match=expected):
        StaticFiles(directory).check(app.root)


@pytest.mark.parametrize(
    ("segments", "exact"),
    [
        ([], True),
        (["app.js"], True),
        (["docs", "index.html"], True),
        (["APP.JS"], False),
        (["Docs", "index.html"], False),
        (["docs", "Index.html"], False),
    ],
)
def test_a_disk_that_folds_case_does_not_give_a_file_a_second_address(
    app: Application, segments: list[str], exact: bool
) -> None:
    assert has_exact_names(str(app.root / "public"), segments) is exact


def test_two_names_of_one_file_are_both_served(get: Get, tmp_path: Path) -> None:
    # To `stat` this looks like a disk that folds case.
    os.link(tmp_path / "public/app.js", tmp_path / "public/APP.JS")
    assert get("/app.js").status == 200
    assert get("/APP.JS").status == 200
