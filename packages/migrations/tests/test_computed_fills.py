"""A fill that reads the row: each row that exists has its own value, on the way forth and back."""

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

from treefold_migrations import Ambiguous, MigrationError, RunError, StateError, drift
from treefold_migrations._detect.fills import parse_fill_value
from treefold_migrations._run.runner import Runner
from treefold_orm.schema import SourceWriter

SLUG = "fields.CharField(max_length=30, unique=True)"
FILLED = 'Concat("title", Value("-"), Cast("id", fields.TextField()))'
ROWS = [(1, "Emma"), (2, "Emma"), (3, "Emma 1")]


def book(**more: str) -> str:
    columns = "".join(f', "{name}": {kind}' for name, kind in more.items())
    return (
        'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
        f'"title": fields.CharField(max_length=20){columns}}}, model="Book")'
    )


def runner(files: Files) -> Runner:
    return Runner("default", files.history())


def start(place: Place, files: Files, *operations: str) -> None:
    files.write("0001_initial", *(operations or (book(),)), after=[])
    runner(files).migrate()
    for number, title in ROWS:
        place.ask(f"INSERT INTO book (id, title) VALUES ({number}, '{title}')")


def slugs(place: Place) -> list[Any]:
    return [row[0] for row in place.ask("SELECT slug FROM book ORDER BY id")]


def test_a_unique_field_is_added_to_rows(place: Place, files: Files) -> None:
    start(place, files)
    files.write("0002_slug", f'AddField("book", "slug", {SLUG}, fill={FILLED})')
    runner(files).migrate()
    assert slugs(place) == ["Emma-1", "Emma-2", "Emma 1-3"]
    assert drift(files.folder) == []
    runner(files).rollback(allow_destructive=True)
    assert place.ask("SELECT id, title FROM book ORDER BY id") == ROWS


def test_a_dropped_unique_field_comes_back(place: Place, files: Files) -> None:
    start(place, files, book(slug="fields.CharField(max_length=30, null=True)"))
    place.ask("UPDATE book SET slug = title || id")
    files.write("0002_unique", f'AlterField("book", "slug", {SLUG})')
    files.write("0003_drop", 'DropField("book", "slug")', after=["0002_unique"])
    runner(files).migrate()
    with pytest.raises(Ambiguous, match=r"It is unique: a name in braces, such as \{id\}, gives"):
        runner(files).rollback()
    with pytest.raises(RunError, match="repeat another row in slug"):
        runner(files).rollback(fill=["book.slug:same"])
    with pytest.raises(RunError, match="repeat another row in slug"):
        runner(files).rollback(fill=["book.slug:{title}"])
    runner(files).rollback(fill=["book.slug:{title}/{id}"])
    assert slugs(place) == ["Emma/1", "Emma/2", "Emma 1/3"]
    assert drift(files.folder) == []
    runner(files).migrate()
    assert runner(files).pending() == []


def test_rows_of_both_releases_get_their_own_values(place: Place, files: Files) -> None:
    start(place, files)
    files.write("0002_slug", f'AddField("book", "slug", {SLUG}, fill={FILLED})')
    runner(files).migrate(phase="expand")
    assert slugs(place) == ["Emma-1", "Emma-2", "Emma 1-3"]
    place.ask("INSERT INTO book (id, title) VALUES (4, 'Old')")  # the running release
    place.ask("INSERT INTO book (id, title, slug) VALUES (5, 'New', 'mine')")
    assert slugs(place)[3:] == [None, "mine"]
    runner(files).migrate()
    assert slugs(place)[3:] == ["Old-4", "mine"]
    assert drift(files.folder) == []


def test_nulls_of_a_field_that_becomes_required(place: Place, files: Files) -> None:
    start(place, files, book(slug="fields.CharField(max_length=30, null=True)"))
    place.ask("UPDATE book SET slug = 'kept' WHERE id = 2")
    files.write("0002_required", f'AlterField("book", "slug", {SLUG}, fill={FILLED})')
    runner(files).migrate()
    assert slugs(place) == ["Emma-1", "kept", "Emma 1-3"]


def test_a_fill_reads_what_the_operations_before_it_have_made(place: Place, files: Files) -> None:
    start(place, files)
    files.write(
        "0002_names",
        'RenameField("book", "title", "name")',
        'AddField("book", "rank", fields.BigIntegerField(), fill=F("id") * 10)',
        'AddField("book", "slug", fields.TextField(), fill=Concat("name", Value("!")))',
        'AddField("book", "twice", fields.BigIntegerField(), fill=F("rank") * 2)',
        'RenameField("book", "name", "headline")',
        'DropField("book", "rank")',
    )
    runner(files).migrate()
    found = place.ask("SELECT headline, slug, twice FROM book ORDER BY id")
    assert found == [("Emma", "Emma!", 20), ("Emma", "Emma!", 40), ("Emma 1", "Emma 1!", 60)]
    assert drift(files.folder) == []


def test_a_row_without_a_value_is_named_and_nothing_is_changed(place: Place, files: Files) -> None:
    start(place, files, book(author="fields.CharField(max_length=9, null=True)"))
    place.ask("UPDATE book SET author = 'Jane' WHERE id <> 2")
    before = place.ask("SELECT * FROM book ORDER BY id")
    files.write(
        "0002_by", 'AddField("book", "by", fields.CharField(max_length=9), fill=F("author"))'
    )
    with pytest.raises(RunError, match=r"book: 1 rows have NULL in by, which will allow none"):
        runner(files).migrate()
    assert place.ask("SELECT * FROM book ORDER BY id") == before
    assert runner(files).pending() == ["0002_by"]


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        ('F("titel")', "titel"),
        ('F("title")', "cannot be used"),
        ('Count("id")', "cannot look at aggregates or other rows"),
        ('F("shelf__name")', "shelf"),
    ],
)
def test_an_expression_that_is_no_value_of_the_row(
    place: Place, files: Files, fill: str, message: str
) -> None:
    start(place, files)
    files.write("0002_rank", f'AddField("book", "rank", fields.IntegerField(), fill={fill})')
    with pytest.raises((StateError, RunError, MigrationError), match=message):
        runner(files).migrate()
    assert runner(files).pending() == ["0002_rank"]


TEMPLATES = {
    ("slug", "{title}"): 'F("title")',
    ("slug", "{id}"): 'Cast("id", fields.TextField())',
    ("slug", "a {title} b"): 'Concat(Value("a "), F("title"), Value(" b"))',
    ("slug", "{title}{id}"): 'Concat(F("title"), Cast("id", fields.TextField()))',
    ("rank", "{id}"): 'F("id")',
    ("slug", "'{title}'"): '"{title}"',
    ("slug", "{}"): '"{}"',
    ("slug", "{1}"): '"{1}"',
    ("slug", "{a b}"): '"{a b}"',
    ("data", '{"title": 1}'): '{"title": 1}',
    ("data", "{}"): "{}",
}
WRONG = {
    ("slug", "{titel}"): "names 'titel', which is no other field of the table: it has data, id, ",
    ("slug", "{slug}"): "names 'slug', which is no other field of the table",
    ("rank", "{id}0"): "must be one name in braces: the field holds no text",
    ("rank", "{id}{id}"): "must be one name in braces: the field holds no text",
}


@pytest.mark.parametrize(("name", "text"), [*TEMPLATES, *WRONG])
def test_a_text_with_names_in_braces(files: Files, name: str, text: str) -> None:
    more = {"slug": SLUG, "rank": "fields.IntegerField()", "data": "fields.JSONField()"}
    files.write("0001_initial", book(**more), after=[])
    state = files.history().compute_state_after()
    if (name, text) in WRONG:
        with pytest.raises(MigrationError, match=WRONG[name, text]):
            parse_fill_value(state, "book", name, text)
    else:
        made = SourceWriter().value(parse_fill_value(state, "book", name, text))
        assert made == TEMPLATES[name, text]
