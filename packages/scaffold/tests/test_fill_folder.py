"""`fill_folder`: a project in a folder that exists, completely or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from treefold_scaffold import ScaffoldError, fill_folder

LAYOUT = ["Api", "Middleware", "Models", "README.md", "Services", "Tests", "Utils", "hooks.py"]


def test_an_empty_folder_becomes_a_project(tmp_path: Path):
    assert fill_folder(tmp_path) == ()
    assert sorted(os.listdir(tmp_path)) == LAYOUT
    assert (tmp_path / "Api/v1/Health/Get.py").is_file()


def test_a_starter_and_a_model_are_written_too(tmp_path: Path):
    fill_folder(tmp_path, starter=True, models=True)
    assert sorted(os.listdir(tmp_path)) == [".gitignore", "AGENTS.md", *LAYOUT, "treefold.toml"]
    assert (tmp_path / "Models/note.py").is_file()


def test_a_fresh_clone_with_an_environment_is_filled(tmp_path: Path):
    for name in (".git/config", ".venv/bin/python", ".python-version"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    fill_folder(tmp_path, starter=True)
    assert (tmp_path / ".git/config").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == sorted(
        [".git", ".venv", ".python-version", ".gitignore", "AGENTS.md", "treefold.toml", *LAYOUT]
    )


def test_a_gitignore_that_is_there_is_kept_and_named(tmp_path: Path):
    (tmp_path / ".gitignore").write_text("mine\n")
    assert fill_folder(tmp_path, starter=True) == (".gitignore",)
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert (tmp_path / "treefold.toml").is_file()


@pytest.mark.parametrize("name", ["LICENSE", "venv", "hooks.py", "[id]", "a\nb"])
def test_a_folder_with_a_visible_entry_is_refused(tmp_path: Path, name: str):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ScaffoldError) as refused:
        fill_folder(tmp_path)
    assert str(refused.value) == (
        f"Folder {str(tmp_path)!r} must be empty but for dotfiles, it holds {name!r};"
        " move it away or give the name of a new folder"
    )
    assert os.listdir(tmp_path) == [name]


def test_the_entries_of_a_full_folder_are_counted_not_listed(tmp_path: Path):
    for number in range(40):
        (tmp_path / f"file{number:02}").write_text("")
    with pytest.raises(ScaffoldError, match="it holds 'file00', 'file01', 'file02' and 37 more;"):
        fill_folder(tmp_path)


@pytest.mark.parametrize(
    ("folder", "title"),
    [
        ("tool library", "# tool library\n"),
        ("json", "# json\n"),  # a name of a folder that exists is the choice of its owner
        ("Bücher", "# Bücher\n"),
        ("<script>", "# API\n"),
        ("a\n# b", "# API\n"),
    ],
)
def test_the_readme_is_titled_after_a_plain_folder_name(tmp_path: Path, folder: str, title: str):
    (tmp_path / folder).mkdir()
    fill_folder(tmp_path / folder)
    assert (tmp_path / folder / "README.md").read_text("utf-8").startswith(title)


def test_a_file_is_no_folder_to_fill(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError):
        fill_folder(tmp_path / "file")


def test_a_write_that_fails_leaves_the_folder_as_it_was(tmp_path: Path):
    # A limit on the size of files fails the README, as a full disk does.
    (tmp_path / ".git").mkdir()
    program = (
        "import resource, signal, sys\n"
        "from treefold_scaffold import fill_folder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "try:\n"
        "    fill_folder(sys.argv[1])\n"
        "except OSError as error:\n"
        "    sys.exit(f'OSError {error.errno}')\n"
    )
    command = [sys.executable, "-B", "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (1, "OSError 27")
    assert os.listdir(tmp_path) == [".git"]


def test_an_entry_that_appears_meanwhile_undoes_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # The last entry of the layout is made by another program after the check of the folder.
    rename = Path.rename

    def rename_and_interfere(self: Path, target: Path) -> Path:
        if target.name == "Api":
            (tmp_path / "hooks.py").write_text("mine")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_and_interfere)
    with pytest.raises(ScaffoldError, match=r"it holds 'hooks\.py';"):
        fill_folder(tmp_path)
    assert os.listdir(tmp_path) == ["hooks.py"]
    assert (tmp_path / "hooks.py").read_text() == "mine"


def test_of_many_at_once_one_fills_the_folder(tmp_path: Path):
    program = (
        "import sys\n"
        "from treefold_scaffold import ScaffoldError, fill_folder\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    fill_folder(sys.argv[1])\n"
        "except ScaffoldError:\n"
        "    sys.exit(3)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"\n")
        racer.stdin.flush()
    for racer in racers:
        racer.communicate()
    assert sorted(racer.returncode for racer in racers) == [0, 3, 3]
    assert sorted(os.listdir(tmp_path)) == LAYOUT
