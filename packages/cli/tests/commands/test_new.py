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
        ".",
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
