"""Where a relative path of a SQLite database leads, by the folder that a command is typed in."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Project = Callable[..., Path]
Start = Callable[..., Any]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]

WRITE = "from treefold_orm import create_all; create_all(Book); print(Book.objects.count())"


@pytest.fixture
def root(project: Project) -> Path:
    root = project("v1/Health/Get.py")
    (root / "Models").mkdir()
    (root / "Models/shop.py").write_text(
        "from treefold_orm import Model, fields\n\n\nclass Book(Model):\n"
        "    title = fields.CharField(max_length=9)\n"
    )
    (root / "treefold.toml").write_text("[databases]\ndefault = 'sqlite:///shop.db'\n")
    return root


def databases(folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in folder.rglob("shop.db")]


def test_a_command_below_the_root_uses_the_database_of_the_root(forked: Executable, root: Path):
    done = forked("shell", "-c", WRITE, cwd=root / "Api/v1")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "new file" not in done.stderr
    assert forked("makemigrations", cwd=root / "Models").returncode == 0
    assert databases(root) == ["shop.db"]
    assert (root / "migrations").is_dir()


def test_a_server_warns_of_a_new_database_outside_of_its_project(
    forked: Executable, start: Start, root: Path, tmp_path: Path
):
    place = tmp_path / "elsewhere"
    place.mkdir()
    server = start("serve", "--app-dir", str(root), cwd=place).started()
    assert server.stop() == 0
    assert (
        f"[WARNING] database 'default' is a new file {place}/shop.db, outside of the project"
        f" {root}: start there, or write the absolute path\n"
    ) in server.output
    done = forked("shell", "-c", WRITE, "--app-dir", str(root), cwd=place)
    assert done.stdout == "0\n"
    again = start("serve", "--app-dir", str(root), cwd=place).started()
    assert again.stop() == 0
    assert "new file" not in again.output


def test_an_absolute_path_is_no_surprise(start: Start, root: Path, tmp_path: Path):
    (root / "treefold.toml").write_text(f"[databases]\ndefault = 'sqlite:///{tmp_path}/shop.db'\n")
    server = start("serve", "--app-dir", str(root), cwd=tmp_path).started()
    assert server.stop() == 0
    assert "new file" not in server.output
