"""Completion in a real bash, and over the protocol that the scripts of other shells speak."""

import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

Project = Callable[..., Path]
Forked = Callable[..., "subprocess.CompletedProcess[str]"]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]
Offered = Callable[[Path, str, str], list[str]]
SCRIPTS = sysconfig.get_path("scripts")
URLS = ["/v1/user", "/v1/user/{id}"]


@pytest.fixture
def root(project: Project) -> Path:
    return project("v1/User/Get.py", "v1/User/[id]/Get.py", "v1/User/[id]/Post.py")


def in_bash(program: str, *, home: Path, cwd: Path | None = None) -> str:
    environment = {"PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)}
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{program}\ntrue"],  # so that bash stays the parent
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


COMPLETE = """\
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
function=$(complete -p {name} | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
$function {name}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("name", ["treefold", "tfold"])
def test_bash_completes_once_it_is_installed(tmp_path: Path, root: Path, name: str):
    said = in_bash(f"{name} --install-completion", home=tmp_path)
    assert "bash completion installed in" in said
    words = COMPLETE.format(words=f"{name} r", name=name)
    installed = f"source ~/.bash_completions/{name}.sh\n"
    assert in_bash(installed + words, home=tmp_path, cwd=root).split() == ["routes"]
    words = COMPLETE.format(words=f"{name} why get /v1/u", name=name)
    assert in_bash(installed + words, home=tmp_path, cwd=root).split() == URLS
    assert name in (tmp_path / ".bashrc").read_text()


def test_the_script_can_be_shown_instead(tmp_path: Path):
    script = in_bash("treefold --show-completion", home=tmp_path)
    assert "complete -o default -F _treefold_completion treefold" in script
    assert not (tmp_path / ".bashrc").exists()


@pytest.mark.parametrize(
    ("shell", "file", "begin"),
    [
        ("bash", ".bash_completions/treefold.sh", "_treefold_completion() {"),
        ("zsh", ".zfunc/_treefold", "#compdef treefold"),
        ("fish", ".config/fish/completions/treefold.fish", "complete --command treefold"),
    ],
)
def test_each_shell_gets_the_script_that_the_variable_prints(
    executable: Executable, tmp_path: Path, shell: str, file: str, begin: str
):
    here = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert executable("--install-completion", shell, cwd=tmp_path, **here).returncode == 0
    script = (tmp_path / file).read_text().strip()
    assert script.startswith(begin)
    printed = executable(cwd=tmp_path, _TREEFOLD_COMPLETE=f"source_{shell}")
    assert (printed.returncode, printed.stdout.strip()) == (0, script)


@pytest.fixture
def offered(forked: Forked) -> Offered:
    """What is offered for a line that is typed in a folder."""

    def ask(root: Path, typed: str, shell: str) -> list[str]:
        words = str(len(typed.split(" ")) - 1)
        variables = {
            "bash": {"COMP_WORDS": typed, "COMP_CWORD": words},
            "zsh": {"_TYPER_COMPLETE_ARGS": typed},
            "fish": {"_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        }[shell]
        done = forked(cwd=root, _TREEFOLD_COMPLETE=f"complete_{shell}", **variables)
        assert done.stderr == ""
        return done.stdout.splitlines()

    return ask


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("treefold ch", "check"),
        ("treefold version cr", "create"),
        ("treefold test /v1/user/", "/v1/user/{id}"),
        ("treefold routes --app", "--app-dir"),
        ("treefold create v1/user po", "post"),
        ("treefold create v1/us", "v1/user/[id]"),
        ("treefold create /v1/us", "/v1/user/[id]"),
        ("treefold why DEL", "DELETE"),
        ("treefold why so", "socket"),
        ("treefold check --format g", "github"),
        ("treefold openapi --format y", "yaml"),
        ("treefold openapi --version v", "v1"),
        ("treefold typecheck --with p", "pyright"),
        ("treefold dev --default-version v", "v1"),
        ("treefold version create 2 --from v", "v1"),
        ("treefold version diff v", "v1"),
    ],
)
def test_every_shell_is_offered_the_word(
    offered: Offered, root: Path, shell: str, typed: str, expected: str
):
    assert expected in "\n".join(offered(root, typed, shell))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("typed", ["treefold nope ", "treefold version nope x"])
def test_a_mistyped_command_writes_nothing_into_the_line(
    offered: Offered, root: Path, shell: str, typed: str
):
    offered(root, typed, shell)


def test_completion_knows_the_project_that_a_folder_is_in(offered: Offered, root: Path):
    assert offered(root / "Api/v1/User", "treefold why get /", "bash") == URLS


def test_no_handler_is_imported_and_no_project_is_needed(
    offered: Offered, root: Path, tmp_path: Path
):
    (root / "Api/v1/User/Get.py").write_text("open('imported', 'w')\n")
    assert offered(root, "treefold why get /", "bash") == URLS
    assert not (root / "imported").exists()
    assert offered(tmp_path, "treefold why get /", "bash") == [""]
