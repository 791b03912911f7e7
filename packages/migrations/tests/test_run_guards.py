"""Guards before locks, limits of every step that others wait for, and rows written in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from run_support import (
    AUTHOR,
    BOOK,
    Files,
    Place,
    files as files,
    make_place as make_place,
)
from test_plan_changes import CASES
from test_run_steps import at_alter_table, locked

from treefold_migrations import LockTimeout, RunError, lint, migrate
from treefold_migrations._base.sql_locks import find_strongest_lock
from treefold_migrations._lint.changes import LintedOperation, lint_operation_effect
from treefold_migrations._plan.operations import plan_changes
from treefold_migrations._run.events import Event
from treefold_migrations._run.runner import Runner
from treefold_migrations._run.timeouts import Limits
from treefold_migrations._schedule.planning import DatabaseTarget, plan_single_file
from treefold_migrations._schedule.units import SqlUnit
from treefold_orm import close_all
from treefold_orm.schema import Postgres

NAMES = 'CreateTable("author", {{"id": fields.BigAutoField(primary_key=True), {}}}, model="Author")'
RANK = 'AddField("author", "rank", fields.IntegerField(null=True))'
UNIQUE = 'AlterField("author", "name", fields.CharField(max_length=40, unique=True))'
CHECKED = (
    "SeparateStateAndDatabase(state=[], database=[]), "
    'AddConstraint("author", CheckConstraint(~Q(name="bad"), name="no_bad"))'
)
MORE = "from treefold_migrations import AddConstraint\nfrom treefold_orm import CheckConstraint, Q"


@pytest.fixture
def postgres(make_place: Callable[[str], Place]) -> Iterator[Place]:
    made = make_place("postgres")
    made.configure()
    yield made
    close_all()


def start(files: Files, *operations: str) -> None:
    """Apply a first file."""
    files.write("0001_initial", *(operations or (AUTHOR,)))
    Runner("default", files.history()).migrate()


# -- the order of a plan --------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_change_reads_rows_before_its_first_statement(name: str) -> None:
    steps = plan_changes(CASES[name].changes(Postgres()), dialect=Postgres())
    looks = [bool(step.reads) for step in steps]
    assert looks == sorted(looks, reverse=True)
    assert not [step for step in steps if step.verify and not step.reads]
    assert not any(step.sql.startswith("LOCK TABLE") for step in steps)


def plan_of(files: Files) -> list[str]:
    lines: list[str] = []
    migrate(files.folder, plan=True, say=lines.append)
    return [line.strip() for line in lines]


def test_a_guard_runs_before_operations_that_it_does_not_depend_on(
    postgres: Place, files: Files
) -> None:
    start(files)
    files.write("0002_both", RANK, UNIQUE)
    assert plan_of(files)[1:3] == [
        "check rows of author, without a lock",
        "1/3 add column author.rank",
    ]
    postgres.ask("INSERT INTO author (name) VALUES ('same'), ('same') RETURNING id")
    message = r"'0002_both' cannot begin: author: 1 rows repeat .*; nothing of this file was"
    with pytest.raises(RunError, match=message):
        Runner("default", files.history()).migrate()
    assert postgres.ask("SELECT * FROM author WHERE id = 1") == [(1, "same")]
    assert Runner("default", files.history()).pending() == ["0002_both"]
    assert Runner("default", files.history()).applied().progress == {}


def test_a_guard_behind_its_fill_does_not_run_under_the_locks_of_the_file(
    postgres: Place, files: Files
) -> None:
    start(files)
    postgres.ask("INSERT INTO author (name) VALUES ('a'), ('b') RETURNING id")
    above = "def fill(models, work):\n    models.author.objects.update(rank=1)\n"
    required = 'AddField("author", "age", fields.IntegerField())'
    files.write("0002_fill", RANK, "RunPython(fill, RunPython.noop)", required, above=above)
    # the column has an exclusive lock, so that the file is committed before rows are read
    message = r"cannot go on with step 3: .*author has 2 rows.*steps 1 to 2 are committed"
    with pytest.raises(RunError, match=message):
        Runner("default", files.history()).migrate()
    assert postgres.ask("SELECT rank FROM author WHERE id = 1") == [(1,)]


def test_a_guard_stays_in_a_transaction_that_locks_nobody(postgres: Place, files: Files) -> None:
    start(files)
    postgres.ask("INSERT INTO author (name) VALUES ('a'), ('b') RETURNING id")
    empty = 'RunSQL("DELETE FROM author WHERE id = 1")'
    files.write("0002_fill", empty, 'AddField("author", "age", fields.IntegerField())')
    with pytest.raises(RunError, match=r"has 1 rows.*nothing of this file was applied"):
        Runner("default", files.history()).migrate()
    assert postgres.ask("SELECT count(*) FROM author") == [(2,)]


def test_a_plan_names_what_blocks_and_the_size_of_the_table(postgres: Place, files: Files) -> None:
    start(files)
    files.write("0002_size", 'AlterField("author", "name", fields.CharField(max_length=9))')
    assert re.search(
        r"1/1 change the type, to .*, of author\.name \(writes every row again of author, \d+ kB, "
        r"while reads and writes wait\)",
        "\n".join(plan_of(files)),
    )


BLOCKED = {"type-rewrites", "volatile-default", "primary-key-index", "exclusion-constraint"}
LINTED = {
    "a type": 'AlterField("author", "name", fields.IntegerField())',
    "a shorter text": 'AlterField("author", "name", fields.CharField(max_length=9))',
    "a volatile default": 'AddField("author", "key", fields.FloatField(db_default=Random()))',
    "another key": 'SetOptions("pair", primary_key=["b", "a"])',
}
PAIR = (
    'CreateTable("pair", {"a": fields.IntegerField(), "b": fields.IntegerField()}, model="Pair", '
    'primary_key=["a", "b"])'
)


@pytest.mark.parametrize("name", LINTED)
def test_lint_names_a_change_that_blocks(name: str, files: Files) -> None:
    files.write("0001_initial", AUTHOR, PAIR)
    files.write("0002_change", LINTED[name], above="from treefold_orm import Random")
    found = {finding.rule for _, finding in lint(files.folder, since="0001", metas=())}
    run = plan_single_file(files.history(), "0002", DatabaseTarget(Postgres()), backwards=False)
    assert [unit for unit in run.units if isinstance(unit, SqlUnit) and unit.step.blocks]
    assert found & BLOCKED


@pytest.mark.parametrize("name", CASES)
def test_lint_names_each_step_that_blocks(name: str) -> None:
    case, dialect = CASES[name], Postgres()
    changes = case.changes(dialect)
    before, after = ({s.name: s for s in shapes} for shapes in (case.before, case.after))
    subject = LintedOperation(0, before, after, case.answers, tuple(changes), dialect)
    found = {finding.rule for finding in lint_operation_effect(subject)}
    blocks = {step.blocks for step in plan_changes(changes, dialect=dialect)} - {""}
    assert bool(blocks) == bool(found & BLOCKED)


# -- rows that are written between a guard and the statement --------------------------------------

BETWEEN = {
    "unique": (UNIQUE, "'a'", "step 1 of 2.*author: 1 rows repeat another row in name"),
    "check": (CHECKED, "'bad'", "author: 1 rows break the check no_bad"),
    "required": (
        'AlterField("author", "nick", fields.CharField(max_length=40), fill="x")',
        "'b'",
        "author: 1 rows have NULL in nick",
    ),
    "shorter": (
        'AlterField("author", "name", fields.CharField(max_length=5))',
        "'b        '",
        "author: 1 rows hold text of more than 5 characters in name",
    ),
    "number": (
        'AlterField("author", "name", fields.IntegerField())',
        "'007'",
        "author: 1 rows hold text that is not an integer in name",
    ),
    "date": (
        'AlterField("author", "name", fields.DateField())',
        "'2024-1-5'",
        "author: 1 rows hold text that is not a date",
    ),
    "an added column": (
        'AddField("author", "age", fields.IntegerField())',
        "'b'",
        "but author has 1 rows",
    ),
}
FIRST = {"unique": "'a'", "number": "'7'", "date": "'2024-01-05'", "an added column": ""}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_row_written_after_a_guard_is_refused_and_explained(
    postgres: Place, files: Files, name: str
) -> None:
    operation, value, message = BETWEEN[name]
    fields = '"name": fields.CharField(max_length=40), "nick": fields.CharField(max_length=9, '
    start(files, NAMES.format(fields + "null=True)"))
    first = FIRST.get(name, "'c'")
    if first:
        postgres.ask(f"INSERT INTO author (name, nick) VALUES ({first}, 'n') RETURNING id")
    files.write("0002_change", operation, above=MORE)
    written: list[str] = []

    def write(event: Event) -> None:
        # the statement before which the row comes: for NULL, the one after the fill
        late = name != "required" or "add constraint" in event.text
        if event.kind == "step" and not written and late:
            written.append(event.text)
            postgres.ask(f"INSERT INTO author (name) VALUES ({value}) RETURNING id")

    with pytest.raises(RunError, match=message):
        Runner("default", files.history(), listener=write).migrate()
    assert written
    assert (f"{value[1:-1]}",) in postgres.ask("SELECT name FROM author")


# -- limits ---------------------------------------------------------------------------------------

WAITING = {
    "a table that refers to a locked one": BOOK,
    "SQL that alters": 'RunSQL("ALTER TABLE author ADD COLUMN older integer", "")',
    "SQL that builds an index": 'RunSQL("CREATE INDEX older ON author (name)", "")',
    "SQL by itself": 'RunSQL("DROP INDEX named", "", transactional=False)',
    "SQL with a block": (
        'RunSQL("DO $x$ BEGIN ALTER TABLE author ADD COLUMN o integer; END $x$", "")'
    ),
}


@pytest.mark.parametrize("name", WAITING)
def test_every_step_that_waits_for_a_blocking_lock_has_a_limit(
    postgres: Place, files: Files, name: str
) -> None:
    start(files, AUTHOR, 'RunSQL("CREATE INDEX named ON author (name)", "")')
    files.write("0002_change", WAITING[name])
    with locked(postgres, "LOCK TABLE author IN ROW EXCLUSIVE MODE"):
        limits = Limits(lock=0.05, attempts=2)
        with pytest.raises(LockTimeout, match="in 2 attempts"):
            Runner("default", files.history(), limits=limits).migrate()


def test_steps_behind_a_blocking_lock_have_its_limit(postgres: Place, files: Files) -> None:
    start(files)
    files.write("0002_change", RANK, 'RunSQL("SELECT pg_sleep(0.5)", "")')
    with pytest.raises(RunError, match=r"held its lock for 0\.2 s and was stopped"):
        Runner("default", files.history(), limits=Limits(statement=0.2)).migrate()


def test_a_limit_of_the_author_stays(postgres: Place, files: Files) -> None:
    start(files)
    own = 'RunSQL("SET LOCAL statement_timeout = \'9s\'", "")'
    files.write("0002_change", own, RANK)
    with at_alter_table(postgres, "PERFORM pg_sleep(0.5)"):
        Runner("default", files.history(), limits=Limits(statement=0.2)).migrate()


@pytest.mark.parametrize(
    ("sql", "lock"),
    [
        ("ALTER TABLE a ADD COLUMN b integer", "ACCESS EXCLUSIVE"),
        ("ALTER TABLE a VALIDATE CONSTRAINT b", ""),
        ("ALTER TABLE a VALIDATE CONSTRAINT b, ADD c integer", "ACCESS EXCLUSIVE"),
        ("CREATE INDEX CONCURRENTLY a ON b (c)", ""),
        ("CREATE UNIQUE INDEX a ON b (c)", "SHARE"),
        ("CREATE INDEX a ON b (c); DROP TABLE d", "ACCESS EXCLUSIVE"),
        ("CREATE TABLE a (b integer)", ""),
        ("CREATE TABLE a (b integer REFERENCES c)", "SHARE ROW EXCLUSIVE"),
        ("CREATE TRIGGER a BEFORE UPDATE ON b EXECUTE FUNCTION c()", "SHARE ROW EXCLUSIVE"),
        ("UPDATE a SET b = 'ALTER TABLE'", ""),
        ("DO $$ BEGIN ALTER TABLE a ADD b integer; END $$", "ACCESS EXCLUSIVE"),
        ("DO $$ BEGIN PERFORM 1; END $$", ""),
        ("DO $do1$ BEGIN DROP TABLE a; END $do1$", "ACCESS EXCLUSIVE"),
        ("CREATE FUNCTION f() RETURNS void AS $f1$ BEGIN A; DROP TABLE x; END $f1$", ""),
        ("/* /* */ ; DROP TABLE a; */ SELECT E'\\'; DROP TABLE a; \\''", ""),
        ("REINDEX TABLE CONCURRENTLY a", ""),
        ("TRUNCATE a", "ACCESS EXCLUSIVE"),
        ("VACUUM a", ""),
    ],
)
def test_the_lock_of_sql_is_known_by_its_words(sql: str, lock: str) -> None:
    assert find_strongest_lock(sql) == lock


# -- no lock while rows are read ------------------------------------------------------------------


@contextmanager
def reads_watched(place: Place) -> Generator[tuple[list[str], Callable[[Event], None]]]:
    """Note the locks of the run on `author` while it looks at rows."""
    found: list[str] = []

    def listen(event: Event) -> None:
        if event.kind == "look":
            found.append(event.text)
            held: list[Any] = place.ask(
                "SELECT mode FROM pg_locks WHERE relation = 'author'::regclass "
                "AND mode IN ('AccessExclusiveLock', 'ShareRowExclusiveLock')"
            )
            assert not held

    yield found, listen


def test_no_lock_is_held_while_rows_are_looked_at(postgres: Place, files: Files) -> None:
    start(files)
    files.write("0002_change", RANK, 'RunSQL("SELECT 1", "")', UNIQUE)
    with reads_watched(postgres) as (found, listen):
        Runner("default", files.history(), listener=listen).migrate()
    assert found == ["check rows of author"]
