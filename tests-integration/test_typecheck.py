"""`treefold typecheck` with a real mypy and a real pyright over bracket folders."""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from serving import write_tree

from treefold_scaffold import create_project

TREE = {
    "Api/v1/User/[id]/Get.py": (
        "from ..Services.names import name\n\n\n"
        "async def handler(request: object) -> int:\n    return name\n"
    ),
    "Api/v1/User/Get.py": (
        "from Api.v1.User.Services.names import name\n\n\n"
        "async def handler(request: object) -> str:\n    return name\n"
    ),
    "Api/v1/User/[order-id]/Get.py": "async def handler(request: object) -> int:\n    return 1\n",
    "Api/v1/User/Services/names.py": "name: str = 'x'\n",
    "Services/__init__.py": "",
    ".venv/bad.py": "x: int = 'no'\n",
    "env/pyvenv.cfg": "",
    "env/bad.py": "x: int = 'no'\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("typed"), TREE)


def typecheck(root: Path, *options: str, cache: Path) -> "subprocess.CompletedProcess[str]":
    command = [f"{sysconfig.get_path('scripts')}/treefold", "typecheck", *options]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cache), "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def everything(root: Path) -> set[Path]:
    return set(root.rglob("*"))


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_messages_name_the_real_files(root: Path, tmp_path: Path, checker: str) -> None:
    before = everything(root)
    done = typecheck(root, "--with", checker, cache=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr == f"5 files with {checker}\n"
    named = re.findall(r"^\s*(\S+\.py):(\d+)", done.stdout, re.MULTILINE)
    assert {(Path(root, file), line) for file, line in named} == {
        (root / "Api/v1/User/[id]/Get.py", "5")
    }
    assert "_tf" not in done.stdout
    assert "treefold-typecheck" not in done.stdout
    assert everything(root) == before


def test_a_route_in_a_hidden_folder_is_checked(tmp_path: Path) -> None:
    bad = "def handler(request: object) -> int:\n    return 'no'\n"
    root = write_tree(tmp_path / "project", {"Api/v1/.well-known/Jwks/Get.py": bad})
    done = typecheck(root, "--with", "mypy", cache=tmp_path)
    assert (done.returncode, done.stderr) == (1, "1 file with mypy\n")
    assert done.stdout.startswith("Api/v1/.well-known/Jwks/Get.py:2: error: ")


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_sound_project_passes_and_options_go_on(tmp_path: Path, checker: str) -> None:
    sound = {name: text for name, text in TREE.items() if "[id]" not in name}
    root = write_tree(tmp_path / "sound", sound)
    done = typecheck(root, "--with", checker, "--verbose", cache=tmp_path / "cache")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_new_project_is_sound(tmp_path: Path, checker: str) -> None:
    create_project("shop", tmp_path)
    done = typecheck(tmp_path / "shop", "--with", checker, cache=tmp_path / "cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_settings_of_the_project_hold(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path / "strict",
        {
            "Api/v1/[id]/Get.py": "def handler(request):\n    return 1\n",
            "pyproject.toml": "[tool.mypy]\nstrict = true\n",
        },
    )
    done = typecheck(root, "--with", "mypy", cache=tmp_path / "cache")
    assert done.returncode == 1
    assert done.stdout.startswith("Api/v1/[id]/Get.py:1: error: Function is missing a type")


def test_a_checker_that_is_none_is_refused(root: Path, tmp_path: Path) -> None:
    done = typecheck(root, "--with", "pylint", cache=tmp_path)
    expected = "Error: Invalid value 'pylint' for --with; use one of mypy, pyright\n"
    assert (done.returncode, done.stderr) == (2, expected)


LAYERS = {
    "Api/v1/User/[id]/Get.py": (
        "from ..Services.names import name\n\n\n"
        "async def handler(request: object) -> str:\n    return name\n"
    ),
    "Api/v1/User/Get.py": "async def handler(request: object) -> int:\n    return 'wrong'\n",
    "Api/v1/User/Services/names.py": "name: str = 'x'\n",
    "Api/v1/User/Services/kept.py": "kept: str = 'x'\n",
    "Api/v2/version.toml": 'inherits = "v1"',
    "Api/v2/User/Put.py": (
        "from .Services.kept import kept\n\n\n"
        "async def handler(request: object) -> str:\n    return kept\n"
    ),
    "Api/v2/User/Services/names.py": "name: int = 1\n",
}


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_version_that_inherits_is_checked_with_its_own_services(
    tmp_path: Path, checker: str
) -> None:
    root = write_tree(tmp_path / "layers", LAYERS)
    done = typecheck(root, "--with", checker, cache=tmp_path / "cache")
    assert done.returncode == 1, done.stdout + done.stderr
    named = re.findall(r"^\s*(\S+\.py):(\d+)", done.stdout, re.MULTILINE)
    assert sorted((Path(root, file), line) for file, line in named) == [
        (root / "Api/v1/User/Get.py", "2"),  # once, though v2 has it too
        (root / "Api/v1/User/[id]/Get.py", "5"),  # with the service of v2
    ]
    assert "Api/v2" not in done.stdout
