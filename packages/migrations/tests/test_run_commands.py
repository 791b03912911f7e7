"""The importable commands: what they do, and the lines that they tell."""

from __future__ import annotations

import asyncio

import pytest
from run_support import (
    AUTHOR,
    BOOK,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)

from treefold_migrations import FileError, HistoryError, RunError
from treefold_migrations._commands.running import (
    amigrate,
    migrate,
    render_planned_sql,
    rollback,
    sqlmigrate,
)
from treefold_orm import aclose_all

FILL = """
    def fill(models, work):
        models.author.objects.create(name="a")
        work.batched(models.author.objects.all(), lambda rows: None)
"""


def two(files: Files) -> None:
    files.write("0001_initial", AUTHOR, after=[])
    files.write("0002_fill", 'AddIndex("author", Index(["name"]))', "RunPython(fill)", above=FILL)


def test_migrate_and_rollback_tell_each_step(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR, "RunPython(fill, RunPython.noop)", above=FILL)
    lines: list[str] = []
    migrate(files.folder, say=lines.append)
    assert lines == [
        "0001_initial: 2 steps",
        "  1/2 create table author",
        "  2/2 run Python: fill",
        "      1 of 1 rows",
    ]
    lines.clear()
    migrate(files.folder, say=lines.append)
    assert lines == ["Nothing to apply"]
    lines.clear()
    rollback(files.folder, say=lines.append, allow_destructive=True)
    assert lines[0].startswith("0001_initial: ")
    assert "drop table author" in lines[-1] or "foreign keys" in lines[-1]
    lines.clear()
    rollback(files.folder, say=lines.append)
    assert lines == ["Nothing to roll back"]


def test_a_target_behind_the_last_file_names_the_way_back(place: Place, files: Files) -> None:
    for name in ("0001_a", "0002_b", "0003_c", "0004_d"):
        files.write(name, after=[] if name == "0001_a" else None)
    migrate(files.folder)
    lines: list[str] = []
    assert migrate(files.folder, "0003", say=lines.append) == []
    assert lines == [
        "Nothing to apply",
        "0004_d is applied after it; to go back run `treefold rollback 0003_c`",
    ]
    lines.clear()

    async def work() -> None:
        await amigrate(files.folder, "0002", fake=True, say=lines.append)
        await aclose_all()

    asyncio.run(work())
    assert lines[1:] == [
        "0003_c, 0004_d are applied after it; to go back run `treefold rollback 0002_b --fake`"
    ]
    lines.clear()
    migrate(files.folder, "0004", say=lines.append)
    assert lines == ["Nothing to apply"]
    for fake in (False, True):
        with pytest.raises(HistoryError, match="'zero'; take all files back with `treefold roll"):
            migrate(files.folder, "zero", fake=fake)


def test_the_async_command_does_the_same(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    lines: list[str] = []

    async def work() -> None:
        await amigrate(files.folder, say=lines.append)
        await aclose_all()

    asyncio.run(work())
    assert lines == ["0001_initial: 1 step", "  1/1 create table author"]


CHANGES = (
    'RenameField("author", "name", "title")',
    'AddField("author", "rank", fields.IntegerField(), fill=1)',
    'AddIndex("author", Index(["rank"]))',
    'AddField("book", "pages", fields.IntegerField(null=True))',
)


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_rebuild_is_one_line_of_a_plan(place: Place, files: Files) -> None:
    files.write(
        "0001_initial", AUTHOR, 'AddIndex("author", Index(["id", "name"], name="by"))', BOOK
    )
    migrate(files.folder)
    files.write("0002_changes", *CHANGES)
    planned: list[str] = []
    migrate(files.folder, plan=True, say=planned.append)
    assert planned == [
        "0002_changes: 4 steps",
        "  1/4 rename column author.name to title",
        "  2/4 rebuild author",
        "  3/4 create index ix_author_rank",
        "  4/4 add column book.pages",
    ]
    told: list[str] = []
    migrate(files.folder, say=told.append)
    assert told == planned
    assert len(migrate(files.folder, plan=True)) == 0


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_step_that_fails_inside_of_a_rebuild_has_the_number_of_the_plan(
    place: Place, files: Files
) -> None:
    files.write("0001_initial", AUTHOR)
    migrate(files.folder)
    place.ask("INSERT INTO author (name) VALUES ('a'), ('a')")
    name = "fields.CharField(max_length=40, unique=True)"
    files.write("0002_unique", f'AlterField("author", "name", {name})')
    with pytest.raises(RunError, match=r"step 1 of 1: check rows of author failed"):
        migrate(files.folder)


def test_a_plan_and_a_fake_run_are_told(place: Place, files: Files) -> None:
    two(files)
    lines: list[str] = []
    planned = migrate(files.folder, plan=True, say=lines.append)
    assert lines[:3] == ["0001_initial: 1 step", "  1/1 create table author", "0002_fill: 2 steps"]
    assert ("(committed by itself)" in lines[3]) == (place.engine == "postgres")
    assert 'CREATE TABLE "author"' in render_planned_sql(planned)
    lines.clear()
    migrate(files.folder, fake=True, say=lines.append)
    assert lines == ["0001_initial: record written", "0002_fill: record written"]
    lines.clear()
    rollback(files.folder, fake=True, say=lines.append)
    assert lines == ["0002_fill: record removed"]


def test_sqlmigrate_needs_no_database(files: Files) -> None:
    two(files)
    sql = sqlmigrate(files.folder, "0002", dialect="postgres")
    assert sql.splitlines()[:3] == [
        "-- 0002_fill (postgres)",
        "-- committed by itself:",
        "-- create index ix_author_name concurrently",
    ]
    assert 'CREATE INDEX CONCURRENTLY "ix_author_name" ON "author" ("name");' in sql
    assert "-- run Python: fill (Python, not part of this script)" in sql
    sql = sqlmigrate(files.folder, "0002", dialect="sqlite")
    assert sql.splitlines()[1] == "BEGIN;"
    assert 'CREATE INDEX "ix_author_name" ON "author" ("name");' in sql


def test_sqlmigrate_writes_the_way_back(files: Files) -> None:
    files.write("0001_initial", AUTHOR, BOOK)
    sql = sqlmigrate(files.folder, "0001", dialect="postgres", backwards=True)
    assert sql.index('DROP TABLE "book"') < sql.index('DROP TABLE "author"')
    two(files)
    with pytest.raises(RunError, match="run Python: fill"):
        sqlmigrate(files.folder, "0002_fill", dialect="postgres", backwards=True)
    with pytest.raises(HistoryError, match="must exist"):
        sqlmigrate(files.folder, "0009", dialect="postgres")


@pytest.mark.parametrize("engine", ["sqlite"])
def test_the_script_of_a_file_makes_the_schema_that_migrate_makes(
    place: Place, files: Files
) -> None:
    import sqlite3

    files.write("0001_initial", AUTHOR, BOOK)
    files.write("0002_rank", 'AddField("author", "rank", fields.IntegerField(null=True))')
    files.write("0003_index", 'AddIndex("book", Index(["-title"]))')
    migrate(files.folder)
    by_hand = sqlite3.connect(":memory:")
    for name in ("0001", "0002", "0003"):
        by_hand.executescript(sqlmigrate(files.folder, name, dialect="sqlite"))
    found = by_hand.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    by_hand.close()
    made = place.ask("SELECT name, sql FROM sqlite_master ORDER BY name")
    assert found == [row for row in made if "treefold_migrations" not in row[0]]


def test_a_folder_that_is_not_there_may_be_meant_as_a_target(place: Place, files: Files) -> None:
    two(files)
    for command in (migrate, rollback):
        with pytest.raises(FileError, match=r"no folder '0002_fill'.*'migrations', '0002_fill'"):
            command("0002_fill")
    assert migrate(files.folder.parent / "none" / "migrations") == []
