"""What `create_handler` writes and where, and what it leaves alone."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from treefold_scaffold import Created, Exists, ScaffoldError, create_handler


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Api").mkdir()
    return tmp_path


def put(root: Path, name: str, text: str = "mine") -> None:
    file = root / "Api" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def tree(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


@pytest.mark.parametrize(
    ("path", "method", "file", "verb", "url"),
    [
        ("user", "get", "v1/User/Get.py", "GET", "/v1/user"),
        ("v2/order-line", "POST", "v2/OrderLine/Post.py", "POST", "/v2/orderline"),
        ("user/[id]/role", "Put", "v1/User/[id]/Role/Put.py", "PUT", "/v1/user/{id}/role"),
        ("user/[userId]", "delete", "v1/User/[userId]/Delete.py", "DELETE", "/v1/user/{userId}"),
        ("user", "pAtCh", "v1/User/Patch.py", "PATCH", "/v1/user"),
        ("user", "head", "v1/User/Head.py", "HEAD", "/v1/user"),
        ("user", "options", "v1/User/Options.py", "OPTIONS", "/v1/user"),
        ("chat", "socket", "v1/Chat/Socket.py", "WEBSOCKET", "/v1/chat"),
        ("chat", "ws", "v1/Chat/Socket.py", "WEBSOCKET", "/v1/chat"),
        ("chat", "WebSocket", "v1/Chat/Socket.py", "WEBSOCKET", "/v1/chat"),
        ("v1", "get", "v1/Get.py", "GET", "/v1"),
    ],
)
def test_a_file_is_written_at_its_place(
    root: Path, path: str, method: str, file: str, verb: str, url: str
):
    lost = ("order-line",) if "order-line" in path else ()
    assert create_handler(root, path, method=method) == Created(f"Api/{file}", verb, url, lost)
    assert set(tree(root)) == {f"Api/{file}"}


def test_the_latest_version_is_meant_without_one(root: Path):
    for version in ("v2", "v10", "v9"):
        put(root, f"{version}/Health/Get.py")
    assert create_handler(root, "user", method="get") == Created(
        "Api/v10/User/Get.py", "GET", "/v10/user"
    )


@pytest.mark.parametrize(
    ("path", "method", "parameter", "returned"),
    [
        ("user", "get", "request", "{'status': 'ok'}"),
        ("user/[id]", "get", "request", "dict(request.path_params)"),
    ],
)
def test_the_body_is_a_minimal_async_handler(
    root: Path, path: str, method: str, parameter: str, returned: str
):
    create_handler(root, path, method=method)
    (text,) = tree(root).values()
    (handler,) = ast.parse(text).body
    assert isinstance(handler, ast.AsyncFunctionDef)
    assert (handler.name, ast.unparse(handler.args)) == ("handler", parameter)
    assert [ast.unparse(line) for line in handler.body] == [f"return {returned}"]


def test_a_socket_handler_accepts_and_echoes(root: Path):
    create_handler(root, "chat/[room]", method="ws")
    (text,) = tree(root).values()
    (handler,) = ast.parse(text).body
    assert isinstance(handler, ast.AsyncFunctionDef)
    assert (handler.name, ast.unparse(handler.args)) == ("handler", "websocket")
    assert ast.unparse(handler.body[0]) == "await websocket.accept()"
    assert "send_text" in ast.unparse(handler.body[1])


def test_an_existing_file_is_reported_and_untouched(root: Path):
    create_handler(root, "user", method="get")
    put(root, "v1/User/Get.py", "changed")
    assert create_handler(root, "user", method="get") == Exists("Api/v1/User/Get.py")
    assert tree(root) == {"Api/v1/User/Get.py": "changed"}


@pytest.mark.parametrize(
    ("existing", "path", "method"),
    [
        ("v1/User/get.py", "user", "get"),
        ("v1/User/GET.py", "User", "Get"),
        ("v1/user/Get.py", "user", "get"),
        ("v1/Chat/Ws.py", "chat", "socket"),
        ("v1/Chat/websocket.py", "chat", "ws"),
    ],
)
def test_another_spelling_of_the_same_endpoint_counts_as_existing(
    root: Path, existing: str, path: str, method: str
):
    put(root, existing)
    assert create_handler(root, path, method=method) == Exists(f"Api/{existing}")
    assert tree(root) == {f"Api/{existing}": "mine"}


@pytest.mark.parametrize("other", ["v1/User/Post.py", "v1/User/names.py", "v1/User/get.txt"])
def test_another_file_in_the_folder_does_not_stand_in_the_way(root: Path, other: str):
    put(root, other)
    assert create_handler(root, "user", method="get") == Created(
        "Api/v1/User/Get.py", "GET", "/v1/user"
    )


def test_a_dangling_link_at_the_file_is_not_written_through(root: Path, tmp_path: Path):
    (root / "Api/v1/User").mkdir(parents=True)
    (root / "Api/v1/User/Get.py").symlink_to(tmp_path / "outside.py")
    assert create_handler(root, "user", method="get") == Exists("Api/v1/User/Get.py")
    assert not (tmp_path / "outside.py").exists()


@pytest.mark.parametrize("method", ["", "fetch", "get;id", "get ", "get\n", "../get", "TRACE"])
def test_an_unknown_method_is_refused_and_nothing_written(root: Path, method: str):
    with pytest.raises(ScaffoldError) as refused:
        create_handler(root, "user", method=method)
    assert str(refused.value) == (
        f"Unknown method {method!r}; use one of get, post, put, patch, delete, head, options,"
        " socket"
    )
    assert tree(root) == {}


@pytest.mark.parametrize(
    "path", ["v1/../../x", "a/[b", "v1/Services/x", "//x", "../x", "a\\b", "V1/x", ""]
)
def test_a_refused_path_writes_nothing(root: Path, path: str):
    with pytest.raises(ScaffoldError):
        create_handler(root, path, method="get")
    assert list((root / "Api").iterdir()) == []


def test_a_parent_that_is_a_link_out_of_the_tree_is_refused(root: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "Api/v1").mkdir()
    (root / "Api/v1/User").symlink_to(outside)
    with pytest.raises(ScaffoldError, match="leads out of 'Api'"):
        create_handler(root, "user/role", method="get")
    assert list(outside.iterdir()) == []


def test_without_an_api_folder_it_is_refused(tmp_path: Path):
    with pytest.raises(ScaffoldError) as refused:
        create_handler(tmp_path, "user", method="get")
    assert str(refused.value) == (
        f"No folder 'Api' in {str(tmp_path)!r}; name the root of a project"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_a_folder_is_needed_is_the_error_of_the_disk(root: Path):
    put(root, "v1/User")
    with pytest.raises(OSError, match="User"):
        create_handler(root, "user/role", method="get")
    assert tree(root) == {"Api/v1/User": "mine"}


def test_a_full_disk_leaves_no_half_handler(root: Path):
    program = (
        "import resource, signal, sys\n"
        "from treefold_scaffold import create_handler\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try:\n"
        "    create_handler(sys.argv[1], 'user', method='get')\n"
        "except OSError as error:\n"
        "    sys.exit(f'OSError {error.errno}')\n"
    )
    command = [sys.executable, "-B", "-c", program, str(root)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (1, "OSError 27")
    assert tree(root) == {}


def test_of_many_at_once_one_creates_the_file(root: Path):
    program = (
        "import sys\n"
        "from treefold_scaffold import create_handler\n"
        "sys.stdin.readline()\n"
        "print(type(create_handler(sys.argv[1], 'user', method='get')).__name__)\n"
    )
    command = [sys.executable, "-c", program, os.fspath(root)]
    pipe = subprocess.PIPE
    racers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    answers = sorted(racer.communicate()[0].strip() for racer in racers)
    assert answers == ["Created", "Exists", "Exists", "Exists"]
