"""From operations to steps: what is planned together, and what is left to the author's word."""

from __future__ import annotations

from typing import Any

import pytest
from plan_engines import Bench

from treefold_migrations import (
    AddField,
    AddIndex,
    AlterField,
    CreateTable,
    DropField,
    DropTable,
    RenameField,
    RenameTable,
    RunPython,
    RunSQL,
    SchemaState,
    SeparateStateAndDatabase,
    SetOptions,
    StateError,
)
from treefold_migrations._operations.base import Operation
from treefold_migrations._plan.operations import plan_operations
from treefold_migrations._plan.step import Step
from treefold_migrations._state.rendering import build_table_shape
from treefold_orm import Index, Now, fields
from treefold_orm.schema import Imports, Postgres, SQLite

USER = CreateTable(
    "user",
    {
        "id": fields.BigAutoField(),
        "name": fields.CharField(max_length=20),
        "age": fields.IntegerField(null=True),
    },
    "User",
)
POST = CreateTable("post", {"id": fields.BigAutoField(), "user": fields.ForeignKey("user")}, "Post")
BEFORE = POST.apply(USER.apply(SchemaState()))


def states_of(*operations: Operation, before: SchemaState = BEFORE) -> list[SchemaState]:
    states = [before]
    for operation in operations:
        states.append(operation.apply(states[-1]))
    return states


def planned(dialect: Any, *operations: Operation) -> list[tuple[int, list[Step]]]:
    return plan_operations(operations, states_of(*operations), dialect)


def rebuilt(steps: list[Step]) -> list[str]:
    return [step.table for step in steps if "copy the rows" in step.summary]


def apply(bench: Bench, *operations: Operation) -> None:
    steps = [s for _, steps in planned(bench.dialect, *operations) for s in steps]
    bench.apply(steps)
    after = states_of(*operations)[-1]
    wanted = bench.expected([build_table_shape(table) for table in after.tables.values()])
    assert bench.catalog() == wanted


def begin(bench: Bench) -> None:
    bench.create([build_table_shape(table) for table in BEFORE.tables.values()])
    bench.insert("user", {"name": "'Ann'"})
    bench.insert("post", {"user_id": "1"})


MANY: tuple[Operation, ...] = (
    AlterField("user", "name", fields.CharField(max_length=30)),
    RenameField("user", "name", "label"),
    AddField("user", "nick", fields.TextField(), fill="-"),
    RenameField("user", "nick", "short"),
    AlterField("user", "age", fields.IntegerField(), fill=7),
    AddField("user", "seen", fields.DateTimeField(), fill=Now()),
    RenameTable("user", "person"),
    AddField("person", "boss", fields.ForeignKey("person", null=True)),
    AddIndex("person", Index("label", name="by_label")),
)


def test_many_operations_on_a_table_are_one_rebuild_on_sqlite() -> None:
    ((place, steps),) = planned(SQLite(), *MANY)
    assert (place, rebuilt(steps)) == (0, ["person"])


def test_each_operation_has_its_steps_on_postgresql() -> None:
    assert [place for place, _ in planned(Postgres(), *MANY)] == list(range(len(MANY)))


def test_operations_that_are_planned_together_end_where_they_should(bench: Bench) -> None:
    with bench.place():
        begin(bench)
        apply(bench, *MANY)
        rows = bench.ask("SELECT id, label, short, age, boss_id FROM person")
        assert rows == [(1, "Ann", "-", 7, None)]
        assert bench.ask("SELECT count(seen) FROM person") == [(1,)]
        assert bench.ask("SELECT user_id FROM post") == [(1,)]


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param(
            (
                AlterField("user", "age", fields.TextField(null=True)),
                AlterField("user", "age", fields.CharField(max_length=5, null=True)),
            ),
            id="altered_twice",
        ),
        pytest.param(
            (
                AddField("user", "x", fields.IntegerField(), fill=5),
                AlterField("user", "x", fields.CharField(max_length=9)),
            ),
            id="filled_then_altered",
        ),
        pytest.param(
            (
                DropTable("post"),
                CreateTable("post", {"id": fields.BigAutoField()}, "Post"),
            ),
            id="table_of_the_same_name",
        ),
        pytest.param(
            (AddField("user", "x", fields.TextField(null=True)), DropField("user", "age")),
            id="phases",
        ),
        pytest.param(
            (
                AddField("user", "x", fields.TextField(null=True)),
                RunSQL('UPDATE "user" SET "x" = "name"', ""),
                AlterField("user", "x", fields.TextField()),
            ),
            id="sql_between",
        ),
    ],
)
def test_what_cannot_be_followed_together_is_planned_apart(
    bench: Bench, operations: tuple[Operation, ...]
) -> None:
    assert [place for place, _ in planned(SQLite(), *operations)] == list(range(len(operations)))
    with bench.place():
        begin(bench)
        apply(bench, *operations)


def test_a_column_dropped_and_added_again_begins_empty(bench: Bench) -> None:
    with bench.place():
        begin(bench)
        apply(
            bench,
            DropField("user", "age"),
            AddField("user", "age", fields.CharField(max_length=4, null=True)),
        )
        assert bench.ask('SELECT age FROM "user"') == [(None,)]


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param((DropTable("post"),), id="dropped"),
        pytest.param((RenameTable("post", "entry"), DropTable("entry")), id="renamed_and_dropped"),
        pytest.param(
            (RenameField("post", "n", "m"), RenameTable("post", "entry"), DropTable("entry")),
            id="all_renamed_and_dropped",
        ),
        pytest.param((DropField("post", "n"), DropTable("post")), id="field_and_table_dropped"),
        pytest.param((DropField("post", "n"), RenameTable("post", "entry")), id="field_dropped"),
    ],
)
@pytest.mark.parametrize("value", [{"fill": 7}, {"using": "n + 1"}])
def test_a_changed_field_goes_with_its_table(
    bench: Bench, value: dict[str, Any], operations: tuple[Operation, ...]
) -> None:
    number = AddField("post", "n", fields.IntegerField(null=True))
    before = states_of(number)[-1]
    changed = AlterField("post", "n", fields.BigIntegerField(), **value, when="contract")
    done = (changed, *operations)
    states = states_of(*done, before=before)
    with bench.place():
        bench.create([build_table_shape(table) for table in before.tables.values()])
        bench.insert("user", {"name": "'Ann'"})
        bench.insert("post", {"user_id": "1", "n": "1"})
        bench.apply([s for _, steps in plan_operations(done, states, bench.dialect) for s in steps])
        wanted = [build_table_shape(table) for table in states[-1].tables.values()]
        assert bench.catalog() == bench.expected(wanted)


def test_names_that_come_free_can_be_taken_in_one_file(bench: Bench) -> None:
    with bench.place():
        begin(bench)
        apply(
            bench,
            RenameField("user", "name", "old"),
            RenameField("user", "age", "name"),
            RenameField("user", "old", "age"),
        )
        assert bench.ask('SELECT age, name FROM "user"') == [("Ann", None)]


def test_a_table_of_the_same_file_needs_no_safe_steps() -> None:
    operations = (
        CreateTable("tag", {"id": fields.BigAutoField(), "t": fields.TextField()}, "Tag"),
        AddIndex("tag", Index("t", name="by_t")),
        RenameTable("tag", "label"),
        AlterField("label", "t", fields.TextField(unique=True)),
    )
    steps = [step for _, steps in planned(Postgres(), *operations) for step in steps]
    assert all(step.transactional for step in steps)
    states = [states_of(operations[0])[-1], states_of(*operations[:2])[-1]]
    ((_, (index,)),) = plan_operations(operations[1:2], states, Postgres())
    assert not index.transactional


def test_sql_of_the_author_is_kept_as_it_is() -> None:
    sql = RunSQL({"postgres": ["VACUUM", "ANALYZE"], "sqlite": "ANALYZE"}, transactional=False)
    ((_, steps),) = planned(Postgres(), sql)
    assert [(step.sql, step.transactional) for step in steps] == [
        ("VACUUM", False),
        ("ANALYZE", False),
    ]
    assert [step.sql for _, steps in planned(SQLite(), sql) for step in steps] == ["ANALYZE"]


@pytest.mark.parametrize(
    "using", ['length("name")', {"sqlite": 'length("name")', "postgres": 'char_length("name")'}]
)
def test_an_expression_of_the_author_converts_values(bench: Bench, using: Any) -> None:
    with bench.place():
        begin(bench)
        apply(bench, AlterField("user", "name", fields.IntegerField(), using=using))
        assert bench.ask('SELECT name FROM "user"') == [(3,)]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'{0}'", "{0}"),
        ("'{1} {name} {{0}} {} }{'", "{1} {name} {{0}} {} }{"),
        ("'100 % %s %(a)s $1 ? :a'", "100 % %s %(a)s $1 ? :a"),
    ],
)
def test_an_expression_of_the_author_is_inserted_unchanged(
    bench: Bench, sql: str, value: str
) -> None:
    """A unique field, so that a guard reads the values after the change, too."""
    with bench.place():
        begin(bench)
        altered = fields.TextField(unique=True)
        apply(bench, AlterField("user", "name", altered, using=f'{sql} || "name"'))
        assert bench.ask('SELECT name FROM "user"') == [(f"{value}Ann",)]


def test_an_expression_takes_an_item_of_json(bench: Bench) -> None:
    data = CreateTable("box", {"id": fields.BigAutoField(), "data": fields.JSONField()}, "Box")
    using = {"postgres": "data #>> '{0}'", "sqlite": "data ->> '$[0]'"}
    with bench.place():
        states = states_of(data)
        for _, steps in plan_operations([data], states, bench.dialect):
            bench.apply(steps)
        bench.do("INSERT INTO box (id, data) VALUES (1, '[\"first\", 2]')")
        altered = AlterField("box", "data", fields.TextField(), using=using)
        after = states_of(altered, before=states[-1])
        for _, steps in plan_operations([altered], after, bench.dialect):
            bench.apply(steps)
        assert bench.ask("SELECT data FROM box") == [("first",)]


def test_an_expression_is_written_and_checked() -> None:
    altered = AlterField("user", "name", fields.IntegerField(), using={"postgres": "1"})
    assert altered.source(Imports()).endswith('fields.IntegerField(), using={"postgres": "1"})')
    with pytest.raises(StateError, match="using knows 'sqlite' and 'postgres', got 'mysql'"):
        AlterField("user", "name", fields.IntegerField(), using={"mysql": "1"})
    wrong: Any = 5
    with pytest.raises(StateError, match="using must be SQL as text, got 5"):
        AlterField("user", "name", fields.IntegerField(), using=wrong)


def test_python_has_no_steps() -> None:
    assert planned(Postgres(), RunPython(RunPython.noop)) == [(0, [])]


def test_state_and_database_go_separate_ways(bench: Bench) -> None:
    apart = SeparateStateAndDatabase(
        database=[RunSQL('ALTER TABLE "user" RENAME TO "person"')],
        state=[RenameTable("user", "person")],
    )
    ((_, steps),) = planned(bench.dialect, apart)
    assert [step.sql for step in steps] == ['ALTER TABLE "user" RENAME TO "person"']
    only_database = SeparateStateAndDatabase(database=[DropField("user", "age")])
    ((_, steps),) = planned(bench.dialect, only_database)
    assert [step.sql for step in steps if "DROP COLUMN" in step.sql] == [
        'ALTER TABLE "user" DROP COLUMN "age"'
    ]


def test_a_table_that_others_manage_is_left_alone() -> None:
    operations = (
        SetOptions("post", managed=False),
        AddField("post", "x", fields.IntegerField(), fill=1),
    )
    for dialect in (SQLite(), Postgres()):
        assert [step for _, steps in planned(dialect, *operations) for step in steps] == []


def test_a_change_of_the_state_alone_has_no_steps() -> None:
    given = AlterField("user", "age", fields.IntegerField(null=True, choices=[1, 2], default=1))
    for dialect in (SQLite(), Postgres()):
        assert planned(dialect, given) == [(0, [])]
