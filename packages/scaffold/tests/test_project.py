"""`create_project`: the files that it writes, the names that it refuses, no remains (S-123)."""

import ast
import asyncio
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from treefold_scaffold import ScaffoldError, create_project
from treefold_scaffold._templates import PROJECT_NAME

LAYOUT = {
    "Api/v1/Health/Get.py",
    "Middleware/__init__.py",
    "Services/__init__.py",
    "Models/__init__.py",
    "Utils/__init__.py",
    "Tests/__init__.py",
    "hooks.py",
    "README.md",
}
STARTER = {".gitignore", "AGENTS.md", "treefold.toml", "Tests/test_health.py"}
FOLDERS = {"Api", "Api/v1", "Api/v1/Health", "Middleware", "Services", "Models", "Utils", "Tests"}


def entries(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


def assigned(file: Path) -> dict[str, object]:
    statements = ast.parse(file.read_text(encoding="utf-8")).body
    return {
        ast.unparse(statement.targets[0]): ast.literal_eval(statement.value)
        for statement in statements
        if isinstance(statement, ast.Assign)
    }


def test_the_layout_is_exactly_that_of_the_specification(tmp_path: Path):
    assert entries(create_project("shop", tmp_path)) == LAYOUT | FOLDERS


@pytest.mark.parametrize(
    ("starter", "models", "more"),
    [
        (True, False, STARTER),
        (False, True, {"Models/note.py", "treefold.toml"}),  # a model needs a database
        (True, True, STARTER | {"Models/note.py"}),
    ],
)
def test_a_starter_and_a_model_add_their_files_only(
    tmp_path: Path, starter: bool, models: bool, more: set[str]
):
    project = create_project("shop", tmp_path, starter=starter, models=models)
    assert entries(project) == LAYOUT | FOLDERS | more


def test_the_settings_of_a_starter_name_one_database(tmp_path: Path):
    project = create_project("shop", tmp_path, starter=True)
    with (project / "treefold.toml").open("rb") as file:
        assert tomllib.load(file) == {"databases": {"default": "sqlite:///db.sqlite3"}}


def test_git_leaves_out_what_runs_write_and_the_secrets(tmp_path: Path):
    project = create_project("shop", tmp_path, starter=True)
    for name in ("db.sqlite3", "db.sqlite3-wal", ".env", "Api/__pycache__/x.pyc", ".venv/bin/x"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    git = ["git", "-C", str(project), "-c", "safe.directory=*"]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True
    )
    assert set(listed.stdout.split()) == LAYOUT | STARTER


def test_the_path_of_the_project_is_returned(tmp_path: Path):
    assert create_project("shop", tmp_path) == tmp_path / "shop"


def test_nothing_but_the_project_appears_beside_it(tmp_path: Path):
    create_project("shop", tmp_path)
    assert os.listdir(tmp_path) == ["shop"]


def test_the_health_handler_answers_with_a_status(tmp_path: Path):
    names: dict[str, Any] = {}
    exec((create_project("shop", tmp_path) / "Api/v1/Health/Get.py").read_text(), names)
    assert asyncio.run(names["handler"](None)) == {"status": "ok"}


def test_the_middleware_list_is_empty(tmp_path: Path):
    file = create_project("shop", tmp_path) / "Middleware/__init__.py"
    assert assigned(file) == {"middlewares": []}


def test_hooks_holds_two_empty_lists(tmp_path: Path):
    file = create_project("shop", tmp_path) / "hooks.py"
    assert assigned(file) == {"on_startup": [], "on_shutdown": []}


@pytest.mark.parametrize("folder", ["Services", "Models", "Utils", "Tests"])
def test_the_other_folders_hold_one_empty_placeholder(tmp_path: Path, folder: str):
    project = create_project("shop", tmp_path)
    assert [file.read_bytes() for file in (project / folder).iterdir()] == [b""]


def test_the_readme_says_how_to_run_it(tmp_path: Path):
    text = (create_project("my-shop", tmp_path) / "README.md").read_text(encoding="utf-8")
    test = 'pip install "treefold[test]"'
    for line in (
        "# my-shop\n",
        'pip install "treefold[watch]"\n',
        "treefold dev\n",
        "curl http://127.0.0",
        test,
    ):
        assert line in text


def test_the_page_for_agents_is_one_screen(tmp_path: Path):
    lines = (
        (create_project("my-shop", tmp_path, starter=True) / "AGENTS.md").read_text().split("\n")
    )
    assert lines[0] == "# my-shop, for coding agents"
    assert len(lines) <= 42
    assert max(map(len, lines)) <= 100


def test_no_token_of_the_templates_is_left(tmp_path: Path):
    project = create_project("shop", tmp_path, starter=True)
    written = LAYOUT | STARTER
    assert not [name for name in written if PROJECT_NAME in (project / name).read_text("utf-8")]


def test_a_service_is_importable_from_the_root_of_the_project(tmp_path: Path):
    project = create_project("shop", tmp_path)
    (project / "Services/mail.py").write_text("sent = 'yes'\n")
    command = [sys.executable, "-c", "from Services.mail import sent; print(sent)"]
    assert subprocess.run(command, cwd=project, capture_output=True).stdout.split() == [b"yes"]


def test_a_test_in_the_project_can_import_a_service(tmp_path: Path):
    project = create_project("shop", tmp_path)
    (project / "Services/mail.py").write_text("sent = 'yes'\n")
    (project / "Tests/test_mail.py").write_text(
        "from Services.mail import sent\n\n\ndef test_sent():\n    assert sent == 'yes'\n"
    )
    program = (
        "import sys; sys.path.remove(''); import pytest; sys.exit(pytest.main(['-q', 'Tests']))"
    )
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, cwd=project, capture_output=True).returncode == 0


@pytest.mark.parametrize("name", ["a", "shop", "Shop2", "my-api", "my_api", "a" * 64])
def test_a_plain_name_is_taken(tmp_path: Path, name: str):
    assert (create_project(name, tmp_path) / "hooks.py").is_file()


SHAPES = [
    "",
    "..",
    "../x",
    "../../x",
    "/absolute",
    "a/b",
    "a\\b",
    "C:\\x",
    "-rf",
    "_x",
    "1x",
    "a b",
    "a\nb",
    "a\n",
    "a\x00b",
    "{{7*7}}",
    '"""',
    "a.b",
    "~",
    "\ufb01le",  # a ligature: NFKC would make it 'file'
    "\uff41bc",  # full-width letter
    "a" * 65,
]


@pytest.mark.parametrize("name", SHAPES)
def test_a_name_of_another_shape_is_refused_and_nothing_written(tmp_path: Path, name: str):
    with pytest.raises(ScaffoldError) as refused:
        create_project(name, tmp_path / "here")
    assert str(refused.value) == (
        f"Project name {name!r} must be a letter followed by at most 63 letters, digits, '_' or"
        " '-' (ASCII); choose another, such as 'my-api'"
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("class", "is a Python keyword"),
        ("None", "is a Python keyword"),
        ("json", "is the name of a standard library module"),
        ("asyncio", "is the name of a standard library module"),
        ("treefold", "is a name of the framework"),
        ("TreeFold", "is a name of the framework"),
        ("treefold-http", "is a name of the framework"),
        ("treefold_router", "is a name of the framework"),
        ("con", "is a device name on Windows"),
        ("NUL", "is a device name on Windows"),
        ("com1", "is a device name on Windows"),
        ("Lpt9", "is a device name on Windows"),
    ],
)
def test_a_name_already_taken_elsewhere_is_refused(tmp_path: Path, name: str, reason: str):
    with pytest.raises(ScaffoldError, match=f"^Project name '{name}' {reason}; choose another"):
        create_project(name, tmp_path)
    assert os.listdir(tmp_path) == []


@given(st.text())
def test_only_names_of_the_allowed_shape_reach_the_disk(name: str):
    missing = Path(os.devnull) / "missing"  # every allowed name then fails on the disk
    with pytest.raises((ScaffoldError, OSError)) as refused:
        create_project(name, missing)
    assert isinstance(refused.value, ScaffoldError) or name.replace("-", "_").isidentifier()


def folder(path: Path) -> None:
    path.mkdir()


def filled_folder(path: Path) -> None:
    path.mkdir()
    (path / "mine").write_text("mine")


def file(path: Path) -> None:
    path.write_text("mine")


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("existing", [folder, filled_folder, file, dangling_link])
def test_an_existing_target_is_refused_and_left_as_it_is(
    tmp_path: Path, existing: Callable[[Path], object]
):
    existing(tmp_path / "shop")
    before = entries(tmp_path)
    with pytest.raises(ScaffoldError) as refused:
        create_project("shop", tmp_path)
    assert str(refused.value) == (
        f"Target {str(tmp_path / 'shop')!r} exists; choose another name or remove it"
    )
    assert entries(tmp_path) == before


def test_a_missing_parent_is_the_error_of_the_disk(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as caught:
        create_project("shop", tmp_path / "missing")
    assert caught.value.filename == str(tmp_path / "missing/shop")
    assert os.listdir(tmp_path) == []


def test_a_failure_half_way_leaves_nothing(tmp_path: Path):
    # A limit on the size of files fails the first write that is not empty, as a full disk does.
    program = (
        "import resource, signal, sys\n"
        "from treefold_scaffold import create_project\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"  # the README is longer
        "try:\n"
        "    create_project('shop', sys.argv[1])\n"
        "except OSError as error:\n"
        "    sys.exit(f'OSError {error.errno}')\n"
    )
    command = [sys.executable, "-B", "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (1, "OSError 27")
    assert os.listdir(tmp_path) == []


def test_of_many_at_once_one_makes_the_project(tmp_path: Path):
    program = (
        "import sys\n"
        "from treefold_scaffold import ScaffoldError, create_project\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    create_project('shop', sys.argv[1])\n"
        "except ScaffoldError:\n"
        "    sys.exit(3)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(4)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"\n")
        racer.stdin.flush()
    for racer in racers:
        racer.communicate()
    assert sorted(racer.returncode for racer in racers) == [0, 3, 3, 3]
    assert os.listdir(tmp_path) == ["shop"]
