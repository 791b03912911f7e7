"""The synchronous ORM in `treefold shell`, beside statements that await."""

import subprocess
from collections.abc import Callable
from pathlib import Path

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]

MODEL = """\
from treefold_orm import Model, fields


class Book(Model):
    title = fields.CharField(max_length=9)
"""
PROGRAM = """\
from treefold_orm import create_all
create_all(Book)
await Book.objects.acreate(title="one")
Book.objects.create(title="two")
print(Book.objects.count())
print(await Book.objects.acount())
"""


def test_synchronous_queries_work_in_a_program_that_awaits_elsewhere(
    forked: Executable, project: Project
):
    root = project("v1/Health/Get.py")
    (root / "Models").mkdir()
    (root / "Models/shop.py").write_text(MODEL)
    (root / "treefold.toml").write_text("[databases]\ndefault = 'sqlite:///shop.db'\n")

    done = forked("shell", "-c", PROGRAM, cwd=root)
    assert (done.returncode, done.stdout) == (0, "2\n2\n"), done.stderr
