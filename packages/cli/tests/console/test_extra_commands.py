"""Commands of other packages: found by entry point, loaded when typed, unable to do harm."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

MODULE = """\
print("imported")


def migrate(name: str = "all", app_dir: str = ".") -> int:
    '''Apply migrations.'''
    print("migrating", name)
    return 3


def show() -> int:
    '''Show migrations.'''
    return 0


def plain(target: str = "", *, dry_run: bool = False, rename: list[str] = [], app_dir: str = "."):
    '''Do it plainly.

    In two paragraphs.

    Args:
        target: Where to stop.
        dry_run: Change nothing, whatever
            the target is.
        rename: What is called otherwise, as old:new.
        app_dir: The project.

    Returns:
        A number.
    '''
    print(target, dry_run, list(rename or ()), app_dir)
    return 0


def count(ids: list[int], *, most: int = 5, seconds: float = 0.5, app_dir: str = "."):
    '''Count.'''
    print(sum(ids), most + 1, seconds + 1)
    return 0


def in_project(*, app_dir: str = ".") -> int:
    '''Look at the models.'''
    import sys
    print(*sorted(name for name in sys.modules if name.startswith("Models")))
    return 0


in_project.needs_project = True
"""
ENTRIES = """\
[treefold.commands]
migrate = other_package:migrate
migrations show = other_package:show
broken = no_such_module:nothing
routes = other_package:migrate
plain = other_package:plain
count = other_package:count
models = other_package:in_project
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    info = tmp_path / "other_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (tmp_path / "other_package.py").write_text(MODULE)
    (tmp_path / "Api/v1").mkdir(parents=True)

    def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        program += "from treefold_cli import main\nmain()\n"
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return call


def test_a_command_runs_with_its_options_and_its_exit_code(run: Run):
    done = run("migrate", "--name", "one")
    assert (done.returncode, done.stdout) == (3, "imported\nmigrating one\n")


def test_a_name_of_two_words_is_a_command_in_a_group(run: Run):
    assert run("migrations", "show").returncode == 0
    assert "Show migrations." in run("migrations", "--help").stdout
    unknown = run("migrations", "shw")
    message = "Error: Unknown command 'migrations shw'; did you mean 'show'\n"
    assert (unknown.returncode, unknown.stderr) == (2, message)


def test_the_help_lists_them_after_the_built_in_ones(run: Run):
    done = run("--help")
    assert done.returncode == 0
    listed = [
        line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line
    ]
    added = ["broken", "count", "migrate", "migrations", "models", "plain"]
    assert listed[-7:] == ["contract", *added]


def test_what_is_built_in_wins_and_imports_nothing_of_them(run: Run):
    done = run("routes")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_package_that_is_broken_says_so_where_it_is_used(run: Run):
    done = run("broken")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: Command 'broken' of 'other-package' cannot be loaded (ModuleNotFoundError: No"
        " module named 'no_such_module'); mend or uninstall that package\n"
    )


def test_a_typing_error_finds_them_too(run: Run):
    assert run("migrat").stderr.startswith("Error: Unknown command 'migrat'; did you mean 'migrat")


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ([], " False [] ."),
        (["0002", "--dry-run"], "0002 True [] ."),
        (["--rename", "a:b", "--rename", "c:d"], " False ['a:b', 'c:d'] ."),
        (["--app-dir", "elsewhere"], " False [] elsewhere"),
    ],
)
def test_a_plain_function_has_arguments_and_options(run: Run, words: list[str], printed: str):
    done = run("plain", *words)
    assert (done.returncode, done.stdout) == (0, f"imported\n{printed}\n"), done.stderr


def test_the_numbers_of_a_plain_function_are_read(run: Run):
    done = run("count", "1", "2", "--most", "7")
    assert (done.returncode, done.stdout) == (0, "imported\n3 8 1.5\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["1", "x"], "'ids' must be a whole number, got 'x'"),
        (["1", "--most", "2.5"], "'most' must be a whole number, got '2.5'"),
        (["1", "--seconds", "soon"], "'seconds' must be a number, got 'soon'"),
    ],
)
def test_text_in_the_place_of_a_number_is_misuse(run: Run, words: list[str], said: str):
    done = run("count", *words)
    assert (done.returncode, done.stderr) == (2, f"Error: {said}\n")


def test_the_help_of_a_plain_function_is_its_docstring(run: Run):
    said = " ".join(run("plain", "--help").stdout.split())
    assert "TARGET" in said.partition("Do it plainly.")[0]
    assert "Where to stop." in said
    assert "Do it plainly. In two paragraphs." in said
    assert "--dry-run Change nothing, whatever the target is." in said
    assert "--rename RENAME" in said
    assert "What is called otherwise, as old:new." in said
    assert "The root of the project, the folder that holds Api/." in said
    assert "A number" not in said


def test_a_wrong_option_of_a_plain_function_is_misuse(run: Run):
    done = run("plain", "--dry")
    assert (done.returncode, done.stdout) == (2, "imported\n")
    assert done.stderr.startswith("Error: No such option: --dry")


def test_a_command_that_needs_the_project_has_its_models(run: Run, tmp_path: Path):
    (tmp_path / "Api/v1/Get.py").write_text("raise SystemExit(9)\n")
    (tmp_path / "Models").mkdir()
    (tmp_path / "Models/__init__.py").write_text("")
    (tmp_path / "Models/shop.py").write_text("print('models speak')\n")
    done = run("models")
    assert (done.returncode, done.stdout) == (0, "imported\nModels Models.shop\n"), done.stderr
    (tmp_path / "Models/shop.py").write_text("1 / 0\n")
    done = run("models")
    assert done.returncode == 1
    assert "Error: Models/shop.py cannot be used: ZeroDivisionError" in done.stderr
    assert run("models", "--app-dir", "nowhere").returncode == 2
