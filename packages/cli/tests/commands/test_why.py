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


def test_the_walk_is_told(executable: Executable, root: Path):
    done = executable("why", "get", "/v1/user/42?x=1", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "GET /v1/user/42",
        "  /v1     is a folder",
        "  /user   is a folder",
        "  /42     is the value of [id]",
        "  answer  200, served by Api/v1/User/[id]/Get.py",
    ]


def test_a_miss_ends_with_the_command_that_adds_it(executable: Executable, root: Path):
    done = executable("why", "POST", "http://localhost:8000/v1/user/42", cwd=root)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-3:] == [
        "  answer         405: the path exists, but for GET only",
        "  other version  POST /v2/user/{id}  Api/v2/User/[id]/Post.py",
        "  to add it      treefold create 'v1/user/[id]' post",
    ]
    assert executable("create", "v1/user/[id]", "post", cwd=root).returncode == 0
    assert executable("why", "POST", "/v1/user/42", cwd=root).returncode == 0


def test_it_is_data_too(executable: Executable, root: Path):
    done = executable("why", "GET", "/v1/foo", "--json", cwd=root)
    found = json.loads(done.stdout)
    assert (found["status"], found["route"], found["create"]) == (404, None, "v1/foo get")
    reason = "not under a version folder (vN)"
    assert found["skipped"] == [{"file": "Api/V1/Foo/Get.py", "reason": reason}]
    served = json.loads(executable("why", "socket", "/v1/chat", "--json", cwd=root).stdout)
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
    (root / "extensions.py").write_text(MOUNTING)
    (root / "treefold.toml").write_text(settings)
    status, out, _ = treefold("why", "get", path)
    (said,) = [line for line in out.splitlines() if line.strip().startswith("answer")]
    assert said.split(maxsplit=1)[1].startswith(answer)
    assert status == code
    assert "set up" not in out
    record = json.loads(treefold("why", "get", path, "--json")[1])
    assert (record["status"] == 200) is (code == 0)


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


def test_no_handler_is_imported(executable: Executable, root: Path):
    (root / "Api/v1/User/[id]/Get.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    assert executable("why", "get", "/v1/user/1", cwd=root).returncode == 0
    assert not (root / "imported").exists()
