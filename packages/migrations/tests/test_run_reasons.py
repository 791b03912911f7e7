"""The reason of the server for a failed change of the schema is shown; values of rows never are."""

from __future__ import annotations

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
SECRET = "s3cret-value"


def reason(files: Files, *operations: str) -> str:
    files.write("0002_change", *operations, after=["0001_initial"])
    with pytest.raises(RunError) as caught:
        Runner("default", files.history()).migrate()
    assert caught.value.__cause__ is not None
    return str(caught.value)


@pytest.fixture(autouse=True)
def book(place: Place, files: Files) -> None:
    files.write("0001_initial", BOOK, after=[])
    Runner("default", files.history()).migrate()
    place.ask(f"INSERT INTO book (title) VALUES ('{SECRET}')")


def test_a_view_that_uses_a_dropped_column_is_named(place: Place, files: Files) -> None:
    place.ask("CREATE VIEW titles AS SELECT title FROM book")
    text = reason(files, 'DropField("book", "title")')
    assert "view titles" in text
    assert "title" in text.partition("view titles")[2]
    if place.engine == "postgres":
        assert "cannot drop column title of table book because other objects depend on it" in text
        assert "view titles depends on column title of table book" in text
        assert "DROP ... CASCADE" in text


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_view_that_uses_a_column_of_another_type_is_named(place: Place, files: Files) -> None:
    place.ask("CREATE VIEW titles AS SELECT title FROM book")
    text = reason(files, 'AlterField("book", "title", fields.TextField())')
    assert "cannot alter type of a column used by a view or rule" in text
    assert 'rule _RETURN on view titles depends on column "title"' in text


DATA = {
    "a cast": "UPDATE book SET rank = CAST(title AS integer)",
    "a unique index": "CREATE UNIQUE INDEX one ON book (title)",
    "a check": "ALTER TABLE book ADD CONSTRAINT short CHECK (length(title) < 3)",
    "a function that raises": (
        "DO $$ DECLARE t text; BEGIN SELECT title INTO t FROM book LIMIT 1; "
        "RAISE EXCEPTION 'no %', t USING DETAIL = t, HINT = t; END $$"
    ),
    "a function that raises as the server": (
        "DO $$ DECLARE t text; BEGIN SELECT title INTO t FROM book LIMIT 1; "
        "RAISE EXCEPTION 'no %', t USING DETAIL = t, HINT = t, ERRCODE = '2BP01'; END $$"
    ),
    "another type": "ALTER TABLE book ALTER COLUMN title TYPE integer USING title::integer",
    "json": "UPDATE book SET rank = (title::jsonb->>'a')::int",
}


@pytest.mark.parametrize("engine", ["postgres"])
@pytest.mark.parametrize("name", DATA)
def test_values_of_rows_stay_masked(place: Place, files: Files, name: str) -> None:
    place.ask(f"INSERT INTO book (title) VALUES ('{SECRET}')")
    text = reason(files, f"RunSQL({DATA[name]!r}, '')")
    assert SECRET not in text.replace(DATA[name], "")
