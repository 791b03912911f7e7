"""Steps are told in the same words on both databases, and questions end with the input."""

from __future__ import annotations

import io
import sys

import pytest
from run_support import Files, files as files

from treefold_migrations import Question, sqlmigrate
from treefold_migrations._commands import command_line

TABLE = (
    'CreateTable("post", {"id": fields.BigAutoField(), "n": fields.BigIntegerField(), '
    '"text": fields.TextField()}, "Post", indexes=[Index("n")])'
)
CHANGES = (
    'AddIndex("post", Index("-n"))',
    'AddField("post", "slug", fields.TextField(null=True))',
    'RenameField("post", "text", "body")',
    'DropIndex("post", "ix_post_n_desc")',
    'DropField("post", "slug")',
    'DropTable("post")',
)


def words(files: Files, name: str, dialect: str) -> list[str]:
    """The summaries of a file, without what one database does differently."""
    sql = sqlmigrate(files.folder, name, dialect=dialect)  # pyright: ignore[reportArgumentType] - one of two
    lines = [line[3:] for line in sql.splitlines() if line.startswith("-- ")]
    told = [
        line
        for line in lines[1:]
        if not line.startswith(("committed", "check", "rename the", "run each", "must"))
    ]
    return [line.removesuffix(" concurrently") for line in told]


def test_steps_have_the_same_words_on_both_databases(files: Files) -> None:
    files.write("0001_initial", TABLE, above="from treefold_migrations import *", after=[])
    for number, change in enumerate(CHANGES, 2):
        files.write(f"{number:04d}_change", change, above="from treefold_migrations import *")
    assert words(files, "0001", "postgres") == ["create table post", "create index ix_post_n"]
    for number in range(1, len(CHANGES) + 2):
        name = f"{number:04d}"
        assert words(files, name, "sqlite") == words(files, name, "postgres"), CHANGES[number - 2]


class Terminal(io.StringIO):
    """The end of the input of a terminal: what Ctrl-D leaves."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", ["table", "fill"])
def test_the_end_of_the_input_is_no_answer(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    flags = ("--rename gone:here", "--drop gone")
    asked = Question("table" if kind == "table" else "fill", "gone", (), flags, "Was it renamed?")

    def ask() -> int:
        command_line._ask_question(asked)
        return 0

    assert command_line.project_command(ask)() == command_line.FAILURE
    errors = capsys.readouterr().err.splitlines()
    assert errors == ["Was it renamed?", "  --rename gone:here", "  --drop gone"]


@pytest.mark.parametrize("stdin", [None, "closed"])
def test_a_closed_input_asks_nothing(stdin: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdin", None if stdin is None else closed)
    assert not command_line._is_interactive()
