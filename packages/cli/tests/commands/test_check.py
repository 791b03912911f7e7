"""`treefold check`: what it reports and which exit code that means."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_sound_project_is_one_line(treefold: Treefold, project: Project):
    project("v1/User/Get.py", "v1/User/Post.py")
    code, out, _ = treefold("check")
    assert (code, out) == (0, "2 routes: 0 duplicate, 0 broken, 0 skipped\n")


def test_a_duplicate_is_reported_in_the_words_of_the_specification(
    treefold: Treefold, project: Project
):
    project("v1/USER/Get.py", "v1/User/Get.py")
    code, out, _ = treefold("check")
    assert code == 1
    assert out.splitlines()[:3] == [
        "[dup] GET /v1/user defined more than once",
        "  Api/v1/USER/Get.py",
        "  Api/v1/User/Get.py",
    ]


def test_skipped_files_are_listed_with_their_reason_and_are_no_failure(
    treefold: Treefold, project: Project
):
    project("User/Get.py", "V1/User/Get.py", "v1/User/Services/Get.py")
    code, out, _ = treefold("check")
    assert code == 0
    assert out.splitlines() == [
        "[skipped] Api/User/Get.py: not under a version folder (vN)",
        "[skipped] Api/V1/User/Get.py: not under a version folder (vN)",
        "[skipped] Api/v1/User/Services/Get.py: inside non-route folder 'Services'",
        "0 routes: 0 duplicate, 0 broken, 3 skipped",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def handler(:\n", "SyntaxError"),
        ("import no_such_module\n", "no_such_module"),
        ("raise SystemExit(5)\n", "SystemExit"),
        ("handler = 5\n", "handler"),
        ("x = 1\n", "handler"),
        ("def init():\n    1 / 0\n\n\ndef handler(request): ...\n", "ZeroDivisionError"),
    ],
)
def test_a_broken_handler_is_reported_and_a_failure(
    treefold: Treefold, project: Project, text: str, error: str
):
    root = project("v1/Health/Get.py")
    write(root, "Api/v1/User/Get.py", text)
    code, out, _ = treefold("check")
    assert code == 1
    first, last = out.splitlines()
    assert first.startswith("[broken] Api/v1/User/Get.py: ")
    assert error in first
    assert last == "2 routes: 0 duplicate, 1 broken, 0 skipped"


BOOT_FILES = [
    "Middleware/__init__.py",
    "Models/user.py",
    "extensions.py",
    "hooks.py",
    "providers.py",
]


@pytest.mark.parametrize("file", BOOT_FILES)
def test_a_broken_boot_file_is_reported_where_it_lies_and_with_the_rest(
    treefold: Treefold, project: Project, file: str
):
    root = project("User/Get.py")
    write(root, file, "1 / 0\n")
    write(root, "Api/v1/User/Get.py", "1 / 0\n")
    code, out, _ = treefold("check")
    assert code == 1
    assert out.splitlines() == [
        "[skipped] Api/User/Get.py: not under a version folder (vN)",
        f"[broken] {file}: ZeroDivisionError: division by zero",
        "[broken] Api/v1/User/Get.py: ZeroDivisionError: division by zero",
        "1 route: 0 duplicate, 2 broken, 1 skipped",
    ]
    code, out, _ = treefold("check", "--strict", "--format", "github")
    assert out.splitlines()[1:] == [
        f"::error file={broken},line=1::[broken] ZeroDivisionError: division by zero"
        for broken in (file, "Api/v1/User/Get.py")
    ]


def test_a_database_that_cannot_be_used_is_no_file(treefold: Treefold, project: Project):
    root = project("v1/User/Get.py")
    write(root, "treefold.toml", '[databases]\ndefault = "oracle://x"\n')
    code, out, _ = treefold("check", "--format", "github")
    assert code == 1
    assert out.startswith("::error::[broken] ")


def test_a_wrong_setting_is_reported(treefold: Treefold, project: Project):
    write(project("v1/User/Get.py"), "treefold.toml", "auto_haed = true\n")
    code, out, _ = treefold("check")
    assert code == 1
    assert out.startswith("[broken] Unknown setting 'auto_haed' in treefold.toml")


def test_a_default_version_that_no_folder_has_is_reported_with_the_rest(
    treefold: Treefold, project: Project
):
    root = project("v1/A/Get.py", "v1/B/Get.py")
    (root / "Api/v1/B/Get.py").write_text("1 / 0\n")
    (root / "treefold.toml").write_text("default_version = 'v9'\n")
    code, out, _ = treefold("check")
    assert (code, out.splitlines()) == (
        1,
        [
            "[broken] Api/v1/B/Get.py: ZeroDivisionError: division by zero",
            "[broken] Setting default_version must name a folder of Api/, got 'v9';"
            " use 'latest', v1",
            "2 routes: 0 duplicate, 2 broken, 0 skipped",
        ],
    )


def test_lints_are_reported_only_when_strict(treefold: Treefold, project: Project):
    project("v1/[id]/Get.py", "v1/[uid]/Post.py")
    assert treefold("check")[0] == 0
    code, out, _ = treefold("check", "--strict")
    assert code == 1
    assert out.startswith("[lint] One position is named 'id' and 'uid'")
    assert out.endswith("2 routes: 0 duplicate, 0 broken, 0 skipped, 1 lint\n")


def test_names_that_look_like_mistakes_are_reported_only_when_strict(
    treefold: Treefold, project: Project
):
    project("v1/User/{id}/Get.py", "v1/User/Putt.py", "v1/File/[...path]/Get.py")
    assert treefold("check")[:2] == (0, "2 routes: 0 duplicate, 0 broken, 0 skipped\n")
    code, out, _ = treefold("check", "--strict")
    assert code == 1
    assert out.splitlines()[:-1] == [
        "[lint] Api/v1/File/[...path]/Get.py: Parameter '...path' is no identifier, it can only be"
        " read as request.path_params['...path']; a parameter is one segment, name the folder"
        " '[path]'",
        "[lint] Api/v1/User/{id}/Get.py: Folder '{id}' is the plain segment '{id}', no parameter;"
        " name it '[id]'",
        "[lint] Api/v1/User/Putt.py: File 'Putt.py' is no method, so it serves no route; name it"
        " 'Put.py'",
    ]


def test_one_name_for_two_security_schemes_is_a_lint(treefold: Treefold, project: Project):
    root = project()
    for name, scheme in (("A", "basic"), ("B", "bearer")):
        text = "from treefold_http import secured\n@secured({scheme!r}, name='login')\n"
        text += "async def handler(request): ...\n"
        write(root, f"Api/v1/{name}/Get.py", text.format(scheme=scheme))
    assert treefold("check")[0] == 0
    code, out, _ = treefold("check", "--strict")
    assert code == 1
    assert out.startswith(
        "[lint] Security scheme 'login' is not the same at Api/v1/A/Get.py:2"
        " and at Api/v1/B/Get.py:2; "
    )


def test_strict_fails_for_a_skipped_file(treefold: Treefold, project: Project):
    project("User/Get.py", "v1/User/Get.py")
    assert treefold("check")[0] == 0
    assert treefold("check", "--strict")[0] == 1


LEAKING = """\
url = "postgres://joe:hunter2@db/x"


raise RuntimeError(f"cannot reach {url} password=abc")
"""


@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_secrets_of_a_traceback_are_masked_as_in_the_log(
    treefold: Treefold, project: Project, form: str
):
    root = project("v1/Health/Get.py")
    write(root, "Api/v1/Health/Get.py", LEAKING)
    code, out, err = treefold("check", "--format", form)
    assert code == 1
    assert "cannot reach postgres://joe:***@db/x password=***" in out
    assert not [secret for secret in ("hunter2", "abc") if secret in out + err]


def test_each_finding_is_printed_once(forked: Executable, project: Project):
    root = project("User/Get.py", "v1/User/Get.py", "v1/USER/Get.py")
    write(root, "Api/v1/Health/Get.py", "x = 1\n\n1 / 0\n")
    done = forked("check", cwd=root)
    shown = done.stdout + done.stderr
    for said in ("not under a version folder", "GET /v1/user", "Api/v1/Health/Get.py: "):
        assert shown.count(said) == 1, shown
    assert f'{root}/Api/v1/Health/Get.py", line 3, in <module>' in done.stderr


def test_the_traceback_of_one_cause_is_printed_once(forked: Executable, project: Project):
    root = project(*(f"v1/R{n}/Get.py" for n in range(4)))
    write(root, "Services/shared.py", "1 / 0\n")
    for n in range(3):
        write(root, f"Api/v1/R{n}/Get.py", "from Services import shared\n")
    write(root, "Api/v1/R3/Get.py", "1 / 0\n")
    done = forked("check", cwd=root)
    broken = [line for line in done.stdout.splitlines() if line.startswith("[broken] ")]
    assert broken == [
        f"[broken] Api/v1/R{n}/Get.py: ZeroDivisionError: division by zero" for n in range(4)
    ]
    assert done.stderr.count("Traceback") == 2
    assert done.stderr.count("  | and 2 files that import it\n") == 1


@pytest.mark.parametrize(("text", "line"), [("x = 1\n\n1 / 0\n", 3), ("\ndef handler(:\n", 2)])
def test_an_annotation_is_at_the_line_that_failed(
    treefold: Treefold, project: Project, text: str, line: int
):
    root = project()
    write(root, "Api/v1/Health/Get.py", text)
    out = treefold("check", "--format", "github")[1]
    assert out.startswith(f"::error file=Api/v1/Health/Get.py,line={line}::[broken] ")


def test_a_clash_of_two_files_is_one_annotation(treefold: Treefold, project: Project):
    project("v1/USER/Get.py", "v1/User/Get.py")
    assert treefold("check", "--format", "github")[1] == (
        "::error file=Api/v1/User/Get.py::[dup] GET /v1/user defined more than once:"
        " Api/v1/USER/Get.py, Api/v1/User/Get.py\n"
    )


def test_what_handlers_print_is_kept_out_of_json(treefold: Treefold, project: Project):
    root = project()
    write(root, "Api/v1/User/Get.py", "print('hello')\nraise OSError('disk')\n")
    code, out, _ = treefold("check", "--format", "json")
    report = json.loads(out)
    assert (code, report["ok"], report["routes"]) == (1, False, 1)
    (problem,) = report["problems"]
    assert problem["files"] == ["Api/v1/User/Get.py"]
    assert problem["detail"].startswith("Traceback")


def test_github_annotates(treefold: Treefold, project: Project):
    project("User/Get.py")
    assert treefold("check", "--format", "github")[1] == (
        "::warning file=Api/User/Get.py::[skipped] not under a version folder (vN)\n"
    )


@pytest.mark.parametrize("checkout", [True, False], ids=["checkout", "working directory"])
def test_github_finds_the_file_of_a_project_that_lies_deeper(
    treefold: Treefold, project: Project, monkeypatch: pytest.MonkeyPatch, checkout: bool
):
    """An annotation is shown at its line only where it names the file from the checkout on."""
    root = project("User/Get.py")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    if checkout:
        monkeypatch.setenv("GITHUB_WORKSPACE", str(root.parent))
        out = treefold("check", "--format", "github")[1]
    else:
        monkeypatch.chdir(root.parent)
        out = treefold("check", "--format", "github", "--app-dir", "project")[1]
    assert out == (
        "::warning file=project/Api/User/Get.py::[skipped] not under a version folder (vN)\n"
    )


def test_an_unknown_format_is_wrong_use(treefold: Treefold, project: Project):
    project()
    assert treefold("check", "--format", "xml") == (
        2,
        "",
        "Error: Invalid value 'xml' for --format; use one of text, json, github\n",
    )


def test_a_hostile_name_is_shown_escaped(treefold: Treefold, project: Project):
    project("v1/a\x1b[2J/Get.py")
    code, out, _ = treefold("check")
    assert (code, "\x1b" in out, r"\x1b[2J" in out) == (0, False, True)


@pytest.mark.parametrize("command", ["check", "routes", "dev", "serve"])
def test_without_an_api_folder_every_command_fails_alike(
    treefold: Treefold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
):
    monkeypatch.chdir(tmp_path)
    code, out, err = treefold(command)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("Error: No folder 'Api' in '.'; run this at the root of a project")
    assert list(tmp_path.iterdir()) == []


MOUNT = """
from treefold_http import StaticFiles


def mount(app):
    app.mount({prefix}, StaticFiles("web"))


on_startup = [mount]
"""


@pytest.mark.parametrize(
    ("prefix", "hooks", "error"),
    [
        ("/v1/user", "", ""),
        ("/v1/usr", "", "got '/v1/usr'; the nearest is '/v1/user'"),
        ("/static/x", MOUNT.format(prefix="'/static'"), ""),
        ("/sttic", MOUNT.format(prefix="'/static'"), "got '/sttic'; the nearest is "),
        ("/v1/usr", MOUNT.format(prefix="PREFIX"), "got '/v1/usr'; the nearest is '/v1/user'"),
        ("/computed", MOUNT.format(prefix="PREFIX"), ""),
        ("/docs", "", ""),
    ],
)
@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_prefix_that_covers_nothing_is_broken_unless_a_mount_is_computed(
    forked: Executable, project: Project, command: str, prefix: str, hooks: str, error: str
):
    root = project("v1/User/Get.py")
    entries = f"under({prefix!r}, IPAllowlist(['10.0.0.1']))"
    imports = "from treefold_http.middleware import *"
    write(root, "Middleware/__init__.py", f"{imports}\nmiddlewares = [{entries}]\n")
    write(root, "hooks.py", hooks)
    done = forked(command, cwd=root)

    assert (error in done.stdout, "Prefix of under()" in done.stdout) == (True, bool(error))
    assert done.returncode == int(bool(error))
