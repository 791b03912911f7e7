"""`treefold why`, through the installed script; what it says is tested in treefold-router."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root(project: Project) -> Path:
    return project("v1/User/[id]/Get.py", "v2/User/[id]/Post.py", "V1/Foo/Get.py", "v1/Chat/Ws.py")


def test_the_walk_is_told(forked: Executable, root: Path):
    done = forked("why", "get", "/v1/user/42?x=1", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "GET /v1/user/42",
        "  /v1     is a folder",
        "  /user   is a folder",
        "  /42     is the value of [id]",
        "  answer  200, served by Api/v1/User/[id]/Get.py",
    ]


def test_a_miss_ends_with_the_command_that_adds_it(forked: Executable, root: Path):
    done = forked("why", "POST", "http://localhost:8000/v1/user/42", cwd=root)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-4:] == [
        "  answer         405: the path exists, but for GET only",
        "  other version  POST /v2/user/{id}  Api/v2/User/[id]/Post.py",
        "  to add it      treefold create 'v1/user/[id]' post",
        "  see            treefold docs versions",
    ]
    assert forked("create", "v1/user/[id]", "post", cwd=root).returncode == 0
    assert forked("why", "POST", "/v1/user/42", cwd=root).returncode == 0


def test_it_is_data_too(forked: Executable, root: Path):
    done = forked("why", "GET", "/v1/foo", "--json", cwd=root)
    found = json.loads(done.stdout)
    assert (found["status"], found["route"], found["create"]) == (404, None, "v1/foo get")
    reason = "not under a version folder (vN)"
    assert found["skipped"] == [{"file": "Api/V1/Foo/Get.py", "reason": reason}]
    served = json.loads(forked("why", "socket", "/v1/chat", "--json", cwd=root).stdout)
    expected = {"method": "WEBSOCKET", "url": "/v1/chat", "file": "Api/v1/Chat/Ws.py"}
    assert served["route"] == expected


MOUNTING = """
from treefold_http import StaticFiles


class Files:
    def setup(self, app):
        app.mount("/static", StaticFiles("web"))
        print("set up")


extensions = [Files()]
"""


@pytest.mark.parametrize(
    ("path", "settings", "answer", "code"),
    [
        ("/user/42", "default_version = 'v1'", "200, served by Api/v1/User/[id]/Get.py", 0),
        ("/user/42", "default_version = 'latest'", "405: the path exists, but for POST only", 1),
        ("/v9/user", "default_version = 'v1'", "404: no such path", 1),
        ("/static/a.css", "default_version = 'v1'", "served by the mount /static (StaticFiles)", 0),
        ("/docs", "", "served by the docs (development, or the setting docs = true)", 0),
        ("/docs/", "default_version = 'v1'", "served by the docs (development, or ", 0),
        ("/openapi.json", "", "served by the document of OpenAPI (development, or ", 0),
        ("/openapi/v2.json", "", "served by the documents of OpenAPI (development, or ", 0),
        ("/openapi/v9.json", "", "404: the documents of OpenAPI (development, or ", 1),
        ("/static/none.css", "", "404: the mount /static (StaticFiles) has nothing there", 1),
        ("/docs/nothing", "", "404: the docs (development, or ", 1),
        ("/docs/site.json", "", "served by the docs (development, or ", 0),
        ("/openapi.json/x", "", "404: the path does not begin with a version", 1),
        ("/docs", "docs = false", "404: the path does not begin with a version", 1),
        ("/livez", "health = true", "served by the probe of the setting health", 0),
        ("/livez", "", "404: the path does not begin with a version", 1),
        ("/%ff", "default_version = 'v1'", "400: ", 1),
    ],
)
def test_a_path_without_a_version_is_explained_as_it_is_served(
    treefold: Treefold, root: Path, path: str, settings: str, answer: str, code: int
):
    (root / "web").mkdir()
    (root / "web/a.css").write_text("")
    (root / "extensions.py").write_text(MOUNTING)
    (root / "treefold.toml").write_text(settings)
    status, out, _ = treefold("why", "get", path)
    (said,) = [line for line in out.splitlines() if line.strip().startswith("answer")]
    assert said.split(maxsplit=1)[1].startswith(answer)
    assert status == code
    assert "set up" not in out
    record = json.loads(treefold("why", "get", path, "--json")[1])
    assert (record["status"] == 200) is (code == 0)


@pytest.mark.parametrize("path", ["/static/a.css", "/docs", "/openapi.json", "/livez"])
def test_a_method_that_only_routes_have_is_refused_outside_of_them(
    treefold: Treefold, root: Path, path: str
):
    (root / "web").mkdir()
    (root / "web/a.css").write_text("")
    (root / "extensions.py").write_text(MOUNTING)
    (root / "treefold.toml").write_text("health = true\n")
    code, out, _ = treefold("why", "post", path)
    assert (code, "  405: the " in out, "answers GET and HEAD only" in out) == (1, True, True)
    assert treefold("why", "head", path)[0] == 0


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/api/v1/user/42", "200, served by Api/v1/User/[id]/Get.py"),
        ("/api/user/42", "200, served by Api/v1/User/[id]/Get.py"),
        ("/api/static/a.css", "served by the mount /static (StaticFiles)"),
        ("/api/docs", "served by the docs (development, or the setting docs = true)"),
        ("/api/v9/user", "404: no such path"),
    ],
)
def test_the_prefix_of_root_path_is_cut(treefold: Treefold, root: Path, path: str, answer: str):
    (root / "web").mkdir()
    (root / "web/a.css").write_text("")
    (root / "extensions.py").write_text(MOUNTING)
    (root / "treefold.toml").write_text("root_path = '/api'\ndefault_version = 'v1'\n")
    below = path.removeprefix("/api")
    _, out, _ = treefold("why", "get", path)
    lines = out.splitlines()
    assert lines[:2] == [f"GET {below}", "  the prefix /api is cut (setting root_path)"]
    assert any(line.split(maxsplit=1)[1].startswith(answer) for line in lines if "answer" in line)
    assert treefold("why", "get", below)[1].splitlines() == [lines[0], *lines[2:]]
    records = [json.loads(treefold("why", "get", p, "--json")[1]) for p in (path, below)]
    assert [record["root_path"] for record in records] == ["/api", None]
    assert records[0] | {"root_path": None} == records[1]


def test_a_boot_file_that_fails_hides_mounts_and_nothing_else(treefold: Treefold, root: Path):
    (root / "extensions.py").write_text("1 / 0\n")
    (root / "treefold.toml").write_text("default_version = 'v1'\n")
    code, out, err = treefold("why", "get", "/user/42")
    assert (code, "200, served by Api/v1/User/[id]/Get.py" in out) == (0, True)
    assert "mounts are not known: extensions.py cannot be used: ZeroDivisionError" in err


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("fetch", "/v1", "Unknown method 'fetch'; use one of get, post, "),
        ("get", "v1/user", "Path 'v1/user' must start with '/', such as '/v1/user'"),
        ("get", "http://[::1/x", "Address 'http://[::1/x' cannot be read: "),
    ],
)
def test_wrong_use_is_one_line(
    treefold: Treefold, root: Path, method: str, path: str, message: str
):
    code, out, err = treefold("why", method, path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"Error: {message}")


def test_a_path_cannot_move_the_cursor(treefold: Treefold, root: Path):
    _, out, _ = treefold("why", "get", "/v1/\x1b[2J/\udcff")
    assert "\x1b" not in out
    assert out.startswith(r"GET /v1/\x1b[2J/")


def test_only_the_handler_that_serves_is_imported(forked: Executable, root: Path):
    (root / "Api/v2/User/[id]/Post.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    assert forked("why", "get", "/v1/user/1", cwd=root).returncode == 0
    assert forked("why", "post", "/v1/user/1", cwd=root).returncode == 1
    assert not (root / "imported").exists()
    assert forked("why", "post", "/v2/user/1", cwd=root).returncode == 1
    assert (root / "imported").exists()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def handler(:\n", "SyntaxError: "),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("x = 1\n", "HandlerError: "),
        ("def handler(request, lost: 5): ...\n", ""),
        ("raise ValueError('password=hunter2')\n", "ValueError: password=***"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/user/1", "/user/1"])
def test_a_file_that_does_not_load_is_no_200(
    forked: Executable, root: Path, text: str, error: str, path: str
):
    (root / "Api/v1/User/[id]/Get.py").write_text(text)
    (root / "treefold.toml").write_text("default_version = 'v1'\n")
    done = forked("why", "get", path, cwd=root)
    assert f"  500: Api/v1/User/[id]/Get.py does not load: {error}" in done.stdout
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(forked("why", "get", path, "--json", cwd=root).stdout)
    assert (found["status"], found["error"].startswith(error)) == (500, True)


@pytest.mark.parametrize(
    ("path", "source", "page"),
    [
        ("/v1/nothing", "", "handlers#rules-of-files-and-paths"),
        ("/user/42", "", "versions"),
        ("/v1/user/42", "1 / 0\n", "handlers#a-handler-module"),
        ("/static/b.css", "", "mounting"),
        ("/v2/user/42", "", "versions"),
    ],
)
def test_the_page_that_explains_a_miss_is_named(
    treefold: Treefold, root: Path, path: str, source: str, page: str
):
    if source:
        (root / "Api/v1/User/[id]/Get.py").write_text(source)
    (root / "web").mkdir()
    (root / "extensions.py").write_text(MOUNTING)
    code, out, _ = treefold("why", "post" if "static" in path else "get", path)
    assert (code, out.splitlines()[-1].split(maxsplit=1)) == (1, ["see", f"treefold docs {page}"])
    words = ["post" if "static" in path else "get", path, "--json"]
    assert json.loads(treefold("why", *words)[1])["docs"] == page


def test_what_is_served_names_no_page(treefold: Treefold, root: Path):
    _, out, _ = treefold("why", "get", "/v1/user/42")
    assert "docs" not in out
    assert "docs" not in json.loads(treefold("why", "get", "/v1/user/42", "--json")[1])


def test_a_duplicate_that_is_hidden_is_named(treefold: Treefold, project: Project):
    project("v1/USER/Get.py", "v1/User/Get.py")
    code, out, _ = treefold("why", "get", "/v1/user")
    assert (code, out.splitlines()[-2:]) == (
        0,
        [
            "  answer  200, served by Api/v1/User/Get.py",
            "  hidden  Api/v1/USER/Get.py has the same method and URL, and is visited earlier",
        ],
    )
    record = json.loads(treefold("why", "get", "/v1/user", "--json")[1])
    assert record["duplicates"] == ["Api/v1/USER/Get.py"]


SERVED = "200, served by Api/v1/User/[id]/Get.py"
ALLOWED = "204 with Allow: GET, OPTIONS"


@pytest.mark.parametrize(
    ("method", "settings", "answer", "code"),
    [
        ("head", "auto_head = true", f"{SERVED} (setting auto_head)", 0),
        ("head", "", "405: the path exists, but for GET only", 1),
        ("options", "auto_options = true", f"{ALLOWED} (setting auto_options)", 0),
        ("options", "", "405: the path exists, but for GET only", 1),
    ],
)
@pytest.mark.parametrize("path", ["/v1/user/1", "/user/1"])
def test_automatic_methods_are_known(
    treefold: Treefold, root: Path, method: str, settings: str, answer: str, code: int, path: str
):
    (root / "treefold.toml").write_text(f"default_version = 'v1'\n{settings}\n")
    status, out, _ = treefold("why", method, path)
    (said,) = [line for line in out.splitlines() if line.strip().startswith("answer")]
    assert (status, said.split(maxsplit=1)[1]) == (code, answer)


APPLICATION = """
class Applications:
    def setup(self, app):
        async def asgi(scope, receive, send): ...
        app.mount("/legacy", asgi)


extensions = [Applications()]
"""


@pytest.mark.parametrize(
    ("source", "path", "answer", "code"),
    [
        (APPLICATION, "/legacy/talk", "served by the mount /legacy (asgi)", 0),
        (MOUNTING, "/static/talk", "404: the path does not begin with a version, and", 1),
        ("", "/docs", "404: the path does not begin with a version, and", 1),
    ],
)
def test_sockets_are_served_by_mounted_applications_alone(
    treefold: Treefold, root: Path, source: str, path: str, answer: str, code: int
):
    (root / "web").mkdir()
    (root / "extensions.py").write_text(source)
    status, out, _ = treefold("why", "socket", path)
    (said,) = [line for line in out.splitlines() if line.strip().startswith("answer")]
    assert said.split(maxsplit=1)[1].startswith(answer)
    assert status == code


HOOKS = """
from treefold_http import StaticFiles

FILES = "/files"


async def start(app):
    app.mount("/late", StaticFiles("web"))
    app.mount(FILES, StaticFiles("web"))


on_startup = [start]
"""


def test_a_mount_of_a_startup_hook_is_told_as_far_as_its_source_says(
    treefold: Treefold, root: Path
):
    (root / "hooks.py").write_text(HOOKS)
    code, out, err = treefold("why", "get", "/late/a.css")
    assert (code, "served by the mount /late, once hooks.py:8 has run" in out, err) == (0, True, "")
    code, out, err = treefold("why", "get", "/files/a.css")
    assert (code, "404" in out) == (1, True)
    assert err == "hooks.py:9 mounts at a computed path, which is not known here\n"


GUARDS = """
from treefold_http.middleware import CORS, IPAllowlist, requests_only, under


async def timing(request, call_next):
    return await call_next(request)


inside = IPAllowlist(["10.0.0.0/8"])
middlewares = [
    CORS(["*"]),
    requests_only(timing),
    under("/v1/user", inside),
    under("/static/secret", inside),
    under("/docs", inside),
    under("/livez", inside),
    under("/later", inside),
]
"""
LATER = """
from treefold_http import StaticFiles


def mount(app):
    app.mount("/later", StaticFiles("web"))


on_startup = [mount]
"""
OWN = """
from treefold_http.middleware import Timeout

middlewares = [Timeout(1)]


async def handler(request):
    return {}
"""


@pytest.mark.parametrize(
    ("method", "path", "guards"),
    [
        (
            "get",
            "/v1/user/42",
            "CORS, timing, IPAllowlist (under /v1/user), Timeout (Api/v1/User/[id]/Get.py)",
        ),
        ("socket", "/v1/user/chat", "IPAllowlist (under /v1/user)"),
        ("get", "/static/a.css", "CORS, timing"),
        ("get", "/static/Secret/a.css", "CORS, timing, IPAllowlist (under /static/secret)"),
        ("get", "/static/%53ecret;x/a.css", "CORS, timing, IPAllowlist (under /static/secret)"),
        ("get", "/docs/site.json", "CORS, timing, IPAllowlist (under /docs)"),
        ("get", "/openapi.json", "CORS, timing"),
        ("get", "/livez", "IPAllowlist (under /livez)"),
        ("get", "/readyz", ""),
        ("get", "/later/a.css", "CORS, timing, IPAllowlist (under /later)"),
        ("get", "/nothing", "CORS, timing"),
        ("get", "/v1/nothing", "CORS, timing"),
        ("post", "/v1/user/42", "CORS, timing, IPAllowlist (under /v1/user)"),
        ("get", "/v1/user/chat", "CORS, timing, IPAllowlist (under /v1/user)"),
        ("get", "/v1/user/42/orders", "CORS, timing"),
        ("get", "/v1/%ff", "CORS, timing"),
        ("socket", "/v1/user/42", ""),
    ],
)
def test_the_middleware_of_any_path_is_shown(
    treefold: Treefold, root: Path, method: str, path: str, guards: str
):
    for name, text in {
        "web/Secret/a.css": "",
        "web/a.css": "",
        "extensions.py": MOUNTING,
        "hooks.py": LATER,
        "Middleware/__init__.py": GUARDS,
        "treefold.toml": "health = true\n",
        "Api/v1/User/[id]/Get.py": OWN,
        "Api/v1/User/Chat/Socket.py": "async def handler(websocket): ...\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    out = treefold("why", method, path)[1]
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert [text for label, text in lines if label == "guards"] == ([guards] if guards else [])
    record = json.loads(treefold("why", method, path, "--json")[1])
    assert [each["name"] for each in record["guards"]] == [
        each.partition(" ")[0] for each in filter(None, guards.split(", "))
    ]
