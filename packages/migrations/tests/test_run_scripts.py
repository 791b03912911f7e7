"""Several statements in the text of one RunSQL run in order, in the transaction of the file."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, strategies as st
from run_support import (
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)

from treefold_migrations import PlanError, RunError
from treefold_migrations._base.sql_words import split_and_mask_statements
from treefold_migrations._commands.running import migrate, sqlmigrate
from treefold_migrations._plan.sqlite_script import split_script
from treefold_migrations._run.runner import Runner

TABLE = "CREATE TABLE note (id integer, text text);"
TWO = f"""
    -- a comment; with a semicolon
    {TABLE}
    /* another; one */
    INSERT INTO note (id, text) VALUES (1, 'a;b''c;'), (2, '-- no comment;');
    INSERT INTO note (id, text) VALUES (3, '/* ; */')
"""
TRIGGER = """CREATE TRIGGER told AFTER INSERT ON note BEGIN
    UPDATE note SET text = CASE WHEN id = 1 THEN 'one;' ELSE 'more' END;
    DELETE FROM note WHERE text = 'END;'; -- END;
END"""


def test_the_statements_of_one_text_run(place: Place, files: Files) -> None:
    files.write("0001_notes", f"RunSQL({TWO!r}, 'DROP TABLE note; SELECT 1;')", after=[])
    Runner("default", files.history()).migrate()
    found = place.ask("SELECT id, text FROM note ORDER BY id")
    assert found == [(1, "a;b'c;"), (2, "-- no comment;"), (3, "/* ; */")]
    Runner("default", files.history()).rollback()
    assert "note" not in place.tables()


def test_a_failed_statement_takes_the_ones_before_it_back(place: Place, files: Files) -> None:
    files.write("0001_notes", f"RunSQL({TABLE + 'INSERT INTO nowhere VALUES (1);'!r})", after=[])
    with pytest.raises(RunError, match="nowhere"):
        Runner("default", files.history()).migrate()
    assert "note" not in place.tables()
    assert Runner("default", files.history()).pending() == ["0001_notes"]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_trigger_is_one_statement_of_several(place: Place, files: Files) -> None:
    text = f"{TABLE} {TRIGGER}; INSERT INTO note VALUES (1, 'x'), (2, 'y');"
    files.write("0001_notes", f"RunSQL({text!r})", after=[])
    lines: list[str] = []
    migrate(files.folder, say=lines.append)
    assert place.ask("SELECT id, text FROM note ORDER BY id") == [(1, "one;"), (2, "more")]
    assert [line[:40] for line in lines] == [
        "0001_notes: 3 steps",
        "  1/3 run SQL: CREATE TABLE note (id int",
        "  2/3 run SQL: CREATE TRIGGER told AFTER",
        "  3/3 run SQL: INSERT INTO note VALUES (",
    ]
    script = sqlmigrate(files.folder, "0001", dialect="sqlite")
    by_hand = sqlite3.connect(":memory:")
    by_hand.executescript(script)
    assert by_hand.execute("SELECT count(*) FROM note").fetchone() == (2,)
    by_hand.close()


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("word", ["BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "END"])
def test_a_script_with_a_transaction_of_its_own_is_refused(
    place: Place, files: Files, word: str
) -> None:
    files.write("0001_notes", f"RunSQL({TABLE + word + ';'!r})", after=[])
    with pytest.raises(PlanError, match=rf"cannot hold {word.split()[0]}.*take it out"):
        Runner("default", files.history()).migrate()
    assert "note" not in place.tables()


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("", []),
        (" ; ;-- nothing\n;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; -- as it stands", ["SELECT 1; -- as it stands"]),
        ("SELECT ';' ; SELECT 2", ["SELECT ';' ;", "SELECT 2"]),
        ('SELECT 1 AS "a;b"; SELECT 2 AS [c;d];', ['SELECT 1 AS "a;b";', "SELECT 2 AS [c;d];"]),
        ("SELECT 1 AS `a;b`; /* ; */", ["SELECT 1 AS `a;b`; /* ; */"]),
        (f"{TRIGGER};\nSELECT 1", [f"{TRIGGER};", "SELECT 1"]),
        (f"{TRIGGER}", [TRIGGER]),
        (f"SELECT 1; {TRIGGER.replace('CREATE', 'CREATE TEMP')}", None),
        ("SELECT 1; SELECT 'open", ["SELECT 1;", "SELECT 'open"]),
    ],
)
def test_a_text_is_split_into_its_statements(sql: str, statements: list[str] | None) -> None:
    expected = statements or ["SELECT 1;", TRIGGER.replace("CREATE", "CREATE TEMP")]
    assert split_script(sql) == ([] if statements == [] else expected)


STATEMENTS = {
    "postgres": [
        "CREATE TABLE note (id integer, text text, words text[])",
        "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f1$ BEGIN PERFORM 1; "
        "DROP TABLE note; END $f1$",
        "CREATE FUNCTION g() RETURNS integer LANGUAGE sql BEGIN ATOMIC SELECT 1; "
        "SELECT CASE WHEN true THEN 2 END; END",
        "/* a /* nested; */ comment; */ INSERT INTO note VALUES (1, E'it\\'s; \\\\', ARRAY['];'])",
        "SELECT 1 AS a$b$, words[1], '\\' FROM note",
        "SELECT 2 AS b$b$, $é1$;$$;$é1$",
        "DROP TABLE note",
    ],
    "sqlite": [
        "CREATE TABLE [no;te] (id integer, `te;``xt` text)",
        "CREATE TRIGGER told AFTER INSERT ON [no;te] BEGIN UPDATE [no;te] SET id = "
        "CASE WHEN NEW.id = 1 THEN 2 ELSE 3 END; DELETE FROM [no;te] WHERE `te;``xt` = 'END;'; END",
        "/* a /* b */ INSERT INTO [no;te] VALUES (1, '\\')",
        "DROP TABLE [no;te]",
    ],
}


def test_statements_are_those_of_the_database(place: Place) -> None:
    given = STATEMENTS[place.engine]
    found = [written for written, _ in split_and_mask_statements("; ".join(given))]
    assert found == given
    for statement in found:
        place.ask(statement)
    if place.engine == "sqlite":
        assert split_script("; ".join(given)) == [*(f"{one};" for one in given[:-1]), given[-1]]


PIECES = st.sampled_from(
    [
        "SELECT 1",
        "SELECT ';'",
        "SELECT 'it''s; ' -- ;",
        'SELECT 2 AS ";"',
        TRIGGER,
        "/* ; */SELECT 3",
    ]
)


@given(st.lists(PIECES, min_size=2, max_size=6), st.sampled_from(["", "\n", " -- ;\n", "/* ; */"]))
def test_statements_that_were_joined_are_split_again(pieces: list[str], between: str) -> None:
    found = split_script(between.join(f"{piece}\n;" for piece in pieces))
    assert len(found) == len(pieces)
    for piece, statement in zip(pieces, found, strict=True):
        assert statement.endswith(f"{piece}\n;")
