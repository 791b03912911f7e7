"""`treefold routes`: the table from names alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]


def test_every_method_url_and_file_is_listed(treefold: Treefold, project: Project):
    project("v1/User/[id]/Get.py", "v10/User/Get.py", "v2/User/Post.py", "v1/Chat/Ws.py")
    assert treefold("routes") == (
        0,
        "WEBSOCKET  /v1/chat       Api/v1/Chat/Ws.py\n"
        "GET        /v1/user/{id}  Api/v1/User/[id]/Get.py\n"
        "POST       /v2/user       Api/v2/User/Post.py\n"
        "GET        /v10/user      Api/v10/User/Get.py\n",
        "",
    )


def test_json_carries_the_same(treefold: Treefold, project: Project):
    project("v1/User/[id]/Get.py")
    code, out, _ = treefold("routes", "--json")
    assert (code, json.loads(out)) == (
        0,
        [
            {
                "method": "GET",
                "url": "/v1/user/{id}",
                "file": "Api/v1/User/[id]/Get.py",
                "version": "v1",
                "parameters": ["id"],
            }
        ],
    )


def test_json_of_no_routes_is_an_empty_list(treefold: Treefold, project: Project):
    project()
    assert treefold("routes", "--json") == (0, "[]\n", "")


def test_no_routes_say_how_to_make_one(treefold: Treefold, project: Project):
    project()
    assert treefold("routes") == (
        0,
        "",
        "No routes; make one with 'treefold create user get'\n",
    )


def test_no_handler_is_imported(treefold: Treefold, project: Project):
    root = project("v1/User/Get.py")
    (root / "Api/v1/User/Get.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    assert treefold("routes")[0] == 0
    assert not (root / "imported").exists()


def test_another_project_can_be_named(
    treefold: Treefold, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = project("v1/User/Get.py")
    monkeypatch.chdir(tmp_path)
    expected = (0, "GET  /v1/user  Api/v1/User/Get.py\n", "")
    assert treefold("routes", "--app-dir", str(root)) == expected
    monkeypatch.setenv("TREEFOLD_APP_DIR", str(root))
    assert treefold("routes") == expected
