"""The worked examples of the planner: operations on two tables, and the statements they become.

A module of `_plan` opens with operations and those of their statements that it is about:

    >>> AddIndex("book", Index(["title"]))
    PostgreSQL: CREATE INDEX CONCURRENTLY "ix_book_title" ON "book" ("title")

Each stands in the plan of its engine, in this order; `...` stands for text that is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import treefold_migrations
from treefold_migrations import (
    AddField,
    AddIndex,
    AlterField,
    CreateTable,
    DropField,
    RenameField,
    RenameTable,
    SchemaState,
)
from treefold_migrations._conversions import conversion_sqlite
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._plan.operations import plan_operations
from treefold_orm import Index, fields
from treefold_orm.schema import Dialect, Postgres, SQLite

ROOMS = Path(treefold_migrations.__file__).parent
PLANNER = [*ROOMS.glob("_plan/*.py"), *ROOMS.glob("_conversions/*.py")]
OTHERS = {
    "__init__": "no code",
    "perform": "runs a step",
    "step": "a record",
    "sqlite_script": "reads the author's own SQL",
    "postgres_guards": "its example is in words",
    "postgres_losses": "its example is in words",
    "postgres_rewrites": "its example is in words",
}
DIALECTS: dict[str, Dialect] = {"SQLite": SQLite(), "PostgreSQL": Postgres()}
BOOK = CreateTable(
    "book",
    {
        "id": fields.BigAutoField(),
        "title": fields.CharField(max_length=20),
        "pages": fields.IntegerField(null=True),
        "price": fields.DecimalField(max_digits=8, decimal_places=2, null=True),
    },
    "Book",
)
CHAPTER = CreateTable(
    "chapter", {"id": fields.BigAutoField(), "book": fields.ForeignKey("book")}, "Chapter"
)
OPERATIONS = (AddField, AddIndex, AlterField, CreateTable, DropField, RenameField, RenameTable)
BEFORE = CHAPTER.apply(BOOK.apply(SchemaState()))


@dataclass(frozen=True)
class Example:
    """Operations of a module, and the statements that it shows, each with its engine."""

    module: str
    operations: str
    statements: list[tuple[str, str]]

    def __str__(self) -> str:
        return f"{self.module}: {self.operations}"


def examples() -> Iterator[Example]:
    for file in sorted(PLANNER):
        text = ast.get_docstring(ast.parse(file.read_bytes())) or ""
        for block in re.findall(r"^ {4}>>> .*(?:\n {4}.*)*", text, re.MULTILINE):
            lines = [line.strip() for line in block.splitlines()]
            asked = "".join(line[4:] for line in lines if line[:4] in {">>> ", "... "})
            shown = " ".join(line for line in lines if line[:4] not in {">>> ", "... "})
            _, *parts = re.split(r"(SQLite|PostgreSQL): ", shown)
            pairs = zip(parts[::2], map(str.strip, parts[1::2]), strict=True)
            yield Example(file.stem, asked, list(pairs))


EXAMPLES = list(examples())


def planned(operations: list[Operation], dialect: Dialect) -> list[str]:
    states = compute_states(operations, BEFORE)
    steps = [step for _, made in plan_operations(operations, states, dialect) for step in made]
    return [" ".join((step.sql or step.verify).split()) for step in steps]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_is_in_the_plan(example: Example) -> None:
    names: dict[str, Any] = {kind.__name__: kind for kind in (*OPERATIONS, Index)}
    names["fields"] = fields
    operations: list[Operation] = eval(f"[{example.operations}]", names)
    for engine in dict(example.statements):
        rest = iter(planned(operations, DIALECTS[engine]))
        for shown in (text for name, text in example.statements if name == engine):
            pattern = ".*".join(map(re.escape, shown.split("...")))
            assert any(re.fullmatch(pattern, sql) for sql in rest), shown


def test_the_conversion_of_the_example_is_the_one_that_is_used() -> None:
    text = conversion_sqlite.__doc__ or ""
    (shown,) = re.findall(r"^ {4}(Conversion\(\n(?: {4}.*\n)+)", text, re.MULTILINE)
    old, new = (fields.DecimalField(max_digits=8, decimal_places=places) for places in (2, 1))
    rule: Any = conversion_sqlite.CONVERSIONS["decimal", "decimal"]
    assert rule(old, new) == eval(shown, {"Conversion": conversion_sqlite.Conversion})


def test_each_file_of_the_planner_has_one() -> None:
    files = {file.stem for file in PLANNER} - OTHERS.keys()
    assert files == {example.module for example in EXAMPLES}
    assert all(example.statements for example in EXAMPLES)
