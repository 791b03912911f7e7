"""Each rule of lint, with a migration that breaks it and one that does not."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Any

import pytest

from treefold_migrations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    CreateTable,
    DropField,
    DropTable,
    Migration,
    RenameField,
    RenameTable,
    RunPython,
    RunSQL,
    SchemaState,
    SeparateStateAndDatabase,
    SetOptions,
    lint as lint_files,
)
from treefold_migrations._files.writing import write_migration
from treefold_migrations._lint.lint import format_github_annotations, lint
from treefold_migrations._lint.rules import RULES
from treefold_migrations._lint.sql import split_and_mask_statements
from treefold_migrations._operations.base import Operation
from treefold_orm import (
    CheckConstraint,
    ExclusionConstraint,
    Index,
    Now,
    Q,
    Range,
    SchemaSQL,
    UniqueConstraint,
    fields,
)
from treefold_orm.schema import Postgres, SQLite


class Size(enum.Enum):
    S = "s"
    L = "l"


class Smaller(enum.Enum):
    S = "s"


TEAM = CreateTable("team", {"id": fields.BigAutoField(), "name": fields.CharField(max_length=20)})
USER = CreateTable(
    "user",
    {
        "id": fields.BigAutoField(),
        "name": fields.CharField(max_length=20),
        "age": fields.IntegerField(db_default=1),
        "size": fields.EnumField(Size),
        "room": fields.IntegerField(),
        "nick": fields.CharField(max_length=20, null=True),
        "group": fields.BigIntegerField(null=True),
        "begins": fields.DateTimeField(),
        "ends": fields.DateTimeField(),
        "price": fields.DecimalField(max_digits=8, decimal_places=2),
    },
)
PAIR = CreateTable(
    "pair", {"a": fields.IntegerField(), "b": fields.IntegerField()}, primary_key=["a", "b"]
)
BEFORE = PAIR.apply(USER.apply(TEAM.apply(SchemaState())))


def forwards(models: Any, work: Any) -> None:
    models.user.objects.update(name="x")


def in_batches(models: Any, work: Any) -> None:
    for rows in work.batched(models.user.objects.all()):
        models.user.objects.bulk_update(rows, ["name"])


def sql(text: str, **options: Any) -> RunSQL:
    """SQL that can be undone."""
    return RunSQL(text, "", **options)


def alter(name: str, field: Any, **options: Any) -> AlterField:
    return AlterField("user", name, field, **options)


LONG = "n" * 64
BY_TAG = AddConstraint("user", UniqueConstraint("tag", name="one_tag"))
APART = ExclusionConstraint([("room", "="), (Range("begins", "ends"), "&&")], name="apart")
TAG = CreateTable("tag", {"id": fields.BigAutoField(), "t": fields.TextField()})
Rows = list[tuple[str, list[Operation], list[Operation]]]
# rule, what breaks it, and what is near to it and does not
TABLE: Rows = [
    ("drop-table", [DropTable("team")], [TAG]),
    ("drop-table", [sql('DROP TABLE "team"')], [sql("DROP VIEW team")]),
    ("drop-column", [DropField("user", "age")], [DropTable("team")]),
    ("drop-column", [sql("ALTER TABLE t DROP COLUMN c")], [sql("ALTER TABLE t DROP CONSTRAINT c")]),
    ("truncate-cascade", [sql("TRUNCATE a CASCADE")], [sql("TRUNCATE a, b")]),
    (
        "narrow-type",
        [alter("name", fields.CharField(max_length=5))],
        [alter("name", fields.CharField(max_length=50))],
    ),
    (
        "narrow-type",
        [alter("price", fields.DecimalField(max_digits=8, decimal_places=1))],
        [alter("price", fields.DecimalField(max_digits=10, decimal_places=2))],
    ),
    (
        "narrow-type",
        [alter("age", fields.SmallIntegerField())],
        [alter("age", fields.BigIntegerField())],
    ),
    (
        "narrow-type",
        [alter("age", fields.PositiveIntegerField())],
        [alter("age", fields.IntegerField(null=True))],
    ),
    (
        "rename-or-drop",
        [DropField("user", "name"), AddField("user", "label", fields.CharField(max_length=20))],
        [DropField("user", "name"), AddField("user", "at", fields.DateField(null=True))],
    ),
    (
        "rename-or-drop",
        [
            DropTable("team"),
            CreateTable("club", {"id": fields.BigAutoField(), "name": fields.TextField()}),
        ],
        [DropTable("team"), TAG],
    ),
    (
        "remove-enum-value",
        [alter("size", fields.EnumField(Smaller))],
        [alter("size", fields.EnumField(Size, null=True))],
    ),
    (
        "remove-enum-value",
        [sql("DELETE FROM pg_enum WHERE x = 1")],
        [sql("DELETE FROM a WHERE x = 1")],
    ),
    (
        "rename-column",
        [RenameField("user", "name", "label")],
        [alter("name", fields.CharField(max_length=20, db_default="x"))],
    ),
    (
        "rename-column",
        [sql("ALTER TABLE a RENAME b TO c")],
        [sql("ALTER TABLE a RENAME CONSTRAINT b TO c")],
    ),
    ("rename-table", [RenameTable("team", "club")], [TAG, RenameTable("tag", "label")]),
    ("rename-table", [sql("ALTER TABLE a RENAME TO b")], [sql("ALTER INDEX a RENAME TO b")]),
    ("rename-schema", [sql("ALTER SCHEMA a RENAME TO b")], [sql("CREATE SCHEMA a")]),
    (
        "required-without-default",
        [AddField("user", "x", fields.IntegerField(), fill=1)],
        [AddField("user", "x", fields.IntegerField(db_default=1))],
    ),
    (
        "required-without-default",
        [sql("ALTER TABLE a ADD b int NOT NULL")],
        [sql("ALTER TABLE a ADD b int NOT NULL DEFAULT 1")],
    ),
    ("drop-column-in-use", [DropField("user", "age")], [DropField("user", "room")]),
    (
        "drop-default-in-use",
        [alter("age", fields.IntegerField())],
        [alter("age", fields.IntegerField(db_default=2))],
    ),
    (
        "drop-default-in-use",
        [sql("ALTER TABLE a ALTER b DROP DEFAULT")],
        [sql("ALTER TABLE a ALTER b SET DEFAULT 1")],
    ),
    (
        "type-rewrites",
        [alter("age", fields.BigIntegerField(db_default=1))],
        [alter("name", fields.TextField())],
    ),
    (
        "type-rewrites",
        [sql("ALTER TABLE a ALTER COLUMN b TYPE bigint")],
        [sql("ALTER TABLE a ALTER COLUMN b SET STATISTICS 5")],
    ),
    (
        "volatile-default",
        [sql("ALTER TABLE a ADD b uuid DEFAULT gen_random_uuid()")],
        [sql("ALTER TABLE a ADD b timestamptz DEFAULT now()")],
    ),
    (
        "volatile-default",
        [AddField("user", "key", fields.UUIDField(db_default=SchemaSQL("gen_random_uuid()")))],
        [AddField("user", "key", fields.TextField(db_default="gen_random_uuid()"))],
    ),
    (
        "volatile-default",
        [sql("ALTER TABLE a ADD b uuid DEFAULT ((gen_random_uuid ()))")],
        [sql("ALTER TABLE a ADD b text DEFAULT (('random()'))")],
    ),
    (
        "volatile-default",
        [sql("ALTER TABLE a ADD b timestamptz DEFAULT (now() + random() * interval '1 day')")],
        [sql("ALTER TABLE a ADD b timestamptz DEFAULT (now() + interval '1 day')")],
    ),
    (
        "stored-generated-column",
        [sql("ALTER TABLE a ADD b int GENERATED ALWAYS AS (c * 2) STORED")],
        [sql("ALTER TABLE a ADD b int DEFAULT 2")],
    ),
    (
        "identity-on-filled-table",
        [sql("ALTER TABLE a ADD b bigint GENERATED ALWAYS AS IDENTITY")],
        [sql("CREATE TABLE a (b bigint GENERATED ALWAYS AS IDENTITY)")],
    ),
    (
        "index-not-concurrent",
        [sql("CREATE UNIQUE INDEX i ON a (b)")],
        [sql("CREATE INDEX CONCURRENTLY i ON a (b)", transactional=False)],
    ),
    (
        "index-not-concurrent",
        [sql("CREATE INDEX i ON team (b)")],
        [TAG, sql("CREATE INDEX i ON tag (t)")],
    ),
    (
        "drop-index-not-concurrent",
        [sql("DROP INDEX i")],
        [sql("DROP INDEX CONCURRENTLY i", transactional=False)],
    ),
    (
        "reindex",
        [sql("REINDEX TABLE a")],
        [sql("REINDEX INDEX CONCURRENTLY a", transactional=False)],
    ),
    (
        "unique-without-index",
        [sql("ALTER TABLE a ADD CONSTRAINT u UNIQUE (b)")],
        [sql("ALTER TABLE a ADD CONSTRAINT u UNIQUE USING INDEX u")],
    ),
    (
        "foreign-key-not-valid",
        [sql("ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES c (d)")],
        [sql("ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES c (d) NOT VALID")],
    ),
    (
        "check-not-valid",
        [sql("ALTER TABLE a ADD CONSTRAINT k CHECK (b > 1)")],
        [sql("ALTER TABLE a ADD CONSTRAINT k CHECK (b > 1) NOT VALID")],
    ),
    (
        "set-not-null",
        [sql("ALTER TABLE a ALTER b SET NOT NULL")],
        [sql("ALTER TABLE a ALTER b DROP NOT NULL")],
    ),
    (
        "exclusion-constraint",
        [AddConstraint("user", APART)],
        [AddConstraint("user", UniqueConstraint("room", name="one"))],
    ),
    (
        "exclusion-constraint",
        [sql("ALTER TABLE a ADD CONSTRAINT x EXCLUDE USING gist (b WITH &&)")],
        [sql("ALTER TABLE a ADD x int")],
    ),
    (
        "partition-detach",
        [sql("ALTER TABLE a DETACH PARTITION b")],
        [sql("ALTER TABLE a DETACH PARTITION b CONCURRENTLY", transactional=False)],
    ),
    ("no-lock-timeout", [sql("SET LOCAL lock_timeout = 0")], [sql("SET lock_timeout = '2s'")]),
    ("no-lock-timeout", [sql("RESET lock_timeout")], [sql("SET lock_timeout = 2000")]),
    (
        "no-statement-timeout",
        [sql("SET statement_timeout TO DEFAULT")],
        [sql("SET statement_timeout = 5000")],
    ),
    (
        "concurrent-in-transaction",
        [sql("CREATE INDEX CONCURRENTLY i ON a (b)")],
        [sql("CREATE INDEX CONCURRENTLY i ON a (b)", transactional=False)],
    ),
    (
        "data-in-schema-transaction",
        [AddField("user", "x", fields.TextField(null=True)), sql("UPDATE a SET b = 1 WHERE c")],
        [sql("UPDATE a SET b = 1 WHERE c")],
    ),
    (
        "data-in-schema-transaction",
        [RunPython(in_batches, RunPython.noop), sql("ALTER TABLE a ADD b int")],
        [
            RunPython(in_batches, RunPython.noop, transactional=False),
            sql("ALTER TABLE a ADD b int"),
        ],
    ),
    ("unbatched-backfill", [sql("UPDATE a SET b = 1")], [sql("UPDATE a SET b = 1 WHERE c")]),
    (
        "unbatched-backfill",
        [RunPython(forwards, RunPython.noop)],
        [RunPython(in_batches, RunPython.noop)],
    ),
    (
        "long-identifier",
        [AddField("user", "n" * 55, fields.ForeignKey("team", null=True))],
        [AddField("user", "n" * 20, fields.ForeignKey("team", null=True))],
    ),
    ("long-identifier", [sql(f"CREATE SEQUENCE {LONG}")], [sql("CREATE SEQUENCE n")]),
    (
        "timestamp-without-zone",
        [AddField("user", "at", fields.DateTimeField(zone=None, null=True))],
        [AddField("user", "at", fields.DateTimeField(null=True))],
    ),
    (
        "timestamp-without-zone",
        [sql("CREATE TABLE a (b timestamp NOT NULL)")],
        [sql("CREATE TABLE a (b timestamp with time zone, c timestamptz)")],
    ),
    (
        "narrow-key",
        [CreateTable("tag", {"id": fields.AutoField()})],
        [CreateTable("tag", {"id": fields.BigAutoField()})],
    ),
    (
        "missing-foreign-key-index",
        [AddField("user", "team", fields.ForeignKey("team", null=True, db_index=False))],
        [AddField("user", "team", fields.ForeignKey("team", null=True))],
    ),
    (
        "irreversible-data",
        [RunSQL("UPDATE a SET b = 1 WHERE c")],
        [sql("UPDATE a SET b = 1 WHERE c")],
    ),
    (
        "new-unique",
        [AddConstraint("user", UniqueConstraint("name", name="one_name"))],
        [AddConstraint("user", CheckConstraint(~Q(name=""), name="named"))],
    ),
    (
        "new-unique",
        [alter("name", fields.CharField(max_length=20, unique=True))],
        [alter("name", fields.CharField(max_length=30))],
    ),
    (
        "new-unique",
        [AddField("user", "code", fields.IntegerField(db_default=1, unique=True))],
        [AddField("user", "code", fields.IntegerField(null=True, unique=True))],
    ),
    (
        "new-unique",
        [AddField("user", "tag", fields.IntegerField(db_default=1)), BY_TAG],
        [AddField("user", "tag", fields.IntegerField(null=True)), BY_TAG],
    ),
    (
        "new-check",
        [AddConstraint("user", CheckConstraint(~Q(name=""), name="named"))],
        [AddConstraint("user", UniqueConstraint("name", name="one_name"))],
    ),
    (
        "new-not-null",
        [alter("nick", fields.CharField(max_length=20), fill="x")],
        [alter("nick", fields.CharField(max_length=30, null=True))],
    ),
    (
        "new-reference",
        [alter("group", fields.ForeignKey("team", null=True, db_column="group"))],
        [AddField("user", "team", fields.ForeignKey("team", null=True, db_column="t"))],
    ),
    (
        "primary-key-index",
        [SetOptions("pair", primary_key=["b", "a"])],
        [alter("room", fields.IntegerField(unique=True))],
    ),
    ("irreversible-data", [RunPython(in_batches)], [RunPython(in_batches, RunPython.noop)]),
]


def rules_of(operations: list[Operation], dialect: Any = None) -> set[str]:
    code = DropField("user", "room").apply(BEFORE)
    migration = Migration(operations=operations)
    return {f.rule for f in lint(migration, BEFORE, dialect or Postgres(), code=code)}


@pytest.mark.parametrize(
    ("rule", "wrong", "right"),
    [pytest.param(*row, id=f"{row[0]}-{n}") for n, row in enumerate(TABLE)],
)
def test_a_rule_tells_right_from_wrong(
    rule: str, wrong: list[Operation], right: list[Operation]
) -> None:
    assert rule in rules_of(wrong)
    assert rule not in rules_of(right)


def test_the_advice_to_reverse_names_arguments_that_exist() -> None:
    advice = RULES["irreversible-data"].safe_way
    named = re.findall(r"(\w+)=", advice)
    assert [hasattr(RunPython, name) or hasattr(RunSQL, name) for name in named] == [True, True]


def test_every_rule_has_a_row() -> None:
    assert len(RULES) == 41
    # of a whole history, below
    assert {row[0] for row in TABLE} | {"unknown-part"} == RULES.keys()


def test_a_finding_names_the_rule_the_lock_and_the_safe_way() -> None:
    (drop, *_) = lint(Migration(operations=[TAG, DropField("user", "age")]), BEFORE, Postgres())
    assert (drop.rule, drop.lock, drop.operation_index) == ("drop-column", "ACCESS EXCLUSIVE", 1)
    assert str(drop) == (
        "drop-column: user.age: drops a column with its values. It takes ACCESS EXCLUSIVE. Remove "
        "the field from the code in one release and drop the column in the next."
    )


def test_a_finding_annotates_a_file_in_a_review() -> None:
    findings = lint(Migration(operations=[DropTable("team")]), BEFORE, Postgres())
    assert format_github_annotations(findings, "migrations/0002_drop,it.py") == (
        "::warning file=migrations/0002_drop%2Cit.py,title=drop-table::team: drops a table "
        "with its rows. It takes ACCESS EXCLUSIVE. Stop using the table in one release and drop "
        "it in the next; keep a backup."
    )
    newline = lint(Migration(operations=[sql("DROP TABLE a\n-- 100%\n")]), BEFORE, Postgres())
    assert "\n" not in format_github_annotations(newline, "f.py")


def test_sqlite_has_no_locks_to_speak_of() -> None:
    (finding,) = lint(Migration(operations=[DropTable("team")]), BEFORE, SQLite())
    assert (finding.rule, finding.lock) == ("drop-table", "")
    assert rules_of([sql("CREATE INDEX i ON a (b)")], SQLite()) == set()
    assert rules_of([alter("age", fields.BigIntegerField(db_default=1))], SQLite()) == set()


def test_safe_operations_have_no_findings() -> None:
    operations: list[Operation] = [
        TAG,
        AddIndex("tag", Index("t", name="by_t")),
        AddField("user", "tag", fields.ForeignKey("tag", null=True)),
        AddField("user", "at", fields.DateTimeField(db_default=Now())),
        AddIndex("user", Index("name", name="by_name")),
        AddField("user", "code", fields.CharField(max_length=9, null=True, unique=True)),
        AddConstraint("tag", UniqueConstraint("t", name="one_t")),
        AddConstraint("tag", CheckConstraint(~Q(t=""), name="named")),
        alter("name", fields.CharField(max_length=40)),
        alter("age", fields.IntegerField(db_default=1, null=True)),
    ]
    assert rules_of(operations) == set()
    assert rules_of(operations, SQLite()) == set()


def test_the_database_side_of_a_split_operation_counts() -> None:
    apart = SeparateStateAndDatabase(database=[DropField("user", "age")])
    assert "drop-column" in rules_of([apart])
    apart = SeparateStateAndDatabase(state=[DropField("user", "age")])
    assert rules_of([apart]) == set()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' -- DROP TABLE a;\n", ["SELECT 'text'"]),
        ('/* DROP TABLE a; */ SELECT "a;b"', ["SELECT quoted_name"]),
        ("DO $x$ BEGIN DROP TABLE a; END $x$; SELECT $1", ["DO 'text'", "SELECT $1"]),
        ("AS $f1$ ; DROP TABLE a; $f1$; B", ["AS 'text'", "B"]),
        ("AS $_f1_$ $f1$; $$; $_f1_$; B", ["AS 'text'", "B"]),
        ("AS $é1$ ; $é1$; B", ["AS 'text'", "B"]),
        ("SELECT a$b$; DROP TABLE b$b$", ["SELECT a$b$", "DROP TABLE b$b$"]),
        ("SELECT $1; DROP TABLE a; SELECT $1", ["SELECT $1", "DROP TABLE a", "SELECT $1"]),
        (r"SELECT E'it\'s; \\'; B", ["SELECT 'text'", "B"]),
        (r"SELECT e'a''b\';'; B", ["SELECT 'text'", "B"]),
        (r"SELECT '\'; B", ["SELECT 'text'", "B"]),
        (r"SELECT 1 AS bye'\'; B", ["SELECT 1 AS bye'text'", "B"]),
        ("/* a /* b */ ; DROP TABLE c; */ B", ["B"]),
        ("/* a /* b */ DROP TABLE c; B /* d */", ["DROP TABLE c", "B"]),
        ("/*/ ; */ B; /* open; C", ["B"]),
        ("DROP TABLE [a;b]; DROP TABLE `c;``d`", ["DROP TABLE quoted_name"] * 2),
        ("SELECT a[1], ARRAY['];']; B", ["SELECT a[1], ARRAY['text']", "B"]),
        ("SELECT ARRAY [']', ';']; B", ["SELECT ARRAY ['text', 'text']", "B"]),
        ("ALTER TABLE a ADD b text[]; B", ["ALTER TABLE a ADD b text[]", "B"]),
        (
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC UPDATE a SET b = 1; "
            "SELECT CASE WHEN true THEN 1 END; END; B",
            [
                "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC UPDATE a SET b = 1; "
                "SELECT CASE WHEN true THEN 1 END; END",
                "B",
            ],
        ),
        (
            "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; "
            "UPDATE c SET d = CASE WHEN NEW.end THEN '; END;' ELSE 2 END; END; DELETE FROM e",
            [
                "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; "
                "UPDATE c SET d = CASE WHEN NEW.end THEN 'text' ELSE 2 END; END",
                "DELETE FROM e",
            ],
        ),
        (
            "CREATE TRIGGER t BEFORE DELETE ON a EXECUTE FUNCTION f(); BEGIN; DROP TABLE a",
            ["CREATE TRIGGER t BEFORE DELETE ON a EXECUTE FUNCTION f()", "BEGIN", "DROP TABLE a"],
        ),
        ("", []),
    ],
)
def test_words_of_sql_are_told_from_its_texts(text: str, wanted: list[str]) -> None:
    assert [words for _, words in split_and_mask_statements(text)] == wanted


def test_rules_do_not_look_into_texts_and_comments() -> None:
    assert rules_of([sql("INSERT INTO log VALUES ('DROP TABLE a') -- TRUNCATE a CASCADE")]) == set()


def write_files(folder: Path) -> None:
    write_migration(folder, "0001_initial", [], [TEAM])
    write_migration(folder, "0002_drop_name", ["0001_initial"], [DropField("team", "name")])


def test_the_command_lints_files(tmp_path: Path) -> None:
    write_files(tmp_path)
    lines: list[str] = []
    found = lint_files(tmp_path, metas=[], say=lines.append)
    assert [(item.name, finding.rule) for item, finding in found] == [
        ("0002_drop_name", "drop-column")
    ]
    assert lines[0].startswith("0002_drop_name, drop-column: team.name: drops a column")
    lines.clear()
    lint_files(tmp_path, metas=[], form="github", say=lines.append)
    assert lines[0].startswith(f"::warning file={tmp_path}/0002_drop_name.py,title=drop-column::")


def test_the_command_passes_over_what_is_known(tmp_path: Path) -> None:
    write_files(tmp_path)
    lines: list[str] = []
    assert lint_files(tmp_path, since="0002", metas=[], say=lines.append) == []
    assert lines == ["No finding"]


OWN_COLUMN = RunSQL("ALTER TABLE team ADD shelf TEXT DEFAULT 'a;b'", "ALTER TABLE team DROP shelf")
SHELF = fields.TextField(null=True, db_default="a;b")
REFUSED = 'column "shelf" (TEXT)'


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        ([alter_team := AlterField("team", "name", fields.CharField(max_length=40))], [REFUSED]),
        ([SetOptions("team", as_found=[]), alter_team], []),
        ([RunSQL("ALTER TABLE team DROP shelf", ""), alter_team], []),
        ([SeparateStateAndDatabase(state=[AddField("team", "shelf", SHELF)]), alter_team], []),
        ([AddField("team", "size", fields.IntegerField(null=True))], []),
        ([RunSQL("UPDATE nowhere SET a = 1 WHERE b", ""), alter_team], [REFUSED]),
    ],
)
def test_a_column_of_own_sql_that_a_rebuild_would_lose_is_found(
    tmp_path: Path, operations: list[Operation], found: list[str]
) -> None:
    write_migration(tmp_path, "0001_initial", [], [TEAM])
    write_migration(tmp_path, "0002_shelf", ["0001_initial"], [OWN_COLUMN])
    write_migration(tmp_path, "0003_change", ["0002_shelf"], operations)
    made = [
        (item.name, finding.message.partition("made: ")[2].partition(": `migrate`")[0])
        for item, finding in lint_files(tmp_path, metas=[], dialect="sqlite")
        if finding.rule == "unknown-part"
    ]
    assert made == [("0003_change", text) for text in found]
    assert not lint_files(tmp_path, metas=[], dialect="sqlite", since="0003")


def test_lint_runs_no_sql_that_reaches_a_file(tmp_path: Path) -> None:
    write_migration(tmp_path, "0001_initial", [], [TEAM])
    reach = RunSQL(f"ATTACH DATABASE '{tmp_path / 'made.db'}' AS more; VACUUM INTO 'copy.db'", "")
    write_migration(tmp_path, "0002_more", ["0001_initial"], [reach])
    lint_files(tmp_path, metas=[], dialect="sqlite")
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.is_file()) == [".py", ".py"]
