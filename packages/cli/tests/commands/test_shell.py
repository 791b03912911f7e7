"""`treefold shell`: the project loaded, `await` at the top level, from a pipe and at a terminal."""

import os
import pty
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root(project: Project) -> Path:
    root = project("v1/Health/Get.py")
    (root / "Models").mkdir()
    (root / "Models/__init__.py").write_text("")
    (root / "Models/shop.py").write_text("class Book:\n    pages = 300\n\n\nclass _Hidden: ...\n")
    (root / "Api/v1/Health/Get.py").write_text(
        "from Models.shop import Book\n\n\ndef handler(request): return Book.pages\n"
    )
    return root


PROGRAM = """\
import asyncio

async def answer():
    return 41

if True:
    value = await answer()
    print(value + 1, await asyncio.sleep(0.01, "slept"))
print(app.report.routes, Book.pages, "_Hidden" in globals())
"""


def test_a_program_from_a_pipe_runs_as_one(forked: Executable, root: Path):
    done = forked("shell", cwd=root, stdin=PROGRAM)
    assert (done.returncode, done.stdout) == (0, "42 slept\n1 300 False\n")


MIXED = """\
from __future__ import annotations
import asyncio

def blocking():
    # What a synchronous ORM asks before it blocks.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "works"
    return "refused"

print(blocking())
await asyncio.sleep(0)
print(blocking(), blocking.__annotations__)
def lazy() -> NoSuchName: ...
print(await asyncio.sleep(0, blocking()), lazy.__annotations__)
"""


def test_calls_that_block_work_beside_a_statement_that_awaits(forked: Executable, root: Path):
    done = forked("shell", "-c", MIXED, cwd=root)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["works", "works {}", "refused {'return': 'NoSuchName'}"],
    ), done.stderr


def test_an_error_keeps_the_line_of_its_statement(forked: Executable, root: Path):
    done = forked("shell", "-c", "import asyncio\nawait asyncio.sleep(0)\n1 / 0", cwd=root)
    assert done.returncode == 1
    assert 'File "<shell>", line 3, in <module>' in done.stderr


def test_code_can_be_an_argument(forked: Executable, root: Path):
    done = forked("shell", "-c", "print(type(app).__name__)", cwd=root)
    assert (done.returncode, done.stdout) == (0, "Application\n")


@pytest.mark.parametrize(
    ("program", "code", "last"),
    [
        ("x = 1\n1 / 0\n", 1, "ZeroDivisionError: division by zero"),
        ("if x", 1, "SyntaxError: expected ':'"),
        ("raise SystemExit(7)", 7, None),
        ("", 0, None),
    ],
)
def test_what_a_program_raises_is_shown_and_fails(
    forked: Executable, root: Path, program: str, code: int, last: str | None
):
    done = forked("shell", cwd=root, stdin=program)
    assert done.returncode == code
    assert last is None or done.stderr.splitlines()[-1] == last
    assert "_console.py" not in done.stderr


def test_a_project_that_cannot_boot_is_one_line(forked: Executable, root: Path):
    (root / "hooks.py").write_text("on_startup = 3\n")
    done = forked("shell", "-c", "print(1)", cwd=root)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("Error: hooks.py cannot be used: ")


def test_a_terminal_gets_a_prompt_that_awaits_and_survives_errors(root: Path):
    leader, follower = pty.openpty()
    command = [str(Path(sysconfig.get_path("scripts")) / "treefold"), "shell"]
    environment = os.environ | {"TERM": "dumb"}
    with subprocess.Popen(
        command, cwd=root, stdin=follower, stdout=follower, stderr=follower, env=environment
    ) as child:
        os.close(follower)
        typed = ["import asyncio", "1 / 0", "await asyncio.sleep(0, Book.pages) + 1", "exit()"]
        os.write(leader, "\n".join([*typed, ""]).encode())
        shown = _everything(leader)
        assert child.wait(60) == 0
    os.close(leader)
    assert "1 route; models: Book; await works" in shown
    assert "ZeroDivisionError" in shown
    assert "\r\n301\r\n" in shown


def _everything(leader: int) -> str:
    shown = b""
    try:
        while chunk := os.read(leader, 65536):
            shown += chunk
    except OSError:  # Linux says so at the end of a terminal
        pass
    return shown.decode()


def test_its_names_in_redis_are_those_of_production(forked: Executable, root: Path):
    program = "print(app.dev, app.names.own)"
    done = forked("shell", "-c", program, cwd=root)
    assert done.stdout == f"True treefold:{root.name}:production:\n"

    done = forked("shell", "-c", program, cwd=root, TREEFOLD_ENVIRONMENT="staging")
    assert done.stdout == f"True treefold:{root.name}:staging:\n"

    # a shell that a test starts has the names of the test, as a worker has
    done = forked("shell", "-c", program, cwd=root, TREEFOLD_TEST_RUN="test-1")
    assert done.stdout == f"True treefold:{root.name}:test-1:\n"
