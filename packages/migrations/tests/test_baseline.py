"""Databases of others become models: nothing of them is lost, executed or left half taken over."""

from __future__ import annotations

import ast
import asyncio
import decimal
import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import baseline_schemas
import pytest
from baseline_support import MakePlace, Taken, made_again, take_over
from inspect_place import Place, make_place as make_place, place as place

from treefold_migrations import (
    FileError,
    HistoryError,
    InspectError,
    PlanError,
    abaseline,
    baseline,
    drift,
    migrate,
)
from treefold_migrations._baseline import models_source
from treefold_orm import Model, ORMError, aclose_all, fields
from treefold_orm._runtime.connections import _databases, database_for
from treefold_orm.schema import Meta, TableDef


def build(place: Place, *texts: str) -> None:
    """Create the tables of a schema."""
    for text in texts:
        for statement in text.split(";\n"):
            if statement.strip():
                place.do(statement)


def of_engine(place: Place) -> str:
    return baseline_schemas.SQLITE if place.engine == "sqlite" else baseline_schemas.POSTGRES


def names_of(table: TableDef) -> list[str]:
    """Every name of a table that a baseline must know."""
    parts = [*table.uniques, *table.checks, *table.indexes, *table.exclusions]
    return [table.name, *(c.name for c in table.columns), *(p.name for p in parts)]


# -- whole schemas --------------------------------------------------------------------------------


def test_the_example_of_the_writer_is_what_it_writes(make_place: MakePlace, tmp_path: Path) -> None:
    text = models_source.__doc__ or ""
    # the statements have no empty line among them, and the class has some
    (blocks,) = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.MULTILINE)
    tables, _, model = textwrap.dedent(blocks).strip().partition("\n\n")
    place = make_place("sqlite")
    build(place, tables)
    taken = take_over(place, tmp_path)
    before, after = model.split("    ...\n")
    written = taken.models.replace(f'        database = "{place.alias}"\n', "")
    assert f'{before}    """A row of book."""\n{after}\n' in written
    listed = models_source.describe_omitted_parts.__doc__ or ""
    shown = re.findall(r"^ +(\(\".*\))$", listed, re.MULTILINE)
    assert taken.as_found["book"] == tuple(map(ast.literal_eval, shown))


def test_the_database_of_others_is_taken_over_whole(
    place: Place, make_place: MakePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(place, baseline_schemas.BOTH, of_engine(place))
    taken = take_over(place, tmp_path)
    _nothing_is_lost(place, taken)
    assert ("table" in {kind for kind, *_ in taken.as_found["post"]}) == (place.engine == "sqlite")
    other = make_place(place.engine)
    if place.engine == "postgres":
        other.do("CREATE SEQUENCE numbers")
    made_again(taken, other)
    elsewhere = make_place(place.engine)
    monkeypatch.setitem(_databases, place.alias, database_for(elsewhere.alias))
    assert len(migrate(tmp_path / "migrations", database=place.alias)) == 1
    assert drift(tmp_path / "migrations", database=place.alias) == []
    assert elsewhere.ask("SELECT COUNT(*) FROM post") == [(0,)]


def _nothing_is_lost(place: Place, taken: Taken) -> None:
    """Each name is one of the state, or was found otherwise, or stands in a note of the models."""
    from treefold_migrations import read_schema
    from treefold_migrations._baseline.names import sanitize_for_comment
    from treefold_migrations._inspect.compare import list_own_tables
    from treefold_migrations._state.rendering import render_managed_tables

    rendered = render_managed_tables(taken.state, place.dialect)
    own = list_own_tables()
    live = {n: t for n, t in read_schema(place.alias).items() if n not in own}
    assert len(live) >= 14
    for name, table in live.items():
        if not taken.state.table(name).options.managed:
            continue
        known = set(names_of(rendered[name])) | {
            part for _, part, _ in taken.as_found.get(name, ())
        }
        for part in names_of(table):
            assert part in known or sanitize_for_comment(part) in taken.models, (name, part)


def test_models_say_what_a_developer_would_write(place: Place, tmp_path: Path) -> None:
    build(place, baseline_schemas.BOTH)
    text = take_over(place, tmp_path).models
    for line in (
        "boss = fields.ForeignKey(",
        'related_name="employee_deputy_set"',
        'pk = CompositePrimaryKey("course", "student")',
        'tags = fields.ManyToManyField("Tag", related_name="posts", through="PostTag")',
        'import_field = fields.CharField(max_length=20, db_column="import")',
        'state = fields.CharField(max_length=10, db_default="it\'s")',
        "class XDropTableY(Model):",
        f'        database = "{place.alias}"',
        'name="odd"',
        "    # Left to the database: foreign key course, student: enrolment(course, student)",
    ):
        assert line in text, line
    assert "CheckConstraint(SchemaSQL(" in text.replace("\n", "").replace(" ", "")
    view = text.partition("class Titles(Model):")[2].partition("\n\n\n")[0]
    assert view.endswith("managed = False")


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_models_of_postgres_read_and_write_its_types(place: Place, tmp_path: Path) -> None:
    build(place, baseline_schemas.BOTH, baseline_schemas.POSTGRES)
    module: Any = take_over(place, tmp_path).module
    kinds = module.Kinds.objects
    made = kinds.create(word="a", exact=decimal.Decimal("1.5"), old={"a": 1}, many=3, code="ab")
    row = kinds.get(pk=made.pk)
    assert (row.feeling, row.small, row.doc, row.tags) == ("sad", 1, {}, [])
    assert (row.exact, row.old, row.many, row.number) == (decimal.Decimal("1.5"), {"a": 1}, 3, 1)
    row.feeling = "it's"
    row.save()
    assert kinds.filter(feeling="it's", key__isnull=False).count() == 1
    titles = module.Titles.objects
    post = module.Post.objects.create(id=1, title="one", state="new")
    tag = module.Tag.objects.create(id=1, label="t")
    post.tags.add(tag)
    assert [t.title for t in titles.all()] == ["one"]
    assert [p.title for p in tag.posts.all()] == ["one"]


NUMBERS = (
    *("7", "+7", "-7", "007", "1e3", "-1.5E+3", ".5", "5.", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "1e5000", "1e-5000", "9" * 5000),
)
HEXADECIMALS = ("0x10", "0X1f", "-0x10", "0xffffffffffffffff")
FLAGS = ("TRUE", "FALSE")


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        ("integer", NUMBERS),
        ("bigint", NUMBERS),
        ("double precision", NUMBERS),
        ("numeric(8, 2)", NUMBERS),
        ("text", NUMBERS),
        ("boolean", FLAGS),
    ],
)
def test_a_number_is_taken_over_as_a_default(
    place: Place, make_place: MakePlace, tmp_path: Path, kind: str, spellings: tuple[str, ...]
) -> None:
    if place.engine == "sqlite":
        spellings = (*FLAGS, "01", "0x1") if spellings is FLAGS else (*spellings, *HEXADECIMALS)
    elif spellings is NUMBERS and int(place.ask("SHOW server_version_num")[0][0]) >= 160000:
        spellings = (*spellings, *HEXADECIMALS, "1_000")
    columns = {f"t{number}": spelling for number, spelling in enumerate(spellings)}
    for name, spelling in columns.items():
        place.do(f"CREATE TABLE {name} (id bigint PRIMARY KEY, n {kind} DEFAULT {spelling})")
    taken = take_over(place, tmp_path)
    made_again(taken, make_place(place.engine))
    refused: set[str] = set()
    for name, spelling in columns.items():
        model: Any = getattr(taken.module, name.title())
        try:
            place.do(f"INSERT INTO {name} (id) VALUES (1)")
            model.objects.create(id=2)
        except ORMError:
            # a number that the column cannot hold, or that is none of the field
            refused.add(spelling)
            continue
        by_hand, by_model = place.ask(f"SELECT CAST(n AS text) FROM {name} ORDER BY id")
        assert by_hand == by_model, spelling
    assert not refused & {*FLAGS, "01", "0x1", "7", "+7", "-7", "007", "1e3", "0x10", "-0x10"}


def test_a_default_that_no_field_takes_leaves_the_others(place: Place, tmp_path: Path) -> None:
    place.do(
        "CREATE TABLE t (id bigint PRIMARY KEY, first integer DEFAULT 7, "
        "n integer DEFAULT 9223372036854775808, last integer DEFAULT 8)"
    )
    models = take_over(place, tmp_path).models
    assert "IntegerField(null=True, db_default=7)" in models
    assert "IntegerField(null=True, db_default=8)" in models


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_triggers_of_sqlite_survive(place: Place, tmp_path: Path) -> None:
    build(place, baseline_schemas.BOTH, baseline_schemas.SQLITE)
    module: Any = take_over(place, tmp_path).module
    posts = module.Post.objects
    assert posts.create(title="one").pk == 1
    assert place.ask("SELECT line FROM log") == [("one",)]
    counter = module.Counter.objects.create(name="x")
    counter.refresh_from_db()
    assert (counter.n, counter.on, counter.at.tzinfo) == (2, True, None)


# -- afterwards -----------------------------------------------------------------------------------


def test_a_change_after_the_baseline_is_drift(place: Place, tmp_path: Path) -> None:
    build(place, baseline_schemas.BOTH)
    take_over(place, tmp_path)
    place.do("ALTER TABLE tag ADD COLUMN note varchar(3)", "DROP INDEX live_posts")
    lines = [str(d) for d in drift(tmp_path / "migrations", database=place.alias)]
    assert len(lines) == 2
    assert lines[0].startswith("The index 'live_posts' of post is missing")
    assert lines[1].startswith("Column tag.note (varchar(3)) is in the database")


HEAD = """
from treefold_migrations import *
from treefold_orm import SchemaSQL, fields
migration = Migration(after=["0001_initial"], operations=[{}])
"""
FOLLOWING = (
    'RenameField("tag", "label", "word")',
    'RenameTable("tag", "topic")',
    'AddField("chicken", "name", fields.CharField(max_length=9, null=True))',
    'AlterField("employee", "name", fields.CharField(max_length=80))',
    'DropField("enrolment", "grade")',
)


def follow(root: Path, *operations: str) -> Path:
    """Write the second migration."""
    text = HEAD.format(", ".join(operations))
    (root / "migrations" / "0002_more.py").write_text(text, encoding="utf-8")
    return root / "migrations"


def test_migrations_go_on_from_a_baseline(place: Place, tmp_path: Path) -> None:
    build(place, baseline_schemas.BOTH)
    place.do("INSERT INTO tag VALUES (7, 'red')")
    take_over(place, tmp_path)
    key = 'fields.ForeignKey("chicken", db_index=False, constraint_name="egg_chicken_id_fkey")'
    if place.engine == "sqlite":
        key = 'fields.ForeignKey("chicken", db_index=False)'
    folder = follow(tmp_path, *FOLLOWING, f'AlterField("egg", "chicken", {key})')
    migrate(folder, database=place.alias)
    assert place.ask("SELECT id, word FROM topic") == [(7, "red")]
    assert [str(d) for d in drift(folder, database=place.alias)] == []


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_rebuild_refuses_to_lose_what_no_model_has(place: Place, tmp_path: Path) -> None:
    build(place, baseline_schemas.BOTH, baseline_schemas.SQLITE)
    place.do("INSERT INTO counter (n) VALUES (4)")
    take_over(place, tmp_path)
    alter = 'AlterField("counter", "n", fields.BigIntegerField(null=True))'
    folder = follow(tmp_path, alter)
    before = place.ask("SELECT sql FROM sqlite_master")
    with pytest.raises(PlanError, match=r"'counter' must be rebuilt.*column twice \(INTEGER\)"):
        migrate(folder, database=place.alias)
    assert place.ask("SELECT sql FROM sqlite_master") == before
    follow(tmp_path, 'SetOptions("counter", as_found=[])', alter)
    migrate(folder, database=place.alias)
    assert place.ask("SELECT id, n FROM counter") == [(1, 4)]


# -- hostile names --------------------------------------------------------------------------------

HOSTILE = (
    '"""\nimport os; os.environ["TREEFOLD_HOSTILE"] = "1"\n"""',
    "'); __import__('os').abort(); ('",
    "{__import__('os').abort()}",
    "\\",
    "a\tb",
    "line\u2028separator",
    "\u202eright to left",
    "#",
    "}{",
)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_names_of_columns_never_become_code(place: Place, tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE):
        column, text = quoted(name), "'" + name.replace("'", "''") + "'"
        place.do(
            f"CREATE TABLE hostile{number} (id integer PRIMARY KEY, {column} text DEFAULT {text}, "
            f"CONSTRAINT {column} CHECK ({column} <> {text} OR {column} = {text}))",
            f"CREATE INDEX {quoted(f'{name}{number}')} ON hostile{number} (lower({column}))",
        )
    taken = take_over(place, tmp_path)
    assert "TREEFOLD_HOSTILE" not in os.environ
    assert "os" not in vars(taken.module)
    held = {meta.table_name: len(meta.columns) for meta in taken.metas}
    refused = [name for name in HOSTILE if "\n" in name or "\t" in name]
    assert sorted(held.values()) == [1] * len(refused) + [2] * (len(HOSTILE) - len(refused))


def test_names_of_tables_never_become_code(place: Place, tmp_path: Path) -> None:
    kept = [name for name in HOSTILE if name.isprintable()]
    for number, name in enumerate(kept):
        place.do(
            f"CREATE TABLE {quoted(name)} (id integer PRIMARY KEY)",
            f"CREATE TABLE refers{number} (id integer PRIMARY KEY, "
            f"key_id integer REFERENCES {quoted(name)} (id))",
        )
    taken = take_over(place, tmp_path)
    assert {meta.table_name for meta in taken.metas} >= set(kept)


def test_a_table_that_no_model_can_name_is_refused(place: Place, tmp_path: Path) -> None:
    place.do('CREATE TABLE "two\nlines" (id integer PRIMARY KEY)')
    refused(place, tmp_path, InspectError, r"The table 'two\\nlines' must have another name")


# -- refusals -------------------------------------------------------------------------------------


def refused(
    place: Place, root: Path, kind: type[Exception], match: str, *, metas: Sequence[Meta] = ()
) -> None:
    """Check that a baseline is refused and changes nothing."""
    before = files_of(root)
    with pytest.raises(kind, match=match):
        baseline(root / "migrations", root / "models.py", database=place.alias, metas=metas)
    assert files_of(root) == before
    assert not any("treefold_migrations" in str(row) for row in place.ask(tables_of(place)))


def files_of(root: Path) -> list[Path]:
    """What lies there, but for the database and Python's caches."""
    return sorted(
        path
        for path in root.rglob("*")
        if "sqlite3" not in path.name and "__pycache__" not in path.parts
    )


def tables_of(place: Place) -> str:
    if place.engine == "sqlite":
        return "SELECT name FROM sqlite_master"
    return "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace"


class Known(Model):
    """A model that an application has."""

    _space = "baseline"
    name = fields.TextField()


def test_what_is_there_is_not_written_over(place: Place, tmp_path: Path) -> None:
    place.do("CREATE TABLE tag (id integer PRIMARY KEY)")
    models, folder = tmp_path / "models.py", tmp_path / "migrations"
    models.write_text("mine = 1\n", encoding="utf-8")
    refused(place, tmp_path, FileError, r"models\.py must not exist yet; move it away")
    assert models.read_text(encoding="utf-8") == "mine = 1\n"
    models.unlink()
    folder.mkdir()
    (folder / "0001_mine.py").write_text(
        "from treefold_migrations import Migration\nmigration = Migration()\n", encoding="utf-8"
    )
    refused(place, tmp_path, FileError, "must have no migrations yet, got 0001_mine")
    (folder / "0001_mine.py").unlink()
    match = "must have no models yet, got Known"
    refused(place, tmp_path, FileError, match, metas=[Known._meta])


def test_a_database_with_records_is_refused(place: Place, tmp_path: Path) -> None:
    place.do("CREATE TABLE tag (id integer PRIMARY KEY)")
    take_over(place, tmp_path / "first")
    with pytest.raises(HistoryError, match="must have no recorded migrations, got 0001_initial"):
        baseline(tmp_path / "second", tmp_path / "m.py", database=place.alias, metas=())
    assert not (tmp_path / "m.py").exists()


def test_an_empty_database_is_refused(place: Place, tmp_path: Path) -> None:
    place.ask("SELECT 1")
    refused(place, tmp_path, InspectError, "The database has no tables to take over")


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_file_that_does_not_exist_is_not_created(place: Place, tmp_path: Path) -> None:
    with pytest.raises(InspectError, match=r"sqlite3 must exist; check its address"):
        baseline(tmp_path / "migrations", tmp_path / "m.py", database=place.alias, metas=())
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_no_file(place: Place, tmp_path: Path) -> None:
    place.do("CREATE TABLE tag (id integer PRIMARY KEY)")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        baseline(
            tmp_path / "file" / "migrations", tmp_path / "m.py", database=place.alias, metas=()
        )
    assert not (tmp_path / "m.py").exists()


def test_the_async_half_does_the_same(place: Place, tmp_path: Path) -> None:
    build(place, "CREATE TABLE tag (id integer PRIMARY KEY, label varchar(9))")

    async def work() -> None:
        try:
            made = await abaseline(
                tmp_path / "migrations", tmp_path / "m.py", database=place.alias, metas=()
            )
            assert (made.tables, made.left) == (1, ())
        finally:
            await aclose_all()

    asyncio.run(work())
    assert drift(tmp_path / "migrations", database=place.alias) == []
