"""`treefold create`, from what is typed to what is on the disk."""

from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_the_new_file_and_its_url_are_printed(treefold: Treefold, project: Project):
    root = project("v2/Health/Get.py")
    assert treefold("create", "order-line/[id]", "get") == (
        0,
        "created: Api/v2/OrderLine/[id]/Get.py  GET /v2/orderline/{id}\n"
        "for /order-line name the folder order-line\n",
        "",
    )
    assert "Api/v2/OrderLine/[id]/Get.py" in files(root)


@pytest.mark.parametrize(
    ("path", "hints"),
    [
        ("v1/Order_Line/x-y/[user-id]", ["order_line", "x-y"]),
        ("a-b/a-b", ["a-b"]),
        ("orderline/user", []),
    ],
)
def test_segments_that_lose_their_separator_are_told(
    treefold: Treefold, project: Project, path: str, hints: list[str]
):
    project("v1/Health/Get.py")
    code, out, _ = treefold("create", path, "get")
    assert code == 0
    assert out.splitlines()[1:] == [f"for /{hint} name the folder {hint}" for hint in hints]


def test_a_folder_named_as_told_serves_that_url(treefold: Treefold, project: Project):
    project("v1/order-line/Get.py")
    assert treefold("why", "get", "/v1/order-line")[0] == 0


def test_an_existing_file_is_named_and_left_untouched(treefold: Treefold, project: Project):
    root = project()
    treefold("create", "v3/user", "post")
    (root / "Api/v3/User/Post.py").write_text("mine")
    assert treefold("create", "v3/user", "POST") == (0, "exists: Api/v3/User/Post.py\n", "")
    assert (root / "Api/v3/User/Post.py").read_text() == "mine"


def test_the_project_can_be_elsewhere(treefold: Treefold, project: Project, tmp_path: Path):
    root = project()
    code, out, _ = treefold("create", "chat", "ws", "--app-dir", str(root))
    assert (code, out) == (0, "created: Api/v1/Chat/Socket.py  WEBSOCKET /v1/chat\n")
    assert files(tmp_path) == ["project/Api/v1/Chat/Socket.py"]


def test_a_path_may_begin_with_a_slash_as_urls_do(treefold: Treefold, project: Project):
    root = project("v1/Health/Get.py")
    expected = "created: Api/v1/User/[id]/Get.py  GET /v1/user/{id}\n"
    assert treefold("create", "/v1/user/[id]", "get") == (0, expected, "")
    assert "Api/v1/User/[id]/Get.py" in files(root)


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("../x", "get"),
        ("v1/../../x", "get"),
        ("//etc/x", "get"),
        ("user/[id]/role/[id]", "get"),
        ("a/[b", "get"),
        ("v1/Services/x", "get"),
        ("x", "get;id"),
        ("x", "fetch"),
        ("", "get"),
    ],
)
def test_a_refused_path_or_method_is_wrong_use(
    treefold: Treefold, project: Project, path: str, method: str
):
    root = project("v1/Health/Get.py")
    code, out, err = treefold("create", path, method)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"Error: {f'Path {path!r}' if method == 'get' else 'Unknown method'} ")
    assert files(root) == ["Api/v1/Health/Get.py"]


def test_without_a_project_nothing_is_written(
    treefold: Treefold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    code, _, err = treefold("create", "user", "get")
    assert (code, err.startswith("Error: No folder 'Api' in '.'; run this")) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_what_the_disk_refuses_is_one_line(treefold: Treefold, project: Project):
    root = project()
    (root / "Api/v1").mkdir()
    (root / "Api/v1/User").write_text("mine")
    assert treefold("create", "user/role", "get") == (
        1,
        "",
        "Error: Cannot use 'Api/v1/User/Role': Not a directory; check the path and its"
        " permissions\n",
    )
