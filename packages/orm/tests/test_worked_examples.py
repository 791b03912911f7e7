"""The worked examples of the compiler run: each query, and the statement that its file shows.

A module of `_compile` opens with a query of these models, and what becomes of it:

    >>> Article.objects.filter(views__gt=5).values("title")
    SELECT t0."title" FROM "article" AS t0 WHERE t0."views" > ?

Some of its functions and classes show another one. `SQLite:` and `PostgreSQL:` begin statements
that differ by more than `?` and `$1`. An error stands as its class and text. `hydrate` opens with a
query and the function that decodes its rows, the records of a schema with those of a model, and
`Meta` shows its values for one. A function of `_sqlite` shows a call and its result.
"""

from __future__ import annotations

import ast
import datetime as dt
import dis
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

import treefold_orm
from treefold_orm import Model, ORMError, create_all, fields, record_queries
from treefold_orm._compile.plans import build_rows_plan
from treefold_orm._decode import hydrate
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._drivers.base import Database
from treefold_orm._fields.meta import Meta
from treefold_orm._queries.base_query import BaseQuery
from treefold_orm._schema import records
from treefold_orm._schema.describe import table_of
from treefold_orm._sqlite import aggregates

COMPILER = Path(treefold_orm.__file__).parent / "_compile"
WITHOUT = {"__init__", "writing"}
"""They write no SQL."""
OTHERS = (COMPILER.parent / "_decode/plan.py", COMPILER.parent / "_queries/cte.py")
"""Files of other rooms that show what becomes of a query."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


class Writer(Model):
    _space = "examples"  # not among the models that `create_all()` makes without a name
    name = fields.CharField(max_length=100)
    born = fields.DateField(null=True)
    boss = fields.ForeignKey("Writer", null=True, related_name="reports")


class Book(Model):
    _space = "examples"
    title = fields.CharField(max_length=20, unique=True)
    writer = fields.ForeignKey(Writer, null=True, related_name="books")


class Label(Model):
    _space = "examples"
    word = fields.CharField(max_length=20)


class Article(Model):
    _space = "examples"
    title = fields.CharField(max_length=100)
    views = fields.IntegerField(default=0)
    writer = fields.ForeignKey(Writer, related_name="articles")
    labels = fields.ManyToManyField(Label, related_name="articles")

    class Meta:
        indexes = (treefold_orm.SearchIndex(fields=["title"]),)


@dataclass(frozen=True)
class Example:
    """A query of a module or of a function in it, and the statement on each engine."""

    place: str
    query: str
    statements: dict[str, str]

    def __str__(self) -> str:
        return f"{self.place}: {self.query}"


def examples() -> Iterator[Example]:
    for file in (*sorted(COMPILER.glob("*.py")), *OTHERS):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, DOCUMENTED):
                text = ast.get_docstring(node) or ""
                name = file.stem if isinstance(node, ast.Module) else f"{file.stem}.{node.name}"
                for block in re.findall(r"^ {4}>>> .*(?:\n {4}.*)*", text, re.MULTILINE):
                    yield read_example(name, block)


def read_example(place: str, block: str) -> Example:
    """Split an example: lines of the query begin with `>>>` or `...`, the others are SQL."""
    lines = [line.strip() for line in block.splitlines()]
    query = "".join(line[4:] for line in lines if line[:3] in {">>>", "..."})
    text = " ".join(line for line in lines if line[:3] not in {">>>", "..."})
    _, *parts = re.split(r"(SQLite|PostgreSQL): ", text)
    statements = dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    return Example(place, query, statements or {"SQLite": text, "PostgreSQL": text})


EXAMPLES = list(examples())


class Names(dict[str, Any]):
    """The models, and the public names of the package, which are loaded when they are asked for."""

    def __missing__(self, name: str) -> Any:
        if (found := getattr(treefold_orm, name, None)) is None:
            raise KeyError(name)
        return found


@pytest.fixture
def tables(db: Database) -> Database:
    create_all(Writer, Label, Article)
    Article.objects.all().delete()
    Writer.objects.all().delete()
    Writer.objects.create(id=1, name="Ann")
    return db


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_is_what_happens(example: Example, tables: Database) -> None:
    is_postgres = tables.dialect.name == "postgres"
    expected = example.statements["PostgreSQL" if is_postgres else "SQLite"]
    names = Names(Writer=Writer, Article=Article, Label=Label)
    happened: list[str] = []
    with record_queries() as recorder:
        try:
            outcome = eval(example.query, {}, names)
            if isinstance(outcome, BaseQuery):
                list(cast("BaseQuery[Any, Any]", outcome))
        except ORMError as error:
            happened.append(f"{type(error).__name__}: {error}")
    happened += [re.sub(r"\$\d+", "?", event.sql) for event in recorder.events]
    assert happened == [re.sub(r"\$\d+", "?", expected)]


def test_each_file_of_the_compiler_has_one() -> None:
    files = {file.stem for file in COMPILER.glob("*.py")} - WITHOUT
    opened = {example.place for example in EXAMPLES if "." not in example.place}
    assert opened == files | {file.stem for file in OTHERS}


def list_instructions(function: Any) -> list[str]:
    """The lines and instructions of a generated function, of which no source is kept."""
    return [f"{each.starts_line} {each.opname} {each.argrepr}" for each in dis.Bytecode(function)]


def test_the_decoder_of_the_example_is_the_one_that_is_generated() -> None:
    blocks = re.findall(r"(?:^ {4}.*\n)+", hydrate.__doc__ or "", re.MULTILINE)
    query_text, source = map(textwrap.dedent, blocks)
    query = eval(query_text, {"Article": Article})
    made = build_rows_plan(SQLite(), query._key, given=0).decode
    names: dict[str, Any] = {}
    exec(source, names)
    assert list_instructions(made) == list_instructions(names["decode"])
    (article,) = made([(1, "Ants", 7, "1961-05-04")])
    assert (article.title, article.writer.pk) == ("Ants", 7)
    assert article.writer.born == dt.date(1961, 5, 4)


def test_the_table_of_the_example_is_the_one_that_is_described() -> None:
    (table,) = re.findall(r"(?:^ {4}.*\n)+", records.__doc__ or "", re.MULTILINE)
    expected = eval(textwrap.dedent(table), vars(records).copy())
    assert table_of(Book._meta, SQLite()) == expected


def shorten_repr(value: object) -> str:
    """A value as tables show it: `<CharField Article.title>` is `Article.title`."""
    text = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", repr(value))
    text = re.sub(r"<(?:\w+\.)*(\w+) object at \w+>", r"\1", text)
    return re.sub(r"<\w+ ([\w.]+)>", r"\1", text)


def test_the_values_of_the_description_of_a_model_are_those_shown() -> None:
    shown = dict(re.findall(r"^ *\| `(\w+)` \| `(.*?)` \|", Meta.__doc__ or "", re.MULTILINE))
    assert shown.keys() == vars(Article._meta).keys()
    for name, value in shown.items():
        pattern = re.escape(value).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, shorten_repr(getattr(Article._meta, name))), name


def test_the_plan_of_the_example_is_read_as_it_is_shown() -> None:
    text = aggregates._parse_plan.__doc__ or ""
    ((call, result),) = re.findall(r">>> (.*)\n((?: +\S.*\n)+)", text)
    names = vars(aggregates).copy()
    assert eval(call, names) == eval(result.strip(), names)
