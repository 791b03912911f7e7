"""Parts of a live table that were made by hand: no change loses one without naming it.

Each part is planted beside four changes of its table. A change either leaves it as it is, or is
refused with its name, and then nothing has changed.
"""

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

SHELF = 'CreateTable("shelf", {"id": fields.BigAutoField(primary_key=True)}, model="Shelf")'
BOOK = (
    'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
    '"title": fields.CharField(max_length=40), "rank": fields.IntegerField(null=True), '
    '"size": fields.IntegerField(null=True)}, model="Book")'
)
CHANGES = {
    "wider": 'AlterField("book", "title", fields.CharField(max_length=80))',
    "default": 'AlterField("book", "size", fields.IntegerField(null=True, db_default=1))',
    "required": 'AlterField("book", "size", fields.IntegerField(db_default=1), fill=0)',
    "dropped": 'DropField("book", "rank")',
}
FUNCTION = "CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
TRIGGER = "BEFORE {} ON book FOR EACH ROW {} EXECUTE FUNCTION told()"
# statements, and the word by which a refusal names the part
POSTGRES: dict[str, tuple[list[str], str]] = {
    "column": (["ALTER TABLE book ADD shelf text DEFAULT 'a'"], ""),
    "required column": (["ALTER TABLE book ADD shelf text NOT NULL DEFAULT 'a'"], ""),
    "column that refers": (["ALTER TABLE book ADD on_shelf bigint REFERENCES shelf"], ""),
    "generated column": (
        ["ALTER TABLE book ADD loud text GENERATED ALWAYS AS (upper(title)) STORED"],
        "loud",
    ),
    "generated column of a dropped one": (
        ["ALTER TABLE book ADD twice integer GENERATED ALWAYS AS (rank * 2) STORED"],
        "twice",
    ),
    "identity": (["ALTER TABLE book ADD n bigint GENERATED ALWAYS AS IDENTITY"], ""),
    "collation": (['ALTER TABLE book ALTER title TYPE varchar(40) COLLATE "C"'], "COLLATE C"),
    "type": (["ALTER TABLE book ALTER title TYPE text"], "is text"),
    "default": (["ALTER TABLE book ALTER title SET DEFAULT 'x'"], ""),
    "default of another": (["ALTER TABLE book ALTER size SET DEFAULT 9"], "default 9"),
    "required": (["ALTER TABLE book ALTER size SET NOT NULL"], ""),
    "check": (["ALTER TABLE book ADD CONSTRAINT few CHECK (size < 9)"], ""),
    "check of the dropped column": (
        ["ALTER TABLE book ADD CONSTRAINT few CHECK (rank < 9)"],
        "constraint few",
    ),
    "check of two columns": (
        ["ALTER TABLE book ADD CONSTRAINT pair CHECK (rank < size)"],
        "constraint pair",
    ),
    "check of text": (["ALTER TABLE book ADD CONSTRAINT named CHECK (title <> '')"], ""),
    "unique": (["ALTER TABLE book ADD CONSTRAINT one UNIQUE (title)"], ""),
    "unique of two columns": (
        ["ALTER TABLE book ADD CONSTRAINT twice UNIQUE (title, rank)"],
        "constraint twice",
    ),
    "foreign key": (
        ["ALTER TABLE book ADD CONSTRAINT lies FOREIGN KEY (rank) REFERENCES shelf"],
        "constraint lies",
    ),
    "exclusion": (
        ["ALTER TABLE book ADD CONSTRAINT apart EXCLUDE USING btree (rank WITH =)"],
        "constraint apart",
    ),
    "index": (["CREATE INDEX by_title ON book (title)"], ""),
    "index of the dropped column": (["CREATE INDEX by_rank ON book (rank)"], "index by_rank"),
    "index of two columns": (["CREATE INDEX by_two ON book (title, rank)"], "index by_two"),
    "partial index": (["CREATE INDEX low ON book (title) WHERE rank < 3"], "index low"),
    "index of an expression": (["CREATE INDEX loud ON book (upper(title))"], ""),
    "index that includes": (["CREATE INDEX wide ON book (title) INCLUDE (rank)"], "index wide"),
    "unique index": (["CREATE UNIQUE INDEX one ON book (title, size)"], ""),
    "statistics": (["CREATE STATISTICS known ON title, rank FROM book"], "statistics known"),
    "trigger": ([FUNCTION, f"CREATE TRIGGER told {TRIGGER.format('INSERT', '')}"], ""),
    "trigger of a column": (
        [FUNCTION, f"CREATE TRIGGER told {TRIGGER.format('UPDATE OF rank', '')}"],
        "told",
    ),
    "trigger with a condition": (
        [FUNCTION, f"CREATE TRIGGER told {TRIGGER.format('UPDATE', 'WHEN (NEW.rank > 1)')}"],
        "told",
    ),
    "view": (["CREATE VIEW titles AS SELECT title FROM book"], "titles"),
    "view of the dropped column": (["CREATE VIEW ranks AS SELECT rank FROM book"], "ranks"),
    "materialized view": (["CREATE MATERIALIZED VIEW kept AS SELECT size, rank FROM book"], "kept"),
    "policy": (
        [
            "ALTER TABLE book ENABLE ROW LEVEL SECURITY",
            "CREATE POLICY low ON book USING (rank < 9)",
        ],
        "low",
    ),
    "rule": (["CREATE RULE quiet AS ON DELETE TO book DO INSTEAD NOTHING"], ""),
    "comment": (["COMMENT ON COLUMN book.title IS 'said'"], ""),
}
CHECKED = (
    'CREATE TABLE "book" ("id" INTEGER PRIMARY KEY, "title" TEXT NOT NULL {} CONSTRAINT '
    '"ck_book_title" CHECK (length("title") <= 40), "rank" INTEGER {}, "size" INTEGER {}'
)


def again(title: str = "", rank: str = "", size: str = "", rest: str = ")") -> list[str]:
    """Statements that make the table by hand, with a part that no migration knows."""
    return ['DROP TABLE "book"', CHECKED.format(title, rank, size) + rest]


SQLITE: dict[str, tuple[list[str], str]] = {
    "column": (["ALTER TABLE book ADD shelf TEXT"], "shelf"),
    "required column": (["ALTER TABLE book ADD shelf TEXT NOT NULL DEFAULT 'a'"], "shelf"),
    "column that refers": (["ALTER TABLE book ADD lies INTEGER REFERENCES shelf"], "lies"),
    "generated column": (["ALTER TABLE book ADD loud TEXT AS (upper(title))"], "loud"),
    "generated column of a dropped one": (
        ["ALTER TABLE book ADD twice INTEGER AS (rank * 2)"],
        "twice|column: rank",  # in the words of SQLite, which refuses it
    ),
    "collation": (again("COLLATE NOCASE"), "NOCASE"),
    "default": (again("DEFAULT 'x'"), "'x'"),
    "default of another": (again(size="DEFAULT 9"), "9"),
    "required": (again(size="NOT NULL"), "size"),
    "check": (again(rest=', CONSTRAINT "few" CHECK ("size" < 9))'), "few"),
    "check of the dropped column": (
        again(rest=', CONSTRAINT "few" CHECK ("rank" < 9))'),
        "few|rank",
    ),
    "check inside of the dropped column": (again(rank='CHECK ("rank" < 9)'), "rank"),
    "check of two columns": (again(rest=', CONSTRAINT "p" CHECK ("rank" < "size"))'), "p|rank"),
    "check of text": (again("CHECK (\"title\" <> '')"), "title"),
    "unique": (again("UNIQUE"), "title"),
    "unique of two columns": (again(rest=', UNIQUE ("title", "rank"))'), "title|rank"),
    "conflict": (again("UNIQUE ON CONFLICT REPLACE"), "CONFLICT|unique"),
    "foreign key": (again(rank="REFERENCES shelf (id)"), "rank"),
    "without rowid": (again(rest=") WITHOUT ROWID"), "WITHOUT ROWID"),
    "type": (again(size="DEFAULT 1 CHECK (typeof(size) = 'integer')"), "size"),
    "index": (["CREATE INDEX by_title ON book (title)"], ""),
    "index of the dropped column": (["CREATE INDEX by_rank ON book (rank)"], "by_rank|rank"),
    "index of two columns": (["CREATE INDEX by_two ON book (title, rank)"], "by_two|rank"),
    "partial index": (["CREATE INDEX low ON book (title) WHERE rank < 3"], "low|rank"),
    "index of an expression": (["CREATE INDEX loud ON book (upper(title))"], ""),
    "unique index": (["CREATE UNIQUE INDEX one ON book (title, size)"], ""),
    "trigger": (["CREATE TRIGGER told AFTER INSERT ON book BEGIN SELECT 1; END"], ""),
    "trigger of a column": (
        ["CREATE TRIGGER told AFTER UPDATE OF rank ON book BEGIN SELECT 1; END"],
        "",
    ),
    "trigger with a condition": (
        ["CREATE TRIGGER told AFTER UPDATE ON book WHEN NEW.rank > 1 BEGIN SELECT 1; END"],
        "told|rank",
    ),
    "view": (["CREATE VIEW titles AS SELECT title FROM book"], ""),
    "view of the dropped column": (["CREATE VIEW ranks AS SELECT rank FROM book"], "ranks|rank"),
}
PARTS = [("postgres", name) for name in POSTGRES] + [("sqlite", name) for name in SQLITE]
_CATALOG = """
SELECT 'column', a.attname || ' ' || k.kind || ' ' || k.said FROM pg_attribute a
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  CROSS JOIN LATERAL (VALUES
    ('type', format_type(a.atttypid, a.atttypmod)), ('default', pg_get_expr(d.adbin, d.adrelid)),
    ('collation', (SELECT collname FROM pg_collation c WHERE c.oid = a.attcollation)::text),
    ('identity', nullif(a.attidentity::text, '')), ('generated', nullif(a.attgenerated::text, '')),
    ('comment', col_description(a.attrelid, a.attnum))) AS k (kind, said)
  WHERE a.attrelid = to_regclass('book') AND a.attnum > 0 AND NOT a.attisdropped
    AND k.said IS NOT NULL
UNION ALL SELECT 'constraint', conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
  WHERE conrelid = 'book'::regclass AND contype <> 'n'
UNION ALL SELECT 'index', pg_get_indexdef(indexrelid) FROM pg_index
  WHERE indrelid = 'book'::regclass
UNION ALL SELECT 'trigger', pg_get_triggerdef(oid) FROM pg_trigger
  WHERE tgrelid = 'book'::regclass AND NOT tgisinternal
UNION ALL SELECT 'policy', polname || pg_get_expr(polqual, polrelid) FROM pg_policy
UNION ALL SELECT 'rule', rulename || pg_get_ruledef(oid) FROM pg_rewrite
  WHERE ev_class IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
UNION ALL SELECT 'statistics', stxname || pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
  WHERE stxrelid = 'book'::regclass
UNION ALL SELECT 'required', attname FROM pg_attribute
  WHERE attrelid = 'book'::regclass AND attnotnull
"""


def catalog(place: Place) -> set[tuple[Any, ...]]:
    if place.engine == "postgres":
        return {(kind, str(said)) for kind, said in place.ask(_CATALOG)}
    others = place.ask("SELECT name, sql FROM sqlite_master WHERE type <> 'table' AND sql <> ''")
    columns = place.ask(
        "SELECT name, type, \"notnull\", dflt_value, hidden FROM pragma_table_xinfo('book')"
    )
    keys = place.ask('SELECT "table", "from" FROM pragma_foreign_key_list(\'book\')')
    (table,) = place.ask("SELECT sql FROM sqlite_master WHERE name = 'book'")
    words = [("word", word) for word in table[0].replace(",", " ").replace(")", " ").split()]
    return {*others, *columns, *keys, *words}


def error_of(files: Files) -> str:
    try:
        Runner("default", files.history()).migrate()
    except RunError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("engine", "name"), PARTS)
def test_a_part_by_hand_is_kept_or_named(place: Place, files: Files, name: str) -> None:
    statements, word = (POSTGRES if place.engine == "postgres" else SQLITE)[name]
    files.write("0001_initial", SHELF, BOOK)
    Runner("default", files.history()).migrate()
    plain = catalog(place)
    for sql in statements:
        place.ask(sql)
    place.ask("INSERT INTO book (id, title, rank, size) VALUES (1, 'Emma', NULL, 2) RETURNING id")
    planted, last = catalog(place) - plain, "0001_initial"
    assert planted
    refused: list[str] = []
    for number, (change, operation) in enumerate(CHANGES.items(), 2):
        file = f"{number:04}_{change}"
        files.write(file, operation, after=[last])
        before = catalog(place)
        said = error_of(files)
        if said:
            refused.append(change)
            assert any(part in said for part in word.split("|") if part), said
            assert catalog(place) == before
            assert Runner("default", files.history()).applied().progress == {}
            (files.folder / f"{file}.py").unlink()
        else:
            gone = planted - catalog(place)
            assert not gone, (change, gone)
            last = file
    assert bool(refused) == bool(word)
    assert place.ask("SELECT title FROM book") == [("Emma",)]


BATCH = """
def fill(models, work):
    for book in models.book.objects.filter(extra=None):
        book.extra = 1
        book.save()
"""


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("engine", "name"), PARTS)
def test_a_part_is_found_before_a_file_commits_its_first_step(
    place: Place, files: Files, name: str, change: str
) -> None:
    statements, _ = (POSTGRES if place.engine == "postgres" else SQLITE)[name]
    files.write("0001_initial", SHELF, BOOK)
    Runner("default", files.history()).migrate()
    for sql in statements:
        place.ask(sql)
    place.ask("INSERT INTO book (id, title, rank, size) VALUES (1, 'Emma', NULL, 2) RETURNING id")
    before = catalog(place)
    files.write(
        "0002_change",
        'AddField("book", "extra", fields.IntegerField(null=True))',
        "RunPython(fill, RunPython.noop, transactional=False)",
        CHANGES[change],
        above=BATCH,
    )
    said = error_of(files)
    if said:
        assert "nothing of this file was applied" in said
        assert catalog(place) == before
        assert Runner("default", files.history()).applied().progress == {}
    else:
        assert place.ask("SELECT extra FROM book") == [(1,)]


def test_there_are_sixty_parts() -> None:
    assert len(PARTS) >= 60
