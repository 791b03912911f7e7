"""Changes by hand beside the migrations: each is one line that names it and the next step."""

from __future__ import annotations

import asyncio
from pathlib import Path

import inspect_models
import pytest
from inspect_place import Place, make_place as make_place, place as place

from treefold_migrations import (
    HistoryError,
    load_folder,
    migrate,
    squash,
)
from treefold_migrations._files.history import History
from treefold_migrations._inspect.found import InspectError
from treefold_migrations._inspect.live import compare_database
from treefold_migrations._run.drift import adrift, drift
from treefold_migrations._state.rendering import render_managed_tables
from treefold_orm import UniqueViolation, aclose_all, configure
from treefold_orm.schema import ColumnDef, CreateTable, TableDef, statements

ITEMS = '"Items of shops"'

BOTH = {
    "a table without a migration": (
        "CREATE TABLE stray (id integer PRIMARY KEY)",
        "Table 'stray' is in the database, and no migration made it",
    ),
    "a missing table": ("DROP TABLE inspect_talk", "Table 'inspect_talk' is missing"),
    "another column": (
        "ALTER TABLE inspect_shop ADD COLUMN note text",
        "Column inspect_shop.note (text) is in the database, and no migration made it",
    ),
    "a missing column": (
        f"ALTER TABLE {ITEMS} DROP COLUMN ratio",
        "Column Items of shops.ratio is missing from the database; add it",
    ),
    "a renamed column": (
        f"ALTER TABLE {ITEMS} RENAME COLUMN ratio TO share",
        "Column Items of shops.ratio is missing from the database",
        "Column Items of shops.share",
    ),
    "a missing index": (
        'DROP INDEX "lowered"',
        "The index 'lowered' of Items of shops is missing",
    ),
    "another index": (
        f'CREATE INDEX stray ON {ITEMS} ("small")',
        "The index 'stray' of Items of shops is in the database, and no migration made it: "
        '("small")',
    ),
    "an index over other columns": (
        f'DROP INDEX lowered; CREATE INDEX lowered ON {ITEMS} ("small")',
        "The index 'lowered' of Items of shops is (\"small\"), and the migrations made",
    ),
    "a partial index with another condition": (
        f'DROP INDEX "one_label"; CREATE UNIQUE INDEX one_label ON {ITEMS} ("Label") '
        "WHERE count > 2",
        "The unique 'one_label' of Items of shops is (\"Label\") WHERE",
    ),
    "a missing unique index": (
        'DROP INDEX "one_label"',
        "The unique 'one_label' of Items of shops is missing",
    ),
    "an index under another name": (
        f"DROP INDEX lowered; CREATE INDEX raised ON {ITEMS} ((@lower@(code)) DESC, made)",
        "The index 'lowered' of Items of shops is called 'raised'",
    ),
}
POSTGRES = {
    "another type": (
        f"ALTER TABLE {ITEMS} ALTER small TYPE bigint",
        "Items of shops.small has type bigint, and the migrations made smallint; change it back",
    ),
    "another length": (
        f"ALTER TABLE {ITEMS} ALTER code TYPE varchar(11)",
        "Items of shops.code has type varchar(11), and the migrations made varchar(10)",
    ),
    "NULL allowed": (
        f"ALTER TABLE {ITEMS} ALTER small DROP NOT NULL",
        "Items of shops.small has nullability NULL, and the migrations made NOT NULL; "
        'ALTER TABLE "Items of shops" ALTER COLUMN "small" SET NOT NULL',
    ),
    "another default": (
        f"ALTER TABLE {ITEMS} ALTER small SET DEFAULT 7",
        "Items of shops.small has default 7, and the migrations made '-1'::integer",
    ),
    "a missing default": (
        f"ALTER TABLE {ITEMS} ALTER small DROP DEFAULT",
        "Items of shops.small has default (none), and the migrations made",
    ),
    "a key without identity": (
        "ALTER TABLE inspect_shop ALTER id DROP IDENTITY",
        "inspect_shop.id has no generated key",
    ),
    "another kind of identity": (
        "ALTER TABLE inspect_shop ALTER id SET GENERATED ALWAYS",
        "inspect_shop.id is GENERATED ALWAYS AS IDENTITY, which no migration made",
    ),
    "a missing check": (
        f"ALTER TABLE {ITEMS} DROP CONSTRAINT few",
        "The check 'few' of Items of shops is missing: ",
    ),
    "another check": (
        f"ALTER TABLE {ITEMS} DROP CONSTRAINT few, ADD CONSTRAINT few CHECK (count < 99)",
        "The check 'few' of Items of shops is (count < 99), and the migrations made ",
    ),
    "a check that is not valid": (
        "ALTER TABLE inspect_talk ADD CONSTRAINT sane CHECK (room > 0) NOT VALID",
        "The check 'sane' of inspect_talk is in the database",
    ),
    "a declared check that is not valid": (
        f"ALTER TABLE {ITEMS} DROP CONSTRAINT few, ADD CONSTRAINT few CHECK "
        "(count < 100 OR code = 'it''s') NOT VALID",
        'The check few is NOT VALID: rows may break it; ALTER TABLE "Items of shops" VALIDATE '
        'CONSTRAINT "few"',
    ),
    "a foreign key that is not valid": (
        f'ALTER TABLE {ITEMS} DROP CONSTRAINT "fk_Items of shops_shop_id", ADD CONSTRAINT '
        '"fk_Items of shops_shop_id" FOREIGN KEY (shop_id) REFERENCES inspect_shop ON DELETE '
        "CASCADE NOT VALID",
        "The foreign key Items of shops.shop_id is NOT VALID: rows may break it; ALTER TABLE "
        '"Items of shops" VALIDATE CONSTRAINT "fk_Items of shops_shop_id"',
    ),
    "a missing foreign key": (
        f'ALTER TABLE {ITEMS} DROP CONSTRAINT "fk_Items of shops_shop_id"',
        "The foreign key from Items of shops.shop_id to inspect_shop.id is missing",
    ),
    "another foreign key": (
        "ALTER TABLE inspect_talk ADD FOREIGN KEY (room) REFERENCES inspect_shop",
        "The foreign key from inspect_talk.room to inspect_shop.id is in the database",
    ),
    "another ON DELETE": (
        f'ALTER TABLE {ITEMS} DROP CONSTRAINT "fk_Items of shops_shop_id", ADD CONSTRAINT '
        '"fk_Items of shops_shop_id" FOREIGN KEY (shop_id) REFERENCES inspect_shop ON DELETE '
        "RESTRICT",
        "The foreign key from Items of shops.shop_id has ON DELETE RESTRICT, and the migrations "
        "made CASCADE",
    ),
    "ON UPDATE": (
        f'ALTER TABLE {ITEMS} DROP CONSTRAINT "fk_Items of shops_shop_id", ADD CONSTRAINT '
        '"fk_Items of shops_shop_id" FOREIGN KEY (shop_id) REFERENCES inspect_shop ON DELETE '
        "CASCADE ON UPDATE CASCADE",
        "Items of shops.shop_id is ON UPDATE CASCADE, which no migration made",
    ),
    "a renamed foreign key": (
        f'ALTER TABLE {ITEMS} RENAME CONSTRAINT "fk_Items of shops_shop_id" TO other',
        "The foreign key from Items of shops.shop_id is called 'other', not "
        '\'fk_Items of shops_shop_id\'; ALTER TABLE "Items of shops" RENAME CONSTRAINT "other" '
        'TO "fk_Items of shops_shop_id"',
    ),
    "an index of another kind": (
        "DROP INDEX latest; CREATE INDEX latest ON inspect_talk USING brin (begins)",
        "The index 'latest' of inspect_talk is",
        "latest is USING brin, which no migration made",
    ),
    "a dropped search": ("DROP INDEX words", "The index 'words' of Items of shops is missing"),
    "another search": (
        f"DROP INDEX words; CREATE INDEX words ON {ITEMS} USING gin "
        "(to_tsvector('simple'::regconfig, text))",
        "The index 'words' of Items of shops is (",
    ),
    "a constraint that is deferred no more": (
        "ALTER TABLE inspect_talk DROP CONSTRAINT late, ADD CONSTRAINT late UNIQUE (room) "
        "INCLUDE (note)",
        "The unique 'late' of inspect_talk is (room), and the migrations made (room)",
    ),
    "another exclusion": (
        "ALTER TABLE inspect_talk DROP CONSTRAINT apart",
        "The exclusion 'apart' of inspect_talk is missing",
    ),
    "a column that the database computes": (
        "ALTER TABLE inspect_shop ADD COLUMN twice text GENERATED ALWAYS AS (name || name) STORED",
        "Column inspect_shop.twice (text) is in the database",
    ),
    "a view in the place of a table": (
        "ALTER TABLE inspect_talk RENAME TO kept; CREATE VIEW inspect_talk AS SELECT * FROM kept",
        "'inspect_talk' is a view, and the migrations made a table",
        "Table 'kept' is in the database",
    ),
    "a collation": (
        f'ALTER TABLE {ITEMS} ALTER code TYPE varchar(10) COLLATE "C"',
        "Items of shops.code is COLLATE C, which no migration made",
    ),
    "another primary key": (
        "ALTER TABLE inspect_talk DROP CONSTRAINT inspect_talk_pkey, ADD PRIMARY KEY (id, room)",
        "inspect_talk has the primary key (id, room), and the migrations made (id)",
    ),
}
SQLITE = {
    "a dropped trigger of a search": (
        "DROP TRIGGER update_words",
        "words is trigger update_words is missing",
    ),
    "a dropped search": (
        "DROP TRIGGER insert_words; DROP TRIGGER update_words; DROP TRIGGER delete_words; "
        "DROP TABLE words",
        "The search index 'words' of Items of shops is missing",
    ),
    "another search": (
        "DROP TABLE words; CREATE VIRTUAL TABLE words USING fts5(text, "
        f"content={ITEMS}, content_rowid=id, tokenize='porter unicode61 remove_diacritics 0')",
        "The search index 'words' of Items of shops is (text), and the migrations made "
        "(text, Label)",
    ),
    "a table made again without types": (
        "DROP TABLE inspect_talk; CREATE TABLE inspect_talk (id INTEGER PRIMARY KEY AUTOINCREMENT, "
        "room TEXT, begins TEXT NOT NULL DEFAULT 'now' COLLATE NOCASE, ends TEXT NOT NULL "
        "REFERENCES inspect_shop, note TEXT NOT NULL CHECK (length(note) <= 9) UNIQUE)",
        "inspect_talk is not STRICT, as the migrations made it; rebuild the table",
        "inspect_talk.id is AUTOINCREMENT",
        "inspect_talk.room has type TEXT, and the migrations made INTEGER",
        "inspect_talk.room has nullability NULL, and the migrations made NOT NULL; rebuild",
        "inspect_talk.begins has default 'now', and the migrations made (none)",
        "inspect_talk.begins is COLLATE NOCASE",
        "The foreign key from inspect_talk.ends to inspect_shop.id is in the database",
        "The check 'ck_inspect_talk_room' of inspect_talk is missing: \"room\" BETWEEN",
        "The check 'ck_inspect_talk_note' of inspect_talk is missing: length(\"note\") <= 10",
        "inspect_talk has a check without a name that no migration made: length(note) <= 9",
        "inspect_talk has a unique without a name that no migration made: (note)",
    ),
    "a key that counts, declared behind the columns": (
        "DROP TABLE inspect_talk; CREATE TABLE inspect_talk (id INTEGER, room INTEGER NOT NULL "
        "CONSTRAINT ck_inspect_talk_room CHECK (room BETWEEN -2147483648 AND 2147483647), begins "
        "TEXT NOT NULL, ends TEXT NOT NULL, note TEXT NOT NULL CONSTRAINT ck_inspect_talk_note "
        "CHECK (length(note) <= 10), PRIMARY KEY (id AUTOINCREMENT)) STRICT",
        "inspect_talk.id is AUTOINCREMENT",
    ),
}


def made(place: Place) -> dict[str, TableDef]:
    """Create the tables of `inspect_models`, as far as the engine has them."""
    if place.engine == "postgres":
        models = (*inspect_models.BOTH, *inspect_models.POSTGRES)
        return place.create(model._meta for model in models)
    return place.create(model._meta for model in (*inspect_models.BOTH, inspect_models.Plain))


def check(place: Place, case: tuple[str, ...]) -> None:
    """Change the tables, and hold the lines against the expected beginnings."""
    wanted = made(place)
    lower = "treefold_lower" if place.engine == "sqlite" else "lower"
    for sql in case[0].split("; "):
        place.do(sql.replace("@lower@", lower))
    lines = [str(difference) for difference in compare_database(wanted, place.alias)]
    expected = list(case[1:])
    print("\n".join(lines))
    assert len(lines) == len(expected)
    for line in lines:
        assert any(line.startswith(text) for text in expected), line
    for text in expected:
        assert any(line.startswith(text) for line in lines), text


@pytest.mark.parametrize("case", BOTH.values(), ids=BOTH.keys())
def test_a_change_by_hand_is_one_line(place: Place, case: tuple[str, ...]) -> None:
    check(place, case)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize("case", POSTGRES.values(), ids=POSTGRES.keys())
def test_a_change_of_postgres_is_one_line(place: Place, case: tuple[str, ...]) -> None:
    check(place, case)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("case", SQLITE.values(), ids=SQLITE.keys())
def test_a_change_of_sqlite_is_one_line(place: Place, case: tuple[str, ...]) -> None:
    check(place, case)


HEAD = "from treefold_migrations import *\nfrom treefold_orm import fields\n"
FIRST = """
migration = Migration(operations=[
    CreateTable("author", {"id": fields.BigAutoField(), "name": fields.TextField()}, "Author"),
    CreateTable("kept", {"id": fields.BigAutoField()}, "Kept", managed=False),
])
"""
SECOND = """
migration = Migration(after=["0001_initial"], operations=[
    AddField("author", "age", fields.IntegerField(null=True)),
])
"""


def history(folder: Path) -> History:
    """Two files, of which a database may have applied one."""
    (folder / "0001_initial.py").write_text(HEAD + FIRST, encoding="utf-8")
    (folder / "0002_age.py").write_text(HEAD + SECOND, encoding="utf-8")
    return load_folder(folder)


def apply(place: Place, files: History, *names: str) -> None:
    """Create what the named files lead to, and record them."""
    state = files.replay_migrations(names)
    for table in render_managed_tables(state, place.dialect).values():
        place.do(*statements(CreateTable(table), place.dialect))
    migrate(files.folder, names[-1], database=place.alias, fake=True)


def test_a_database_is_held_against_what_it_has_applied(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    files = history(folder)
    apply(place, files, "0001_initial")
    assert drift(files, place.alias) == []  # 0002 is pending, which is not a drift
    place.do("CREATE TABLE kept (id text)")  # not managed, whatever it is like
    assert drift(files, place.alias) == []
    place.do("ALTER TABLE author ADD COLUMN age text")
    place.do("CREATE VIEW names AS SELECT name FROM author")
    (found,) = drift(files, place.alias)
    assert str(found).startswith("Column author.age (text) is in the database")

    async def read() -> None:
        try:
            assert await adrift(files, place.alias) == [found]
        finally:
            await aclose_all()

    asyncio.run(read())


def test_a_database_without_records_has_only_foreign_tables(place: Place, tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    files = history(tmp_path / "migrations")
    assert drift(files, place.alias) == []
    place.do("CREATE TABLE author (id integer)")
    (found,) = drift(files, place.alias)
    assert found.problem == "Table 'author' is in the database, and no migration made it"


def test_an_applied_migration_without_a_file_is_named(place: Place, tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    files = history(tmp_path / "migrations")
    apply(place, files, "0001_initial")
    place.do("UPDATE treefold_migrations SET name = '0009_gone'")
    with pytest.raises(HistoryError, match="'0009_gone' is applied and its file is missing"):
        drift(files, place.alias)


def test_a_file_that_was_changed_since_is_named(place: Place, tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    files = history(tmp_path / "migrations")
    apply(place, files, "0001_initial")
    path = tmp_path / "migrations" / "0001_initial.py"
    path.write_text(path.read_text(encoding="utf-8").replace("Kept", "Held"), encoding="utf-8")
    with pytest.raises(HistoryError, match="'0001_initial' was changed after it was applied"):
        drift(load_folder(tmp_path / "migrations"), place.alias)


def test_a_squashed_file_counts_as_the_files_that_it_replaces(place: Place, tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    files = history(tmp_path / "migrations")
    apply(place, files, "0001_initial", "0002_age")
    squash("0002", tmp_path / "migrations")
    assert drift(load_folder(tmp_path / "migrations"), place.alias) == []


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_comparing_leaves_nothing_behind(place: Place) -> None:
    wanted = made(place)
    count = "SELECT count(*) FROM pg_class"
    before = place.ask(count)
    assert compare_database(wanted, place.alias) == []
    assert place.ask(count) == before


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_an_index_that_is_not_valid_is_named(place: Place) -> None:
    wanted = made(place)
    # the state that a CREATE INDEX CONCURRENTLY leaves behind when it is interrupted
    place.do("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'lowered'::regclass")
    (found,) = compare_database(wanted, place.alias)
    assert str(found) == (
        'lowered is invalid, which no migration made; REINDEX INDEX CONCURRENTLY "lowered"'
    )


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_an_index_whose_concurrent_build_failed_is_named(place: Place, tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    files = history(tmp_path / "migrations")
    apply(place, files, "0001_initial")
    place.do("INSERT INTO author (name) VALUES ('twice'), ('twice')")
    assert drift(files, place.alias) == []  # whose connection is given back, with no transaction
    with pytest.raises(UniqueViolation):
        place.do("CREATE UNIQUE INDEX CONCURRENTLY one_name ON author (name)")
    (found,) = drift(files, place.alias)
    assert str(found) == (
        "The unique 'one_name' of author is invalid: CREATE INDEX CONCURRENTLY began it and "
        'failed: ("name"); DROP INDEX CONCURRENTLY "one_name", or repair the rows that it refuses '
        "and run `migrate`, if a migration creates it"
    )
    place.do('DROP INDEX CONCURRENTLY "one_name"')
    assert drift(files, place.alias) == []


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_declared_index_whose_build_failed_is_repaired_by_its_line(place: Place) -> None:
    wanted = made(place)
    item = (
        f"INSERT INTO {ITEMS} (shop_id, code, text, \"Label\", count) VALUES (1, '@', '', '@', 2)"
    )
    place.do(
        "DROP INDEX one_label",
        "INSERT INTO inspect_shop (name) VALUES ('s')",
        item.replace("@", "a"),
        item.replace("@", "A"),
    )
    with pytest.raises(UniqueViolation):
        place.do(
            f'CREATE UNIQUE INDEX CONCURRENTLY one_label ON {ITEMS} (lower("Label")) '
            "WHERE count > 1"
        )
    (found,) = compare_database(wanted, place.alias)
    problem, _, repair = str(found).partition("; ")
    assert (problem, repair) == (
        "one_label is invalid, which no migration made",
        'REINDEX INDEX CONCURRENTLY "one_label"',
    )
    place.do(f"DELETE FROM {ITEMS} WHERE code = 'A'", repair)
    assert compare_database(wanted, place.alias) == []


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_tables_that_cannot_be_printed_are_an_error(place: Place) -> None:
    odd = TableDef("odd", (ColumnDef("n", "no_such_type"),), ())
    with pytest.raises(InspectError, match=r"as temporary tables.*no_such_type"):
        compare_database({"odd": odd}, place.alias)
    place.do("CREATE TABLE busy (n integer)", "SET statement_timeout = '5s'")
    place.do("CREATE INDEX CONCURRENTLY here ON busy (n)")  # waits for every open transaction


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_search_path_without_a_schema_is_an_error(place: Place, postgres_dsn: str) -> None:
    settings = {"search_path": "no_such_schema"}
    configure("postgres", postgres_dsn, alias="nowhere", server_settings=settings)
    with pytest.raises(InspectError, match="search_path must begin with a schema that exists"):
        compare_database({}, "nowhere")
