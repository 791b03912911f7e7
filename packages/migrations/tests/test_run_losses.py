"""Parts of a live table that no migration knows: a rebuild of SQLite keeps each, or names it."""

from __future__ import annotations

from typing import Any

import pytest
from run_support import (
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)

from treefold_migrations import RunError
from treefold_migrations._run.runner import Runner

BOOK = (
    'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
    '"title": fields.CharField(max_length=40), "rank": fields.IntegerField(null=True)}, '
    'model="Book")'
)
SHELF = 'CreateTable("shelf", {"id": fields.BigAutoField(primary_key=True)}, model="Shelf")'
WIDER = 'AlterField("book", "title", fields.CharField(max_length=80))'
PLAIN = 'CREATE TABLE "book" ("id" INTEGER PRIMARY KEY, "title" TEXT NOT NULL{}, "rank" INTEGER{}'
AGREED = 'SetOptions("book", as_found=[])'


def made_again(title: str = "", rest: str = ")") -> list[str]:
    """Statements that make the table by hand, with a part that no migration knows."""
    check = ' CONSTRAINT "ck_book_title" CHECK (length("title") <= 40)'
    return ['DROP TABLE "book"', PLAIN.format(check + title, rest)]


def added(clause: str) -> list[str]:
    return [f'ALTER TABLE "book" ADD COLUMN {clause}']


LOST = {
    "column": (added('"shelf" TEXT'), r'column "shelf" \(TEXT\)'),
    "column with a default": (added("\"state\" TEXT NOT NULL DEFAULT 'new'"), 'column "state"'),
    "column that refers": (added('"on" INTEGER REFERENCES "shelf"'), 'column "on"'),
    "generated column": (added('"loud" TEXT AS (upper("title"))'), 'column "loud"'),
    "collation": (made_again(" COLLATE NOCASE"), r'column "title" \(COLLATE NOCASE\)'),
    "default": (made_again(" DEFAULT 'x'"), r"default title \('x'\)"),
    "inline check": (made_again(" CHECK (\"title\" <> '')"), r"check .*\"title\" <> ''"),
    "inline unique": (made_again(" UNIQUE"), r"unique .*title"),
    "conflict": (made_again(" UNIQUE ON CONFLICT REPLACE"), "ON CONFLICT REPLACE|unique"),
    "check": (made_again(rest=', CONSTRAINT "few" CHECK ("rank" < 9))'), "check few"),
    "unique": (made_again(rest=', UNIQUE ("rank", "title"))'), "unique .*rank, title"),
    "foreign key": (made_again(rest=' REFERENCES "shelf" ("id"))'), "foreign key rank"),
    "required": (made_again(rest=" NOT NULL)"), r"nullability rank \(NOT NULL\)"),
    "without rowid": (made_again(rest=") WITHOUT ROWID"), r"table book \(WITHOUT ROWID\)"),
}
KEPT = {
    "index": ['CREATE INDEX "by_rank" ON "book" ("rank")'],
    "unique index": ['CREATE UNIQUE INDEX "one" ON "book" ("title", "rank")'],
    "partial index": ['CREATE INDEX "low" ON "book" ("rank") WHERE "rank" < 3'],
    "index over an expression": ['CREATE INDEX "loud" ON "book" (upper("title"))'],
    "trigger": ['CREATE TRIGGER "told" AFTER INSERT ON "book" BEGIN SELECT 1; END'],
    "view": ['CREATE VIEW "titles" AS SELECT "title" FROM "book"'],
}


def catalog(place: Place) -> list[tuple[Any, ...]]:
    return sorted(place.ask("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("name", LOST)
def test_a_rebuild_names_what_it_would_lose(place: Place, files: Files, name: str) -> None:
    statements, words = LOST[name]
    files.write("0001_initial", SHELF, BOOK)
    Runner("default", files.history()).migrate()
    for sql in statements:
        place.ask(sql)
    place.ask("INSERT INTO book (id, title, rank) VALUES (1, 'Emma', 1)")
    before, rows = catalog(place), place.ask("SELECT * FROM book")
    files.write("0002_wider", WIDER)
    with pytest.raises(RunError, match=words) as caught:
        Runner("default", files.history()).migrate()
    assert "no migration made" in str(caught.value)
    assert (catalog(place), place.ask("SELECT * FROM book")) == (before, rows)
    assert Runner("default", files.history()).pending() == ["0002_wider"]
    files.write("0002_wider", AGREED, WIDER, after=["0001_initial"])
    Runner("default", files.history()).migrate()
    assert place.ask("SELECT title, rank FROM book") == [("Emma", 1)]


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("name", KEPT)
def test_a_rebuild_keeps_what_stands_beside_the_table(
    place: Place, files: Files, name: str
) -> None:
    files.write("0001_initial", SHELF, BOOK)
    Runner("default", files.history()).migrate()
    for sql in KEPT[name]:
        place.ask(sql)
    place.ask("INSERT INTO book (id, title, rank) VALUES (1, 'Emma', 1)")
    before = [row for row in catalog(place) if "CREATE TABLE" not in str(row)]
    files.write("0002_wider", WIDER)
    Runner("default", files.history()).migrate()
    assert [row for row in catalog(place) if "CREATE TABLE" not in str(row)] == before
    assert place.ask("SELECT title, rank FROM book") == [("Emma", 1)]


@pytest.mark.parametrize("engine", ["postgres"])
def test_postgres_keeps_a_column_by_hand(place: Place, files: Files) -> None:
    files.write("0001_initial", BOOK)
    Runner("default", files.history()).migrate()
    place.ask("ALTER TABLE book ADD COLUMN shelf text DEFAULT 'a'")
    place.ask("INSERT INTO book (title) VALUES ('Emma')")
    files.write("0002_wider", WIDER)
    Runner("default", files.history()).migrate()
    assert place.ask("SELECT title, shelf FROM book") == [("Emma", "a")]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_column_of_run_sql_is_named_with_its_way_out(place: Place, files: Files) -> None:
    """The project's own RunSQL made the column; the history may drop it, or give it up."""
    files.write("0001_initial", BOOK, "RunSQL('ALTER TABLE book ADD COLUMN shelf TEXT')")
    Runner("default", files.history()).migrate()
    place.ask("INSERT INTO book (title, shelf) VALUES ('Emma', 'a')")
    files.write("0002_wider", WIDER)
    with pytest.raises(RunError, match=r"SetOptions\('book', as_found=\[\]\)"):
        Runner("default", files.history()).migrate()
    assert place.ask("SELECT shelf FROM book") == [("a",)]
    drop = "RunSQL('ALTER TABLE book DROP COLUMN shelf')"
    files.write("0002_wider", drop, WIDER, after=["0001_initial"])
    Runner("default", files.history()).migrate()
    assert place.ask("SELECT * FROM book") == [(1, "Emma", None)]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_rollback_loses_nothing_either(place: Place, files: Files) -> None:
    files.write("0001_initial", BOOK)
    files.write("0002_wider", WIDER)
    Runner("default", files.history()).migrate()
    place.ask("ALTER TABLE book ADD COLUMN shelf TEXT")
    with pytest.raises(RunError, match='column "shelf"'):
        Runner("default", files.history()).rollback()
    assert Runner("default", files.history()).pending() == []


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("deleted", ["id > 1", "id > 0"])
def test_a_rebuild_keeps_the_sequence_of_a_table_in_other_letters(
    place: Place, files: Files, deleted: str
) -> None:
    files.write("0001_initial", BOOK)
    Runner("default", files.history()).migrate()
    place.ask('DROP TABLE "book"')
    place.ask(
        'CREATE TABLE "Book" ("id" INTEGER PRIMARY KEY ASC AUTOINCREMENT, "title" TEXT NOT NULL '
        'CONSTRAINT "ck_book_title" CHECK (length("title") <= 40), "rank" INTEGER)'
    )
    place.ask("INSERT INTO book (title) VALUES ('a'), ('b'), ('c')")
    place.ask(f"DELETE FROM book WHERE {deleted}")
    files.write("0002_wider", WIDER)
    Runner("default", files.history()).migrate()
    place.ask("INSERT INTO book (title) VALUES ('d')")
    assert place.ask("SELECT max(id) FROM book") == [(4,)]
    Runner("default", files.history()).rollback()
    place.ask("DELETE FROM book")
    place.ask("INSERT INTO book (title) VALUES ('e')")
    assert place.ask("SELECT id FROM book") == [(5,)]
