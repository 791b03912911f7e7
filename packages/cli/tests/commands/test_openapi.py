"""`treefold openapi`: the documents, printed or written."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]


def test_the_document_of_all_versions_is_printed_as_json(treefold: Treefold, project: Project):
    project("v1/User/[id]/Get.py", "v2/User/Post.py")
    code, out, _ = treefold("openapi")
    document = json.loads(out)

    assert code == 0
    assert document["openapi"] == "3.1.0"
    assert list(document["paths"]) == ["/v1/user/{id}", "/v2/user"]


def test_a_project_with_sessions_is_described_without_a_secret(
    treefold: Treefold, project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("TREEFOLD_SECRET_KEY", raising=False)
    root = project("v1/User/Get.py")
    (root / "Middleware").mkdir()
    (root / "Middleware/__init__.py").write_text(
        "from treefold_http.middleware import Sessions\n\nmiddlewares = [Sessions()]\n"
    )
    code, out, _ = treefold("openapi")

    assert (code, list(json.loads(out)["paths"])) == (0, ["/v1/user"])


def test_one_version_is_printed_alone(treefold: Treefold, project: Project):
    project("v1/User/Get.py", "v2/User/Post.py")
    code, out, _ = treefold("openapi", "--version", "v2")

    assert code == 0
    assert list(json.loads(out)["paths"]) == ["/v2/user"]


def test_sockets_have_a_document_of_their_own(treefold: Treefold, project: Project):
    project("v1/Chat/Get.py")
    code, out, _ = treefold("openapi", "--asyncapi")

    assert code == 0
    assert json.loads(out)["asyncapi"] == "3.0.0"


def test_the_default_version_is_printed_without_a_version(treefold: Treefold, project: Project):
    root = project("v1/User/Get.py", "v2/User/[id]/Post.py")
    (root / "treefold.toml").write_text('default_version = "latest"\n')
    code, out, _ = treefold("openapi", "--unversioned")

    assert code == 0
    assert list(json.loads(out)["paths"]) == ["/user/{id}"]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            (),
            1,
            "An unversioned document needs a default version;"
            ' set `default_version = "latest"` in the settings',
        ),
        (("--asyncapi",), 2, "--unversioned is for OpenAPI, got --asyncapi; leave one out"),
    ],
)
def test_there_is_no_unversioned_document_without_a_default_version(
    treefold: Treefold, project: Project, arguments: tuple[str, ...], code: int, error: str
):
    project("v1/User/Get.py")
    found, out, err = treefold("openapi", "--unversioned", *arguments)

    assert (found, out) == (code, "")
    assert err.splitlines()[-1] == f"Error: {error}"


def test_an_unknown_version_names_the_known_ones(treefold: Treefold, project: Project):
    project("v1/User/Get.py", "v2/User/Post.py")
    code, out, err = treefold("openapi", "--version", "v3")

    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == (
        "Error: There is no version 'v3'; known versions: v1, v2; see --version"
    )


def test_an_unknown_format_is_misuse(treefold: Treefold, project: Project):
    project("v1/User/Get.py")
    assert treefold("openapi", "--format", "xml") == (
        2,
        "",
        "Error: Invalid value 'xml' for --format; use one of json, yaml\n",
    )


def test_a_folder_without_routes_is_refused(treefold: Treefold, tmp_path: Path):
    code, out, err = treefold("openapi", "--app-dir", str(tmp_path))

    assert (code, out) == (1, "")
    assert "No folder 'Api'" in err


def test_a_boot_file_that_fails_is_one_line(treefold: Treefold, project: Project):
    (project("v1/User/Get.py") / "hooks.py").write_text("raise ValueError('no')")
    code, out, err = treefold("openapi")

    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "Error: hooks.py cannot be used: ValueError: no"


def test_what_handlers_print_is_not_in_the_document(treefold: Treefold, project: Project):
    root = project("v1/User/Get.py")
    (root / "Api/v1/User/Get.py").write_text("print('loud')\nasync def handler(request): ...\n")
    code, out, err = treefold("openapi")

    assert code == 0
    assert json.loads(out)["openapi"] == "3.1.0"
    assert "loud" in err


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["--out", "made.json"], "{\n"),
        (["--out", "made.yaml"], 'openapi: "3.1.0"\n'),
        (["--out", "made.YML"], 'openapi: "3.1.0"\n'),
        (["--out", "made"], "{\n"),
        (["--out", "made.json", "--format", "yaml"], 'openapi: "3.1.0"\n'),
    ],
)
def test_a_file_is_written_whole_in_the_format_of_its_name(
    treefold: Treefold, project: Project, arguments: list[str], start: str
):
    root = project("v1/User/Get.py")
    code, out, err = treefold("openapi", *arguments)
    made = root / arguments[1]

    assert (code, out) == (0, "")
    assert err.splitlines()[-1] == f"wrote {arguments[1]}"
    assert made.read_text().startswith(start)
    assert sorted(entry.name for entry in root.iterdir() if entry.is_file()) == [arguments[1]]


def test_a_file_that_was_there_is_replaced_and_keeps_its_mode(treefold: Treefold, project: Project):
    root = project("v1/User/Get.py")
    old = root / "made.json"
    old.write_text("old")
    old.chmod(0o640)
    link = root / "link.json"
    link.symlink_to(old)

    assert treefold("openapi", "--out", "link.json")[0] == 0
    assert link.is_symlink()
    assert json.loads(old.read_text())["openapi"] == "3.1.0"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_a_new_file_may_be_read_by_whom_the_umask_lets(treefold: Treefold, project: Project):
    root = project("v1/User/Get.py")
    before = os.umask(0o027)
    try:
        assert treefold("openapi", "--out", "made.json")[0] == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "made.json").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("missing/made.json", "Cannot use 'missing/made.json': No such file or directory"),
        (".", "Is a directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(
    treefold: Treefold, project: Project, out: str, message: str
):
    root = project("v1/User/Get.py")
    code, printed, err = treefold("openapi", "--out", out)

    assert (code, printed) == (1, "")
    assert message in err.splitlines()[-1]
    assert [entry.name for entry in root.iterdir() if entry.is_file()] == []


def test_the_document_goes_to_a_pipe_as_it_is(
    executable: Callable[..., "subprocess.CompletedProcess[str]"], project: Project
):
    root = project("v1/User/Get.py")
    done = executable("openapi", "--out", "/dev/stdout", cwd=root)

    assert done.returncode == 0
    assert json.loads(done.stdout)["openapi"] == "3.1.0"
