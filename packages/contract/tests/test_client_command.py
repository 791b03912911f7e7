"""`treefold-contract client`: writes what differs, checks, and never over files of others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

LOCK = "treefold contract 1 rules 1\nversion v1 stable\n\nGET /v1/user/{id:int}\n  204\n"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run `python -m treefold_contract client` in a folder with a lock."""
    (tmp_path / "routes.lock").write_text(LOCK, encoding="utf-8", newline="\n")

    def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "treefold_contract", "client", *arguments],
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return run


FILES = {
    "ts": ["shop.d.ts", "shop.js", "treefold-streams.js"],
    "python": ["shop/__init__.py", "shop/__init__.pyi", "shop/py.typed"],
}


@pytest.mark.parametrize("language", FILES)
def test_a_client_is_written_once(command: Command, tmp_path: Path, language: str) -> None:
    arguments = (language, "--from", "routes.lock", "--out", "api", "--name", "shop")
    done = command(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"wrote: {Path('api', name)}" for name in FILES[language]]
    found = sorted(path for path in (tmp_path / "api").rglob("*") if path.is_file())
    assert found == sorted(tmp_path / "api" / name for name in FILES[language])
    times = [path.stat().st_mtime_ns for path in found]
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (0, "nothing to write\n")
    assert [path.stat().st_mtime_ns for path in found] == times


@pytest.mark.parametrize("language", FILES)
def test_check_names_stale_files_and_writes_nothing(
    command: Command, tmp_path: Path, language: str
) -> None:
    arguments = (language, "--out", "api", "--name", "shop", "--from")
    done = command(*arguments, "routes.lock", "--check")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"stale: {Path('api', name)}; write it again without --check" for name in FILES[language]
    ]
    assert not (tmp_path / "api").exists()
    command(*arguments, "routes.lock")
    assert command(*arguments, "routes.lock", "--check").returncode == 0
    changed = LOCK.replace("{id:int}", "{id:str}")
    done = command(*arguments, "-", "--check", text=changed)
    types = "shop.d.ts" if language == "ts" else "shop/__init__.pyi"
    assert done.returncode == 1
    assert done.stdout == f"stale: {Path('api', types)}; write it again without --check\n"


@pytest.mark.parametrize(
    ("language", "name"),
    [(language, name) for language, names in FILES.items() for name in names],
)
def test_a_foreign_file_is_kept_and_nothing_is_written(
    command: Command, tmp_path: Path, language: str, name: str
) -> None:
    foreign = tmp_path / "api" / name
    foreign.parent.mkdir(parents=True)
    foreign.write_text("my own\n", encoding="utf-8")
    done = command(language, "--from", "routes.lock", "--out", "api", "--name", "shop")
    assert done.returncode == 2
    message = f"error: File '{Path('api', name)}' was not written by treefold-contract; move it"
    assert done.stderr.startswith(message)
    assert [path for path in (tmp_path / "api").rglob("*") if path.is_file()] == [foreign]
    assert foreign.read_text(encoding="utf-8") == "my own\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ts", "--from", "no.lock", "--out", "x"], "No such file or directory: 'no.lock'"),
        (["ts", "--from", "-", "--out", "x"], "Lock must begin with 'treefold contract 1 rules N'"),
        (["ts", "--from", "routes.lock", "--out", "routes.lock"], "routes.lock"),
        (["ts", "--from", "routes.lock", "--out", "x", "--version", "v7"], "(v1), got 'v7'"),
        (["python", "--from", "routes.lock", "--out", "x", "--name", "a b"], "got 'a b'"),
        (["java", "--from", "routes.lock", "--out", "x"], "invalid choice: 'java'"),
        (["ts", "--out", "x"], "the following arguments are required: --from"),
    ],
)
def test_what_cannot_be_written_is_named(
    command: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = command(*arguments, text="x")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()
