"""`treefold new`, from what is typed to what is on the disk."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_project_is_made_and_the_next_step_named(treefold: Treefold, here: Path):
    assert treefold("new", "shop") == (0, "created: shop\nnext: cd shop && treefold dev\n", "")
    assert (here / "shop/Api/v1/Health/Get.py").is_file()


def test_the_folder_for_it_can_be_named(treefold: Treefold, here: Path):
    (here / "my work").mkdir()
    code, out, _ = treefold("new", "shop", "--app-dir", "my work")
    assert (code, out.splitlines()[1]) == (0, "next: cd 'my work/shop' && treefold dev")
    assert (here / "my work/shop/hooks.py").is_file()


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "../../x",
        "/absolute/x",
        "",
        "con",
        "class",
        "json",
        "a b",
        "a\nb",
        "{{7*7}}",
        '"""',
    ],
)
def test_a_name_that_cannot_be_one_is_wrong_use(treefold: Treefold, tmp_path: Path, name: str):
    code, out, err = treefold("new", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"Error: Project name {name!r} ")
    assert err.count("\n") == 1
    assert os.listdir(tmp_path) == ["here"]
    assert os.listdir(tmp_path / "here") == []


def test_a_name_that_looks_like_an_option_is_wrong_use(treefold: Treefold, here: Path):
    assert treefold("new", "-rf")[0] == 2
    assert treefold("new", "--", "-rf")[0] == 2
    assert list(here.iterdir()) == []


def test_an_existing_target_is_wrong_use_and_left_alone(treefold: Treefold, here: Path):
    (here / "shop").mkdir()
    assert treefold("new", "shop") == (
        2,
        "",
        "Error: Target 'shop' exists; choose another name or remove it\n",
    )
    assert list((here / "shop").iterdir()) == []


def test_a_folder_that_does_not_exist_is_wrong_use(treefold: Treefold, here: Path):
    assert treefold("new", "shop", "--app-dir", "missing") == (
        2,
        "",
        "Error: No folder 'missing'; name another with --app-dir\n",
    )
    assert list(here.iterdir()) == []


def test_a_starter_with_a_model_names_the_migration_as_the_next_step(
    treefold: Treefold, here: Path
):
    assert treefold("new", "shop", "--starter", "--models") == (
        0,
        "created: shop\nnext: cd shop && treefold makemigrations && treefold dev --migrate\n",
        "",
    )
    for name in (".gitignore", "treefold.toml", "Tests/test_health.py", "Models/note.py"):
        assert (here / "shop" / name).is_file()


@pytest.mark.parametrize("dot", [".", "./"])
def test_the_working_folder_becomes_a_project(treefold: Treefold, here: Path, dot: str):
    (here / ".git").mkdir()
    assert treefold("new", dot, "--starter") == (0, "created: .\nnext: treefold dev\n", "")
    assert (here / "README.md").read_text().startswith("# here\n")
    assert (here / "Tests/test_health.py").is_file()


def test_a_named_folder_becomes_a_project(treefold: Treefold, here: Path):
    (here / "shop").mkdir()
    code, out, _ = treefold("new", ".", "--app-dir", "shop")
    assert (code, out) == (0, "created: shop\nnext: cd shop && treefold dev\n")
    assert (here / "shop/hooks.py").is_file()


def test_a_gitignore_that_was_kept_is_named(treefold: Treefold, here: Path):
    (here / ".gitignore").write_text("mine\n")
    _, out, _ = treefold("new", ".", "--starter")
    assert out.splitlines() == [
        "created: .",
        "kept: .gitignore, which was there",
        "next: treefold dev",
    ]


def test_a_folder_that_holds_files_is_wrong_use_and_left_alone(treefold: Treefold, here: Path):
    (here / "LICENSE").write_text("mine")
    assert treefold("new", ".", "--starter") == (
        2,
        "",
        "Error: Folder '.' must be empty but for dotfiles, it holds 'LICENSE';"
        " move it away or give the name of a new folder\n",
    )
    assert os.listdir(here) == ["LICENSE"]
