"""What is seen of a project on the disk, and what is not."""

import os
from pathlib import Path

import pytest

from treefold_cli._dev.snapshot import (
    find_changed_files,
    find_top_folders,
    needs_scan,
    take_snapshot,
)


def write(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)


def test_code_and_settings_are_seen(tmp_path: Path):
    names = {
        "hooks.py",
        "Api/v1/User/[id]/Get.py",
        "Api/v2/version.toml",
        "Api/v2/User/[id]/Get.gone",
        "Services/fast.cpython-311-x86_64-linux-gnu.so",
        "Services/fast.pyd",
        "pyproject.toml",
        "treefold.toml",
        ".env",
        ".env.local",
    }
    write(tmp_path, *names)
    assert take_snapshot(str(tmp_path)).keys() == names


@pytest.mark.parametrize(
    "name",
    [
        "Api/v1/X/.Get.py.swp",
        "Api/v1/X/4913",
        "Api/v1/X/Get.py~",
        "Api/v1/X/#Get.py#",
        "Api/v1/X/.#Get.py",
        "Api/v1/X/Get.py___jb_tmp___",
        "Api/v1/X/Get.py.tmp.1234",
        "Api/v1/X/__pycache__/Get.cpython-311.pyc",
        "Api/v1/X/__pycache__/Get.py",
        "Api/v1/X/.git/hook.py",
        "Api/pyproject.toml",
        "version.toml",
        "Services/Old.gone",
        "Api/v2/.Get.gone",
        "Api/.env",
        ".env.swp",
        ".env~",
        ".venv/lib/x.py",
        "node_modules/x/setup.py",
        "db.sqlite3",
        "db.sqlite3-wal",
        "app.log",
    ],
)
def test_what_editors_databases_and_logs_leave_is_not(tmp_path: Path, name: str):
    write(tmp_path, name)
    assert take_snapshot(str(tmp_path)) == {}


def test_an_environment_of_any_name_is_not_looked_into(tmp_path: Path):
    write(tmp_path, "python/pyvenv.cfg", "python/lib/x.py", "Api/v1/Get.py")
    assert take_snapshot(str(tmp_path)).keys() == {"Api/v1/Get.py"}
    assert [os.path.basename(path) for path, _ in find_top_folders(str(tmp_path))] == ["Api"]


def test_links_are_followed_but_not_in_circles(tmp_path: Path):
    write(tmp_path, "Shared/x.py")
    (tmp_path / "Api").mkdir()
    (tmp_path / "Api/linked").symlink_to("../Shared")
    (tmp_path / "Shared/again").symlink_to("..")
    (tmp_path / "Api/dangling.py").symlink_to("nowhere.py")
    found = take_snapshot(str(tmp_path))
    assert {"Shared/x.py", "Api/linked/x.py"} <= found.keys()
    assert len(found) < 20


def test_a_folder_with_a_dot_is_a_segment_below_api_and_nothing_elsewhere(tmp_path: Path):
    routes = {"Api/v1/openapi.json/Get.py", "Api/v1/.well-known/Jwks/Get.py", "Api/v1/[a.b]/Get.py"}
    write(tmp_path, *routes, "shop.egg-info/x.py", "Services/.idea/x.py")
    assert take_snapshot(str(tmp_path)).keys() == routes


def test_a_link_that_leads_nowhere_hides_nothing_beside_it(tmp_path: Path):
    names = {f"Api/v1/X/{name}.py" for name in ("Delete", "Get", "Post", "Put")}
    write(tmp_path, *names)
    (tmp_path / "Api/v1/X/Patch.py").symlink_to("nowhere.py")
    (tmp_path / "Api/v1/X/loop").symlink_to("loop")
    assert take_snapshot(str(tmp_path)).keys() == names


def test_a_folder_that_is_gone_is_empty(tmp_path: Path):
    assert take_snapshot(str(tmp_path / "gone")) == {}


def test_new_different_and_deleted_files_have_changed(tmp_path: Path):
    write(tmp_path, "a.py", "b.py", "c.py")
    before = take_snapshot(str(tmp_path))
    (tmp_path / "a.py").unlink()
    (tmp_path / "b.py").write_text("longer")
    write(tmp_path, "d.py")
    assert find_changed_files(before, take_snapshot(str(tmp_path))) == {"a.py", "b.py", "d.py"}


def test_a_save_by_rename_has_changed_though_size_and_time_are_the_same(tmp_path: Path):
    write(tmp_path, "a.py", "draft")
    os.utime(tmp_path / "a.py", ns=(5, 5))
    before = take_snapshot(str(tmp_path))
    (tmp_path / "draft").write_text("A.py")
    os.utime(tmp_path / "draft", ns=(5, 5))
    (tmp_path / "draft").replace(tmp_path / "a.py")
    assert find_changed_files(before, take_snapshot(str(tmp_path))) == {"a.py"}


def test_where_times_are_whole_seconds_a_reported_write_counts(tmp_path: Path):
    write(tmp_path, "a.py", "b.py")
    os.utime(tmp_path / "a.py", (5, 5))
    now = take_snapshot(str(tmp_path))
    assert find_changed_files(now, now, ["a.py", "b.py", "gone.py"]) == {"a.py"}


@pytest.mark.parametrize(
    ("path", "worth"),
    [
        ("/p/Api/v1/X/Get.py", True),
        ("/p/Api/v1/New", True),
        ("/p/treefold.toml", True),
        ("/p/Api/v2/version.toml", True),
        ("/p/Api/v2/User/Get.gone", True),
        ("/p/db.sqlite3-wal", False),
        ("/p/app.log", False),
        ("/p/Api/__pycache__/Get.cpython-311.pyc", False),
        ("/p/Api/__pycache__/Get.py", False),
        ("/p/Api/__pycache__", False),
        ("/p/Api/.Get.py.swp", False),
        ("/p/Api/Get.py~", False),
    ],
)
def test_only_events_that_may_matter_wake_it_up(path: str, worth: bool):
    assert needs_scan(path) is worth
