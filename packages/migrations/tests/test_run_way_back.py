"""A dropped field comes back with values: its default, or the one that rollback is given."""

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

from treefold_migrations import Ambiguous, MigrationError
from treefold_migrations._commands import command_line
from treefold_migrations._commands.running import sqlmigrate
from treefold_migrations._run.runner import Runner

FIELDS = {
    "text with a default": ('fields.CharField(max_length=9, default="it\'s")', "it's", True),
    "number with a default": ("fields.IntegerField(default=7)", 7, True),
    "truth with a default": ("fields.BooleanField(default=True)", True, True),
    "optional": ("fields.IntegerField(null=True)", None, True),
    "default of the database": ("fields.IntegerField(db_default=5)", 5, True),
    "text without a default": ("fields.CharField(max_length=9)", "a:b", False),
    "unique in one row": ("fields.IntegerField(unique=True, default=3)", 3, True),
}


def table(shelf: str) -> str:
    return (
        'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
        f'"title": fields.CharField(max_length=40), "shelf": {shelf}}}, model="Book")'
    )


def migrate(files: Files) -> None:
    Runner("default", files.history()).migrate()


def rollback(files: Files, **options: Any) -> None:
    Runner("default", files.history()).rollback(**options)


def dropped(place: Place, files: Files, shelf: str, *, rows: int = 1) -> list[tuple[Any, ...]]:
    """Make the table, drop the field, insert rows of the new release; return the columns before."""
    files.write("0001_initial", table(shelf), after=[])
    migrate(files)
    columns = place.ask("SELECT * FROM book")
    files.write("0002_drop", 'DropField("book", "shelf")')
    migrate(files)
    for number in range(rows):
        place.ask(f"INSERT INTO book (title) VALUES ('Emma {number}')")
    return columns


@pytest.mark.parametrize("name", FIELDS)
def test_a_dropped_field_comes_back_with_values(place: Place, files: Files, name: str) -> None:
    shelf, value, alone = FIELDS[name]
    dropped(place, files, shelf)
    rollback(files, fill=() if alone else [f"book.shelf:{value}"])
    assert place.ask("SELECT title, shelf FROM book") == [("Emma 0", value)]
    assert Runner("default", files.history()).pending() == ["0002_drop"]
    migrate(files)
    rollback(files, fill=() if alone else [f"book.shelf:{value}"])
    assert place.ask("SELECT title, shelf FROM book") == [("Emma 0", value)]


def test_a_field_without_a_value_stops_before_the_first_step(place: Place, files: Files) -> None:
    """The index is dropped by a step of its own on PostgreSQL, which must not have run either."""
    shelf = "fields.CharField(max_length=9)"
    dropped(place, files, shelf)
    files.write("0003_index", 'AddIndex("book", Index(["title"]))')
    migrate(files)
    with pytest.raises(Ambiguous, match=r"'0002_drop' brings back book.shelf") as caught:
        rollback(files, steps=2)
    assert caught.value.flags == ("--fill book.shelf:VALUE",)
    assert "--fill book.shelf:VALUE" in str(caught.value)
    assert Runner("default", files.history()).pending() == []
    rollback(files, steps=2, fill=["book.shelf:x"])
    assert place.ask("SELECT title, shelf FROM book") == [("Emma 0", "x")]


def test_an_empty_table_needs_no_value(place: Place, files: Files) -> None:
    dropped(place, files, "fields.CharField(max_length=9)", rows=0)
    rollback(files)
    place.ask("INSERT INTO book (title, shelf) VALUES ('Emma', 'a')")
    assert place.ask("SELECT title, shelf FROM book") == [("Emma", "a")]


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        ("book.title:x", "--fill book.title does not fit: this rollback brings back no such field"),
        ("book.shelf:many", "--fill book.shelf:many does not fit the field"),
        ("book", "--fill must be such as post.slug:text, got 'book'"),
    ],
)
def test_a_value_that_does_not_fit_changes_nothing(
    place: Place, files: Files, fill: str, words: str
) -> None:
    dropped(place, files, "fields.IntegerField()")
    with pytest.raises(MigrationError, match=words):
        rollback(files, fill=[fill])
    assert Runner("default", files.history()).pending() == []


@pytest.mark.parametrize("default", [", default='none'", ""])
def test_a_field_that_may_be_null_gets_values_where_it_may_not_again(
    place: Place, files: Files, default: str
) -> None:
    files.write("0001_initial", table(f"fields.CharField(max_length=9{default})"), after=[])
    files.write(
        "0002_null",
        f'AlterField("book", "shelf", fields.CharField(max_length=9, null=True{default}))',
    )
    migrate(files)
    place.ask("INSERT INTO book (title, shelf) VALUES ('Emma', NULL), ('Persuasion', 'a')")
    if not default:
        with pytest.raises(Ambiguous, match=r"--fill book\.shelf:VALUE"):
            rollback(files)
    rollback(files, fill=() if default else ["book.shelf:none"])
    found = place.ask("SELECT title, shelf FROM book ORDER BY title")
    assert found == [("Emma", "none"), ("Persuasion", "a")]


def test_a_renamed_table_is_asked_for_by_its_name_then(place: Place, files: Files) -> None:
    dropped(place, files, "fields.CharField(max_length=9)")
    files.write("0003_rename", 'RenameTable("book", "volume")')
    migrate(files)
    with pytest.raises(Ambiguous, match=r"--fill book\.shelf:VALUE"):
        rollback(files, steps=2)
    rollback(files, steps=2, fill=["book.shelf:x"])
    assert place.ask("SELECT title, shelf FROM book") == [("Emma 0", "x")]


def test_a_field_of_the_database_alone_comes_back_too(place: Place, files: Files) -> None:
    dropped_alone = (
        'SeparateStateAndDatabase(database=[DropField("book", "shelf")], '
        'state=[DropField("book", "shelf")])'
    )
    files.write("0001_initial", table("fields.IntegerField(default=7)"), after=[])
    files.write("0002_drop", dropped_alone)
    migrate(files)
    place.ask("INSERT INTO book (title) VALUES ('Emma')")
    rollback(files)
    assert place.ask("SELECT title, shelf FROM book") == [("Emma", 7)]


def test_the_command_names_the_flag_and_takes_it(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    dropped(place, files, "fields.CharField(max_length=9)")
    project = str(files.folder.parent)
    assert command_line.rollback(app_dir=project) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "  --fill book.shelf:VALUE"
    assert command_line.rollback(fill=["book.shelf:x"], app_dir=project) == 0
    assert place.ask("SELECT title, shelf FROM book") == [("Emma 0", "x")]


def test_the_script_of_a_way_back_has_the_default(files: Files) -> None:
    files.write("0001_initial", table("fields.IntegerField(default=7)"), after=[])
    files.write("0002_drop", 'DropField("book", "shelf")')
    sql = sqlmigrate(files.folder, "0002", dialect="postgres", backwards=True)
    assert 'ADD COLUMN "shelf" integer NOT NULL DEFAULT 7' in sql
