"""Endpoint, skipped with a reason, or ordinary: decided from names."""

import pytest

from treefold_router import Skipped
from treefold_router._classify import Endpoint, classify_entry
from treefold_router._scan import Entry

NOT_VERSIONED = "not under a version folder (vN)"


def kind(file: str, defect: str = "", *, is_folder: bool = False) -> Endpoint | Skipped | None:
    return classify_entry(Entry(tuple(file.split("/")), defect, is_folder))


@pytest.mark.parametrize(
    ("file", "method", "folders"),
    [
        ("v1/User/Role/Get.py", "GET", ("v1", "User", "Role")),
        ("v1/User/[id]/Get.py", "GET", ("v1", "User", "[id]")),
        ("v2/User/Role/post.py", "POST", ("v2", "User", "Role")),
        ("v1/Get.py", "GET", ("v1",)),
        ("v1/Chat/Ws.py", "WEBSOCKET", ("v1", "Chat")),
        ("v1/services/Get.py", "GET", ("v1", "services")),
        ("v1/Get.py/Get.py", "GET", ("v1", "Get.py")),
        ("v1/v2/Get.py", "GET", ("v1", "v2")),
    ],
)
def test_a_method_file_below_a_version_is_an_endpoint(
    file: str, method: str, folders: tuple[str, ...]
) -> None:
    assert kind(file) == Endpoint(method, folders, file)


@pytest.mark.parametrize(
    "file",
    [
        "Get.py",
        "User/Get.py",
        "V1/Get.py",
        "v1.2/Get.py",
        "v1-beta/User/Post.py",
        "Services/Get.py",
    ],
)
def test_rule_1_a_method_file_outside_a_version_is_skipped(file: str) -> None:
    assert kind(file) == Skipped(file, NOT_VERSIONED)


@pytest.mark.parametrize(
    ("folder", "shown"),
    [("v\u0663", "v\u0663"), ("v1\n", "v1\\n"), ("\u0076\u0661", "v\u0661")],
)
def test_s09_version_look_alikes_are_skipped(folder: str, shown: str) -> None:
    assert kind(f"{folder}/Get.py") == Skipped(f"{shown}/Get.py", NOT_VERSIONED)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("v1/Services/Get.py", "Services"),
        ("v1/User/Services/Deep/Get.py", "Services"),
        ("v1/User/__pycache__/Get.py", "__pycache__"),
        ("v1/__pycache__/Services/Get.py", "__pycache__"),
    ],
)
def test_rule_7_a_method_file_in_an_opt_out_folder_is_skipped(file: str, name: str) -> None:
    assert kind(file) == Skipped(file, f"inside non-route folder '{name}'")


@pytest.mark.parametrize(
    "file",
    ["v1/User/names.py", "shared.py", "v1/__init__.py", "v1/Services/names.py", "x/\udcff.py"],
)
def test_other_stems_are_ordinary_code(file: str) -> None:
    assert kind(file) is None


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("v1/a\nb/Get.py", "folder name holds a control character, no URL can reach it"),
        ("v1/\udcff/Get.py", "name is not valid UTF-8, no URL can reach it"),
        ("v1/User/Get\udcff.py", "name is not valid UTF-8, no URL can reach it"),
        ("v1/" + "a/" * 64 + "Get.py", "more than 64 segments deep, no URL can reach it"),
    ],
)
def test_s122_a_place_no_url_can_reach_is_skipped_and_printable(file: str, reason: str) -> None:
    skipped = kind(file)
    assert isinstance(skipped, Skipped)
    assert skipped.reason == reason
    assert skipped.file.isprintable()


def test_s18_the_deepest_place_a_url_can_reach_is_an_endpoint() -> None:
    assert isinstance(kind("v1/" + "a/" * 63 + "Get.py"), Endpoint)


def test_s122_a_method_file_in_trouble_is_skipped_for_it() -> None:
    assert kind("v1/Get.py", "not a regular file") == Skipped("v1/Get.py", "not a regular file")


def test_an_ordinary_file_in_trouble_is_still_ordinary() -> None:
    assert kind("v1/names.py", "not a regular file") is None


def test_s122_a_folder_that_could_hold_routes_is_skipped_for_its_trouble() -> None:
    assert kind("v1/x", "symbolic link loops", is_folder=True) == Skipped(
        "v1/x", "symbolic link loops"
    )


@pytest.mark.parametrize("folder", ["Shared", "v1/Services", "v1/User/Services/x"])
def test_a_folder_that_could_hold_none_is_not_mentioned(folder: str) -> None:
    assert kind(folder, "symbolic link loops", is_folder=True) is None
