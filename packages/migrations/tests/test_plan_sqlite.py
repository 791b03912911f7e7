"""SQLite: what a rebuild keeps, which changes need one, and that many changes need one only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from plan_cases import Case, one, shape
from plan_engines import SQLiteBench

from treefold_migrations import RunError
from treefold_migrations._plan.between import PlannerHints
from treefold_migrations._plan.operations import plan_changes
from treefold_migrations._plan.step import Step
from treefold_orm import CheckConstraint, Q, fields
from treefold_orm.schema import SQLite

TEXT = {"name": fields.CharField(max_length=20)}
USER = shape("user", TEXT)
WIDER = shape("user", {"name": fields.CharField(max_length=30)})


@pytest.fixture
def sqlite(benches: dict[str, Any]) -> Iterator[SQLiteBench]:
    bench = benches["sqlite"]
    with bench.place():
        yield bench


def rebuilds(steps: list[Step]) -> int:
    return sum("copy the rows" in step.summary for step in steps)


def steps_of(case: Case) -> list[Step]:
    return plan_changes(case.changes(SQLite()), dialect=SQLite())


def test_a_rebuild_keeps_what_migrations_do_not_know(sqlite: SQLiteBench) -> None:
    case = Case([USER], [WIDER])
    case.fill(sqlite)
    sqlite.do('CREATE TABLE "log" ("line" TEXT)')
    sqlite.do(
        'CREATE TRIGGER "to_log" AFTER INSERT ON "user" BEGIN '
        "INSERT INTO log VALUES (new.name); END"
    )
    sqlite.do(
        'CREATE TRIGGER "from_log" AFTER DELETE ON "log" BEGIN UPDATE user SET name = old.line; END'
    )
    sqlite.do('CREATE INDEX "by hand" ON "user" (upper("name"))')
    sqlite.do('CREATE VIEW "names" AS SELECT name FROM user')
    sqlite.insert("user", {"name": "'a'"})
    known = {key: value for key, value in sqlite.catalog().items() if not key.startswith("table")}
    assert rebuilds(case.apply(sqlite)) == 1
    after = {key: value for key, value in sqlite.catalog().items() if not key.startswith("table")}
    assert after == known
    sqlite.insert("user", {"name": "'b'"})
    assert sqlite.ask("SELECT line FROM log ORDER BY line") == [("a",), ("b",)]
    assert sqlite.ask("SELECT name FROM names ORDER BY name") == [("a",), ("b",)]


def test_a_rebuild_stops_where_a_view_lacks_a_column(sqlite: SQLiteBench) -> None:
    after = shape("user", {"label": fields.TextField(unique=True, null=True)})
    case = Case([USER], [after])
    case.fill(sqlite)
    sqlite.do('CREATE VIEW "names" AS SELECT name FROM user')
    before = sqlite.catalog()
    with pytest.raises(Exception, match="no such column: name"):
        case.apply(sqlite)
    assert sqlite.catalog() == before


def test_a_rebuild_keeps_the_sequence_of_autoincrement(sqlite: SQLiteBench) -> None:
    case = Case([USER], [WIDER])
    sqlite.do(
        'CREATE TABLE "user" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "name" TEXT NOT NULL '
        'CONSTRAINT "ck_user_name" CHECK (length("name") <= 20)) STRICT'
    )
    for name in ("'a'", "'b'", "'c'"):
        sqlite.insert("user", {"name": name})
    sqlite.do('DELETE FROM "user" WHERE "id" > 1')
    case.apply(sqlite)
    sqlite.insert("user", {"name": "'d'"})
    assert sqlite.ask('SELECT id FROM "user" ORDER BY id') == [(1,), (4,)]
    sqlite.do('DELETE FROM "user"')
    Case([WIDER], [USER]).apply(sqlite)
    sqlite.insert("user", {"name": "'e'"})
    assert sqlite.ask('SELECT id FROM "user"') == [(5,)]


@pytest.mark.parametrize("deleted", ["id > 1", "id > 0"])
@pytest.mark.parametrize("new_name", ["user", "person"])
@pytest.mark.parametrize("table", ["user", "User"])
@pytest.mark.parametrize(
    ("key", "constraint"),
    [
        ("INTEGER PRIMARY KEY AUTOINCREMENT", ""),
        ("INTEGER PRIMARY KEY ASC AUTOINCREMENT", ""),
        ("INTEGER primary  key\n\tautoincrement", ""),
        ("INTEGER CONSTRAINT counted PRIMARY KEY ASC /* by hand */ AutoIncrement", ""),
        ("INTEGER PRIMARY KEY -- by hand\nAUTOINCREMENT", ""),
        ("INTEGER PRIMARY/**/KEY/**/AUTOINCREMENT/**/", ""),
        ("INTEGER", ', PRIMARY KEY("id" AUTOINCREMENT)'),
        ("INTEGER", ', CONSTRAINT counted PRIMARY KEY("id"AUTOINCREMENT)'),
        ("INTEGER", ", PRIMARY KEY (id DESC AUTOINCREMENT)"),
    ],
)
def test_a_rebuild_never_gives_the_key_of_a_deleted_row_again(
    sqlite: SQLiteBench, key: str, constraint: str, table: str, new_name: str, deleted: str
) -> None:
    sqlite.do(
        f'CREATE TABLE "{table}" ("id" {key}, "name" TEXT NOT NULL CONSTRAINT "ck_user_name" '
        f'CHECK (length("name") <= 20){constraint}) STRICT'
    )
    sqlite.do("INSERT INTO user (name) VALUES ('a'), ('b'), ('c')")
    sqlite.do(f"DELETE FROM user WHERE {deleted}")
    after = shape(new_name, {"name": fields.CharField(max_length=30)})
    Case([USER], [after], answers=PlannerHints(tables={new_name: "user"})).apply(sqlite)
    sqlite.insert(new_name, {"name": "'d'"})
    assert sqlite.ask(f"SELECT max(id) FROM {new_name}") == [(4,)]
    sqlite.do(f"DELETE FROM {new_name}")
    Case([after], [shape(new_name, TEXT)]).apply(sqlite)
    sqlite.insert(new_name, {"name": "'e'"})
    assert sqlite.ask(f"SELECT id FROM {new_name}") == [(5,)]
    assert sqlite.ask("SELECT name, seq FROM sqlite_sequence") == [(new_name, 5)]


@pytest.mark.parametrize(
    "text", ['"autoincrement"', "[autoincrement]", "`key autoincrement`", "autoincrement_key"]
)
def test_a_name_with_autoincrement_does_not_count(sqlite: SQLiteBench, text: str) -> None:
    sqlite.do("CREATE TABLE other (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    sqlite.do(
        'CREATE TABLE "user" ("id" INTEGER PRIMARY KEY, "name" TEXT NOT NULL CONSTRAINT '
        f'{text} CHECK (length("name") <= 20)) STRICT'
    )
    case = Case([USER], [WIDER])
    case.apply(sqlite)
    ((made,),) = sqlite.ask("SELECT sql FROM sqlite_master WHERE name = 'user'")
    assert "AUTOINCREMENT" not in made.upper()


def test_a_column_called_autoincrement_does_not_count(sqlite: SQLiteBench) -> None:
    columns = {"autoincrement": fields.CharField(max_length=5)}
    wider = {"autoincrement": fields.CharField(max_length=6)}
    case = Case([shape("user", columns)], [shape("user", wider)])
    case.fill(sqlite)
    case.apply(sqlite)
    assert sqlite.catalog() == sqlite.expected(case.after)


def test_child_rows_outlive_a_rebuild_of_their_parent(sqlite: SQLiteBench) -> None:
    child = shape("pet", {"user": fields.ForeignKey("user", "CASCADE", related_name="+")})
    case = Case(
        [USER, child], [WIDER, child], {"user": [{"name": "'a'"}], "pet": [{"user_id": "1"}]}
    )
    case.fill(sqlite)
    case.apply(sqlite)
    assert sqlite.ask("SELECT user_id FROM pet") == [(1,)]
    with pytest.raises(Exception, match="referenced row is missing"):
        sqlite.insert("pet", {"user_id": "9"})


def test_a_rebuild_refuses_to_run_with_foreign_keys_enforced(sqlite: SQLiteBench) -> None:
    case = Case([USER], [WIDER], {"user": [{"name": "'a'"}]})
    case.fill(sqlite)
    first = steps_of(case)[0]
    with pytest.raises(RunError, match=r"PRAGMA foreign_keys = OFF must run before BEGIN"):
        sqlite.perform(first)
    assert sqlite.ask('SELECT name FROM "user"') == [("a",)]


def test_a_reference_to_no_row_stops_before_the_commit(sqlite: SQLiteBench) -> None:
    child = shape("pet", {"user": fields.ForeignKey("user", related_name="+")})
    case = Case([USER, child], [WIDER, child], {"user": [{"name": "'a'"}]})
    case.fill(sqlite)
    sqlite.do("PRAGMA foreign_keys = OFF")
    sqlite.insert("pet", {"user_id": "7"})
    before = sqlite.catalog()
    with pytest.raises(RunError, match=r"1 references point to no row: the first is in table pet"):
        case.apply(sqlite)
    assert sqlite.catalog() == before


def test_many_changes_of_a_table_are_one_rebuild() -> None:
    before = shape("user", {**TEXT, "a": fields.IntegerField(), "b": fields.TextField()})
    after = shape(
        "user",
        {
            "name": fields.CharField(max_length=30, unique=True),
            "a": fields.BigIntegerField(null=True),
            "c": fields.TextField(db_default="x"),
        },
        constraints=(CheckConstraint(Q(a__gt=0), name="more"),),
    )
    assert rebuilds(steps_of(Case([before], [after]))) == 1


@pytest.mark.parametrize(
    ("case", "count"),
    [
        pytest.param(
            Case(
                [USER],
                [shape("user", {"label": TEXT["name"]})],
                answers=PlannerHints(fields={"user": {"label": "name"}}),
            ),
            # the name of the check follows, which is a change of constraints
            1,
            id="rename_checked",
        ),
        pytest.param(
            one(fields.TextField(), fields.TextField(null=True), [], []),
            1,
            id="allow_null",
        ),
        pytest.param(
            one(fields.TextField(null=True), fields.TextField(), [], []),
            1,
            id="require",
        ),
        pytest.param(
            one(fields.IntegerField(), fields.PositiveIntegerField(), [], []),
            1,
            id="check",
        ),
        pytest.param(
            Case([shape("user", {**TEXT, "n": fields.TextField()})], [USER]),
            0,
            id="drop_column",
        ),
        pytest.param(
            Case(
                [shape("user", {"a": fields.TextField()})],
                [shape("user", {"b": fields.TextField()})],
                answers=PlannerHints(fields={"user": {"b": "a"}}),
            ),
            0,
            id="rename_column",
        ),
        pytest.param(
            Case([USER], [shape("user", {**TEXT, "n": fields.IntegerField(db_default=1)})]),
            0,
            id="add_column",
        ),
        pytest.param(
            Case([USER], [shape("user", {**TEXT, "boss": fields.ForeignKey("user", null=True)})]),
            0,
            id="add_reference",
        ),
        pytest.param(
            Case([shape("user", {**TEXT, "boss": fields.ForeignKey("user", null=True)})], [USER]),
            1,
            id="drop_reference",
        ),
        pytest.param(
            one(fields.TextField(), fields.TextField(unique=True), [], []),
            1,
            id="unique",
        ),
    ],
)
def test_a_change_without_a_constraint_rebuilds_nothing(case: Case, count: int) -> None:
    assert rebuilds(steps_of(case)) == count
