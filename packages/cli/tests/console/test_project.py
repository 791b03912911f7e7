"""What is said when there is no project."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from treefold_cli._console.errors import CommandError
from treefold_cli._console.project import require_api_folder, require_app_dir


def test_the_route_folder_is_found(tmp_path: Path):
    (tmp_path / "Api").mkdir()
    assert require_api_folder(str(tmp_path)) == tmp_path / "Api"


@pytest.mark.parametrize("look", [require_api_folder, require_app_dir])
@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_missing_root_is_wrong_use(tmp_path: Path, name: str, look: Callable[[str], object]):
    (tmp_path / "file").write_text("")
    root = str(tmp_path / name)
    with pytest.raises(CommandError) as refused:
        look(root)
    assert str(refused.value) == f"No folder {root!r}; name another with --app-dir"
    assert refused.value.code == 2


def nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize("make", [Path.touch, nothing])
def test_a_root_without_routes_is_a_failure(tmp_path: Path, make: Callable[[Path], object]):
    make(tmp_path / "Api")
    with pytest.raises(CommandError) as refused:
        require_api_folder(str(tmp_path))
    assert str(refused.value) == (
        f"No folder 'Api' in {str(tmp_path)!r}; run this at the root of a project, name one with"
        " --app-dir or make one with 'treefold new'"
    )
    assert refused.value.code == 1


def test_a_command_below_the_root_works_in_the_root(
    forked: Callable[..., "subprocess.CompletedProcess[str]"], project: Callable[..., Path]
):
    root = project("v1/User/[id]/Get.py", "v1/Api/Get.py")
    for place in ("Api", "Api/v1", "Api/v1/User/[id]"):
        done = forked("routes", cwd=root / place)
        assert done.stdout.splitlines()[-1].split() == [
            *("GET", "/v1/user/{id}", "Api/v1/User/[id]/Get.py")
        ]
    program = "import os; print(os.getcwd(), app.root)"
    done = forked("shell", "-c", program, cwd=root / "Api/v1/User")
    assert done.stdout == f"{root} {root}\n"
    done = forked("create", "user/role", "post", cwd=root / "Api/v1/User")
    assert done.stdout == "created: Api/v1/User/Role/Post.py  POST /v1/user/role\n"
    assert (root / "Api/v1/User/Role/Post.py").exists()


def test_paths_that_are_typed_lead_from_where_they_are_typed(
    forked: Callable[..., "subprocess.CompletedProcess[str]"], project: Callable[..., Path]
):
    root = project("v1/User/Get.py")
    (root / "Tests/deep").mkdir(parents=True)
    (root / "Tests/deep/test_one.py").write_text("def test_a(): ...\n\n\ndef test_b(): ...\n")
    (root / "Tests/test_two.py").write_text("def test_c(): ...\n")
    options = ["-q", "-p", "no:cacheprovider"]
    for typed, passed in (("test_one.py", 2), ("test_one.py::test_a", 1), ("../test_two.py", 1)):
        done = forked("test", typed, *options, cwd=root / "Tests/deep")
        assert f"{passed} passed" in done.stdout, done.stdout + done.stderr
    assert "3 passed" in forked("test", *options, cwd=root / "Tests/deep").stdout
    done = forked("openapi", "--out", "api.json", cwd=root / "Tests")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "wrote api.json")
    assert (root / "Tests/api.json").is_file()


def test_a_project_that_is_named_is_not_entered(
    forked: Callable[..., "subprocess.CompletedProcess[str]"],
    project: Callable[..., Path],
    tmp_path: Path,
):
    root = project("v1/User/Get.py")
    program = "import os; print(os.getcwd())"
    done = forked("shell", "-c", program, "--app-dir", str(root), cwd=tmp_path)
    assert done.stdout == f"{tmp_path}\n"
    done = forked("shell", "-c", program, cwd=tmp_path, TREEFOLD_APP_DIR=str(root))
    assert done.stdout == f"{tmp_path}\n"


def test_new_makes_its_folder_where_it_is_typed(
    forked: Callable[..., "subprocess.CompletedProcess[str]"], project: Callable[..., Path]
):
    root = project("v1/User/Get.py")
    (root / "Tests").mkdir()
    assert forked("new", "shop", cwd=root / "Tests").returncode == 0
    assert (root / "Tests/shop/Api").is_dir()


def test_a_project_of_another_owner_is_not_entered(
    forked: Callable[..., "subprocess.CompletedProcess[str]"], project: Callable[..., Path]
):
    root = project("v1/User/Get.py")
    (root / "mine").mkdir()
    is_root = os.getuid() == 0  # only root can give a folder to somebody else
    os.chown(root / "Api", 65534 if is_root else -1, -1)
    done = forked("routes", cwd=root / "mine")
    assert (done.returncode, done.stdout == "") == (int(is_root), is_root)
