"""PostgreSQL: safe steps, which survive being interrupted, and the names it chooses by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from plan_cases import Case, one, shape
from plan_engines import PostgresBench
from test_plan_changes import CASES

from treefold_migrations import RunError
from treefold_migrations._plan.between import PlannerHints
from treefold_migrations._plan.operations import plan_changes
from treefold_migrations._plan.postgres_names import derive_postgres_object_name
from treefold_migrations._plan.postgres_rewrites import STABLE_FUNCTIONS, is_volatile_default
from treefold_migrations._plan.step import Step
from treefold_orm import CheckConstraint, Index, Q, SchemaSQL, UniqueConstraint, fields
from treefold_orm.schema import Dialect, Postgres, SQLite

TEXT = {"name": fields.CharField(max_length=20)}
USER = shape("user", TEXT)
MADE = "gen_random_uuid()"


@pytest.fixture
def postgres(benches: dict[str, Any]) -> Iterator[PostgresBench]:
    bench = benches["postgres"]
    with bench.place():
        yield bench


def steps_of(case: Case) -> list[Step]:
    return plan_changes(case.changes(Postgres()), dialect=Postgres())


def sql_of(case: Case) -> list[str]:
    """The statements, with a note on those outside of a transaction and on checks."""
    shown: list[str] = []
    for step in steps_of(case):
        note = "" if step.transactional else " [alone]"
        shown.append(f"{step.sql or 'check'}{note}")
    return shown


def test_an_index_is_built_beside_running_queries() -> None:
    case = Case([USER], [shape("user", TEXT, indexes=(Index("name", name="ix"),))])
    (step,) = steps_of(case)
    assert step.sql == 'CREATE INDEX CONCURRENTLY "ix" ON "user" ("name")'
    assert (step.transactional, step.lock) == (False, "SHARE UPDATE EXCLUSIVE")
    assert step.before_retry == 'DROP INDEX CONCURRENTLY IF EXISTS "ix"'


def test_a_unique_constraint_takes_over_an_index() -> None:
    case = Case([USER], [shape("user", TEXT, constraints=(UniqueConstraint("name", name="uq"),))])
    assert sql_of(case) == [
        "check [alone]",
        'CREATE UNIQUE INDEX CONCURRENTLY "uq" ON "user" ("name") [alone]',
        'ALTER TABLE "user" ADD CONSTRAINT "uq" UNIQUE USING INDEX "uq"',
    ]


def test_a_check_is_validated_after_it_is_in_force() -> None:
    check = CheckConstraint(~Q(name="x"), name="no_x")
    assert sql_of(Case([USER], [shape("user", TEXT, constraints=(check,))])) == [
        "check [alone]",
        'ALTER TABLE "user" ADD CONSTRAINT "no_x" CHECK (NOT ("name" = \'x\')) NOT VALID',
        'ALTER TABLE "user" VALIDATE CONSTRAINT "no_x" [alone]',
    ]


def test_a_foreign_key_is_validated_after_it_is_in_force() -> None:
    after = shape("user", {**TEXT, "boss": fields.ForeignKey("user", null=True, db_index=False)})
    assert sql_of(Case([USER], [after])) == [
        "check [alone]",
        'ALTER TABLE "user" ADD COLUMN "boss_id" bigint',
        'ALTER TABLE "user" ADD CONSTRAINT "fk_user_boss_id" FOREIGN KEY ("boss_id") REFERENCES '
        '"user" ("id") ON DELETE RESTRICT NOT VALID',
        'ALTER TABLE "user" VALIDATE CONSTRAINT "fk_user_boss_id" [alone]',
    ]


def test_not_null_is_proved_by_a_check_first() -> None:
    case = one(fields.TextField(null=True), fields.TextField(), [], [])
    name = '"treefold_filled_item_v"'
    assert sql_of(case) == [
        "check [alone]",
        f'ALTER TABLE "item" ADD CONSTRAINT {name} CHECK ("v" IS NOT NULL) NOT VALID',
        f'ALTER TABLE "item" VALIDATE CONSTRAINT {name} [alone]',
        'ALTER TABLE "item" ALTER COLUMN "v" SET NOT NULL',
        f'ALTER TABLE "item" DROP CONSTRAINT {name}',
    ]


def test_a_column_with_a_value_rewrites_no_row(postgres: PostgresBench) -> None:
    case = Case(
        [USER],
        [shape("user", {**TEXT, "n": fields.IntegerField()})],
        {"user": [{"name": "'a'"}]},
        answers=PlannerHints(fills={("user", "n"): "7"}),
    )
    assert sql_of(case) == [
        'ALTER TABLE "user" ADD COLUMN "n" integer NOT NULL DEFAULT 7',
        'ALTER TABLE "user" ALTER COLUMN "n" DROP DEFAULT',
    ]
    case.fill(postgres)
    node = "SELECT pg_relation_filenode('\"user\"')"
    before = postgres.ask(node)
    case.apply(postgres)
    assert postgres.ask(node) == before
    assert postgres.ask('SELECT n FROM "user"') == [(7,)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (fields.CharField(max_length=5), fields.CharField(max_length=9)),
        (fields.CharField(max_length=5), fields.TextField()),
        (
            fields.DecimalField(max_digits=5, decimal_places=2),
            fields.DecimalField(max_digits=9, decimal_places=2),
        ),
    ],
)
def test_a_wider_type_rewrites_no_row(postgres: PostgresBench, before: Any, after: Any) -> None:
    case = one(before, after, ["'1'"], [])
    case.fill(postgres)
    node = "SELECT pg_relation_filenode('item')"
    old = postgres.ask(node)
    case.apply(postgres)
    assert postgres.ask(node) == old


@pytest.mark.parametrize(
    ("type_name", "default", "rewrites"),
    [
        ("uuid", "gen_random_uuid()", True),
        ("uuid", "(gen_random_uuid())", True),
        ("uuid", "((Gen_Random_Uuid ( )))", True),
        ("uuid", "pg_catalog.gen_random_uuid()", True),
        ("uuid", '("gen_random_uuid"())', True),
        ("timestamptz", "(clock_timestamp())", True),
        ("timestamptz", "(now() + random() * interval '1 day')", True),
        ("float", "random()", True),
        ("float", "((random())::double precision)", True),
        ("varchar(40)", "CAST(random() AS varchar(40))", True),
        ("varchar(40)", "'n(' || random()", True),
        ("float[]", "ARRAY[random()]", True),
        ("bigint", "nextval('counted')", True),
        ("integer", "made_by_hand()", True),
        ("timestamptz", "(now())", False),
        ("timestamptz", "pg_catalog.now()", False),
        ("timestamptz", "(STATEMENT_TIMESTAMP())", False),
        ("timestamptz", "(CURRENT_TIMESTAMP(3))", False),
        ("date", "(((now()) AT TIME ZONE ('UTC'))::date)", False),
        ("timestamptz", "(DATE_TRUNC('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')", False),
        ("integer", "((((1)::bigint)::bigint + (2)::bigint))", False),
        ("numeric(8, 2)", "CAST(1.5 AS numeric(8, 2))", False),
        ("varchar(20)[]", "ARRAY['a', 'b(c)']::varchar(20)[]", False),
        ("text", "'gen_random_uuid()'", False),
        ("text", "('it''s random()' || 'now()')", False),
        ("text", "($$random()$$ || '')", False),
        ("text", "coalesce(NULL, upper('a'))", False),
    ],
)
def test_a_default_that_differs_by_row_is_known_to_rewrite(
    postgres: PostgresBench, type_name: str, default: str, rewrites: bool
) -> None:
    postgres.do("CREATE TABLE item (id integer); INSERT INTO item VALUES (1), (2)")
    postgres.do("CREATE SEQUENCE counted")
    postgres.do(
        "CREATE FUNCTION made_by_hand() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'"
    )
    node = "SELECT pg_relation_filenode('item')"
    before = postgres.ask(node)
    postgres.do(f"ALTER TABLE item ADD COLUMN v {type_name} DEFAULT {default}")
    assert (postgres.ask(node) != before) == rewrites
    assert is_volatile_default(default) == rewrites


def test_no_function_that_is_taken_for_stable_is_volatile(postgres: PostgresBench) -> None:
    listed = ", ".join(f"'{name}'" for name in sorted(STABLE_FUNCTIONS))
    found = postgres.ask(
        "SELECT DISTINCT proname FROM pg_proc WHERE provolatile = 'v' AND prokind = 'f' "
        f"AND pronamespace = 'pg_catalog'::regnamespace AND proname IN ({listed})"
    )
    assert found == []


def test_the_step_of_a_volatile_default_is_announced() -> None:
    after = shape("user", {**TEXT, "key": fields.UUIDField(db_default=SchemaSQL(MADE))})
    assert [step.blocks for step in steps_of(Case([USER], [after]))] == ["writes every row again"]
    assert not any(step.blocks for step in steps_of(Case([], [after])))


def test_a_fresh_table_needs_no_safe_steps() -> None:
    after = shape(
        "user",
        {"name": fields.CharField(max_length=20, unique=True, null=True)},
        indexes=(Index("name", name="ix"),),
        constraints=(CheckConstraint(~Q(name="x"), name="no_x"),),
    )
    case = Case([USER], [after], answers=PlannerHints(fresh=frozenset({"user"})))
    assert all(step.transactional for step in steps_of(case))
    assert not any("CONCURRENTLY" in s.sql or "NOT VALID" in s.sql for s in steps_of(case))


def test_a_fill_by_an_expression_goes_in_batches(postgres: PostgresBench) -> None:
    case = one(
        fields.TextField(null=True),
        fields.TextField(),
        [],
        [],
        answers=PlannerHints(fills={("item", "v"): "'n' || \"id\""}),
    )
    case.fill(postgres)
    postgres.do('INSERT INTO "item" ("v") SELECT NULL FROM generate_series(1, 12000)')
    (batch,) = [step for step in steps_of(case) if step.repeat]
    assert "LIMIT 5000" in batch.sql
    assert not batch.transactional
    case.apply(postgres)
    assert postgres.ask("SELECT count(*), min(v), max(v) FROM item") == [(12000, "n1", "n9999")]


INTERRUPTED = [
    name
    for name, case in CASES.items()
    if case.only != "sqlite" and any(not step.transactional for step in steps_of(case))
]


@pytest.mark.parametrize("name", INTERRUPTED)
def test_a_step_that_was_interrupted_can_run_again(postgres: PostgresBench, name: str) -> None:
    """A step outside of a transaction may have ended before the journal could say so."""
    case = CASES[name]
    case.fill(postgres)
    for together, group in itertools.groupby(steps_of(case), lambda step: step.transactional):
        if together:
            postgres.transaction(list(group))
            continue
        for step in group:
            postgres.perform(step)
            if step.before_retry:
                postgres.do(step.before_retry)
            postgres.perform(step)
    assert postgres.catalog() == postgres.expected(case.after)


def test_an_invalid_index_is_dropped_before_it_is_built_again(postgres: PostgresBench) -> None:
    case = Case([USER], [shape("user", TEXT, constraints=(UniqueConstraint("name", name="uq"),))])
    Case([USER], [USER], {"user": [{"name": "'a'"}, {"name": "'a'"}]}).fill(postgres)
    _, build, constraint = steps_of(case)
    with pytest.raises(Exception, match="exists already"):
        postgres.perform(build)
    assert postgres.catalog()["index uq"][2] is False
    postgres.do('DELETE FROM "user" WHERE id = 2')
    postgres.do(build.before_retry)
    postgres.perform(build)
    postgres.perform(constraint)
    assert postgres.catalog() == postgres.expected(case.after)


REFUSED = {
    "unique": (
        shape("user", TEXT, constraints=(UniqueConstraint("name", name="uq"),)),
        r"user: 2 rows repeat another row in name, which becomes unique.*for example id=[23]",
    ),
    "check": (
        shape("user", TEXT, constraints=(CheckConstraint(~Q(name="a"), name="no_a"),)),
        r"user: 3 rows break the check no_a; change them first \(for example id=1\)",
    ),
    "required": (
        shape("user", {**TEXT, "n": fields.IntegerField()}),
        r"user\.n allows no NULL and has no default in the database, but user has 3 rows; give a "
        r"value for them, with fill= in the operation, or delete the file and run `treefold "
        r"makemigrations --fill user\.n:VALUE`, or make the field nullable",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_a_change_refuses_are_counted(bench: Any, name: str) -> None:
    after, message = REFUSED[name]
    rows = {"user": [{"name": "'a'"}] * 3}
    case = Case([USER], [after], rows)
    with bench.place():
        case.fill(bench)
        before = bench.catalog()
        with pytest.raises(RunError, match=message):
            case.apply(bench)
        assert bench.catalog() == before


def test_references_to_no_row_are_counted(bench: Any) -> None:
    before = shape("pet", {"owner_id": fields.BigIntegerField()})
    after = shape("pet", {"owner": fields.ForeignKey("user")})
    rows = {"pet": [{"owner_id": "5"}, {"owner_id": "6"}]}
    answers = PlannerHints(fields={"pet": {"owner": "owner_id"}})
    case = Case([USER, before], [USER, after], rows, answers=answers)
    with bench.place():
        case.fill(bench)
        catalog = bench.catalog()
        message = r"pet: 2 rows point with owner_id to no row of user"
        with pytest.raises(RunError, match=message):
            case.apply(bench)
        assert bench.catalog() == catalog


@pytest.mark.parametrize(
    ("table", "column"),
    [("t", "id"), ("t" * 63, "id"), ("t" * 40, "c" * 40), ("é" * 31, "ü" * 31), ("t", "c" * 63)],
)
def test_names_are_those_that_the_server_chooses(
    postgres: PostgresBench, table: str, column: str
) -> None:
    postgres.do(
        f'CREATE TABLE "{table}" ("{column}" integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)'
    )
    found = postgres.catalog()
    assert f"sequence {derive_postgres_object_name(table, column, 'seq')}" in found
    assert f"index {derive_postgres_object_name(table, '', 'pkey')}" in found


def test_a_sequence_goes_on_after_a_change_of_its_key(postgres: PostgresBench) -> None:
    case = CASES["key_widened"]
    case.fill(postgres)
    case.apply(postgres)
    postgres.insert("user", {"name": "'new'"})
    assert postgres.ask('SELECT max(id) FROM "user"') == [(4,)]
    numbered = CASES["key_to_identity"]
    numbered.fill(postgres)
    numbered.apply(postgres)
    postgres.insert("thing", {"name": "'new'"})
    assert postgres.ask("SELECT max(id) FROM thing") == [(8,)]


@pytest.mark.parametrize("dialect", [SQLite(), Postgres()], ids=lambda dialect: dialect.name)
def test_protect_and_restrict_are_one_action_of_the_database(dialect: Dialect) -> None:
    posts = [
        shape("post", {"writer": fields.ForeignKey("user", rule)})
        for rule in ("RESTRICT", "PROTECT", "CASCADE")
    ]
    same = Case([USER, posts[0]], [USER, posts[1]])
    assert plan_changes(same.changes(dialect), dialect=dialect) == []
    other = Case([USER, posts[2]], [USER, posts[1]])
    sql = [step.sql for step in plan_changes(other.changes(dialect), dialect=dialect) if step.sql]
    assert any("ON DELETE RESTRICT" in text for text in sql)
