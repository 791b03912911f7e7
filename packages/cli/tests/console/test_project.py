"""What is said when there is no project."""

from collections.abc import Callable
from pathlib import Path

import pytest

from treefold_cli._console.errors import CommandError
from treefold_cli._console.project import check_folder, find_api


def test_the_route_folder_is_found(tmp_path: Path):
    (tmp_path / "Api").mkdir()
    assert find_api(str(tmp_path)) == tmp_path / "Api"


@pytest.mark.parametrize("look", [find_api, check_folder])
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
        find_api(str(tmp_path))
    assert str(refused.value) == (
        f"No folder 'Api' in {str(tmp_path)!r}; run this at the root of a project, name one with"
        " --app-dir or make one with 'treefold new'"
    )
    assert refused.value.code == 1
