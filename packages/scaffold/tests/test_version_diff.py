"""What two versions differ in, beside their names."""

from pathlib import Path

import pytest

from treefold_scaffold import ScaffoldError, compare_versions, plan_version, write_version


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "v1/User/Get.py", "from Api.v1.User.Services.a import x\n")
    put(tmp_path, "v1/User/[id]/Get.py", "x = 1\n")
    put(tmp_path, "v1/User/Services/a.py", "x = 1\n")
    return tmp_path


def put(root: Path, name: str, text: str) -> None:
    file = root / "Api" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_fresh_copy_differs_in_nothing(root: Path):
    write_version(root, plan_version(root, "2"))
    assert compare_versions(root, "v1", "v2").is_empty


def test_routes_and_services_are_told_apart(root: Path):
    write_version(root, plan_version(root, "2"))
    put(root, "v2/User/Get.py", "from Api.v2.User.Services.b import x\n")
    put(root, "v2/Order/Post.py", "")
    (root / "Api/v2/User/[id]/Get.py").unlink()
    put(root, "v2/User/Services/b.py", "")
    put(root, "v2/User/Services/a.py", "x = = 2\n")
    diff = compare_versions(root, "v1", "v2")
    assert diff.added == (("POST", "/v2/order"),)
    assert diff.removed == (("GET", "/v1/user/{id}"),)
    assert diff.changed == (("GET", "/v2/user"),)
    assert diff.services_added == ("User/Services/b.py",)
    assert diff.services_removed == ()
    assert diff.services_changed == ("User/Services/a.py",)


def test_a_parameter_of_another_name_is_the_same_place(root: Path):
    put(root, "v2/User/[key]/Get.py", "x = 1\n")
    assert compare_versions(root, "v1", "v2").added == ()


def test_a_missing_version_is_named(root: Path):
    with pytest.raises(ScaffoldError, match="No version 'v9' in 'Api'"):
        compare_versions(root, "v1", "v9")
