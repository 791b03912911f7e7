"""The folder that a path names: versions, existing folders, links (S-124)."""

from pathlib import Path

import pytest

from treefold_scaffold import ScaffoldError
from treefold_scaffold._place import find_latest_version, resolve_folder


@pytest.fixture
def api(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "Api"
    folder.mkdir(parents=True)
    return folder


def grow(api: Path, *folders: str) -> None:
    for folder in folders:
        (api / folder).mkdir(parents=True)


@pytest.mark.parametrize(
    ("folders", "latest"),
    [
        ((), None),
        (("v1",), "v1"),
        (("v1", "v2"), "v2"),
        (("v2", "v10", "v9"), "v10"),
        (("v1", "V9", "v9-beta", "v٣", "x9"), "v1"),
        (("v01", "v1"), "v1"),
        (("v0",), "v0"),
    ],
)
def test_the_latest_version_has_the_highest_number(
    api: Path, folders: tuple[str, ...], latest: str | None
):
    grow(api, *folders)
    assert find_latest_version(api) == latest


def test_a_file_named_like_a_version_is_none(api: Path):
    (api / "v2").write_text("")
    assert find_latest_version(api) is None


def test_a_new_place_keeps_the_names_asked_for(api: Path):
    assert resolve_folder(api, "v1", folders=("User", "[id]")) == api / "v1/User/[id]"


def test_locating_makes_no_folder(api: Path):
    resolve_folder(api, "v1", folders=("User",))
    assert list(api.iterdir()) == []


@pytest.mark.parametrize(
    ("existing", "wanted", "used"),
    [
        (("v1/user",), ("User",), "v1/user"),
        (("v1/USER/[ID]",), ("User", "[id]"), "v1/USER/[ID]"),
        (("v1/user", "v1/User"), ("User",), "v1/User"),
        (("v1/[id]",), ("[id]", "Role"), "v1/[id]/Role"),
        (("v1/[a]", "v1/[b]"), ("[b]",), "v1/[b]"),
        (("v1/[id]",), ("Me",), "v1/Me"),
        (("v1/Me",), ("[id]",), "v1/[id]"),
        (("v2/user",), ("User",), "v1/User"),
    ],
)
def test_an_existing_folder_is_used_rather_than_a_colliding_one(
    api: Path, existing: tuple[str, ...], wanted: tuple[str, ...], used: str
):
    grow(api, *existing)
    assert resolve_folder(api, "v1", folders=wanted) == api / used


def test_a_second_name_for_a_parameter_is_refused(api: Path):
    grow(api, "v1/User/[id]")
    with pytest.raises(ScaffoldError) as refused:
        resolve_folder(api, "v1", folders=("User", "[uid]"))
    assert str(refused.value) == "Parameter '[uid]' is called '[id]' here; use that name"


def test_a_second_spelling_of_a_version_is_refused(api: Path):
    with pytest.raises(ScaffoldError) as refused:
        resolve_folder(api, "v01", folders=("User",))
    assert str(refused.value) == "Version 'v01' is a second spelling of 'v1'; write 'v1'"


def test_a_second_spelling_that_is_there_is_used(api: Path):
    grow(api, "v01")
    assert resolve_folder(api, "v01", folders=("User",)) == api / "v01/User"


@pytest.mark.parametrize("link", ["v1", "v1/User", "v1/User/[id]"])
@pytest.mark.parametrize("target", ["/", "missing", "../.."])
def test_a_link_that_leads_out_is_refused(api: Path, tmp_path: Path, link: str, target: str):
    (api / link).parent.mkdir(parents=True, exist_ok=True)
    (api / link).symlink_to(tmp_path / "outside" / target)
    with pytest.raises(ScaffoldError) as refused:
        resolve_folder(api, "v1", folders=("User", "[id]", "Role"))
    assert str(refused.value) == (
        f"Folder {str(api / link)!r} is a link that leads out of 'Api'; use another"
    )


def test_a_link_is_found_in_another_case_too(api: Path, tmp_path: Path):
    grow(api, "v1")
    (tmp_path / "outside").mkdir()
    (api / "v1/user").symlink_to(tmp_path / "outside")
    with pytest.raises(ScaffoldError, match="leads out of 'Api'"):
        resolve_folder(api, "v1", folders=("User",))


def test_an_api_folder_that_is_itself_a_link_is_followed(tmp_path: Path):
    grow(tmp_path, "real/v1/user")
    (tmp_path / "Api").symlink_to("real")
    assert resolve_folder(tmp_path / "Api", "v1", folders=("User",)) == tmp_path / "Api/v1/user"
