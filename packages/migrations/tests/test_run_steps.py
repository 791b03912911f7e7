"""Steps under locks, limits and interruptions: what is tried again, what stops, what is kept."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from run_support import (
    AUTHOR,
    BOOK,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    orm_postgres,
    place as place,
)

from treefold_migrations import LockTimeout, RunError
from treefold_migrations._run.events import Event
from treefold_migrations._run.runner import Runner
from treefold_migrations._run.timeouts import Limits
from treefold_orm import IntegrityError, close_all, configure, raw

RANK = 'AddField("author", "rank", fields.IntegerField(null=True))'
AGE = RANK.replace("rank", "age")
CHILD = Path(__file__).parent / "run_child.py"


@pytest.fixture
def postgres(make_place: Callable[[str], Place]) -> Iterator[Place]:
    made = make_place("postgres")
    made.configure()
    yield made
    close_all()


class Holder:
    """A connection of another program that holds a lock on a table until it is told to let go."""

    def __init__(self, place: Place, sql: str) -> None:
        self._place = place
        self._sql = sql
        self._go = threading.Event()
        self._held = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._hold()))

    async def _hold(self) -> None:
        settings = {"search_path": self._place.schema}
        connection: Any = await orm_postgres.driver.connect(
            self._place.address, server_settings=settings
        )
        async with connection.transaction():
            await connection.execute(self._sql)
            self._held.set()
            await asyncio.to_thread(self._go.wait, 30)
        await connection.close()

    def let_go(self) -> None:
        """End the transaction."""
        self._go.set()
        self._thread.join()

    def start(self) -> None:
        """Take the lock."""
        self._thread.start()
        assert self._held.wait(10)


@contextmanager
def locked(place: Place, sql: str) -> Generator[Holder]:
    holder = Holder(place, sql)
    holder.start()
    try:
        yield holder
    finally:
        holder.let_go()


def test_a_locked_table_is_tried_again_from_the_start(postgres: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    files.write("0002_rank", BOOK, RANK)
    said: list[str] = []
    with locked(postgres, "LOCK TABLE author IN ROW SHARE MODE") as holder:

        def listen(event: Event) -> None:
            said.append(event.kind)
            if event.kind == "retry":
                # the locks of the first attempt are given back while it waits
                assert postgres.tables() >= {"author"}
                assert "book" not in postgres.tables()
                holder.let_go()

        limits = Limits(lock=0.1)
        Runner("default", files.history(), listener=listen, limits=limits).migrate()
    assert said.count("retry") == 1
    assert "book" in postgres.tables()


def test_a_table_that_stays_locked_ends_the_run(postgres: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    files.write("0002_rank", RANK)
    with locked(postgres, "LOCK TABLE author IN ROW SHARE MODE"):
        limits = Limits(lock=0.05, attempts=2)
        with pytest.raises(LockTimeout, match=r"in 2 attempts; nothing of this file was applied"):
            Runner("default", files.history(), limits=limits).migrate()
    assert Runner("default", files.history()).pending() == ["0002_rank"]


def test_a_locking_step_that_runs_long_is_stopped(postgres: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    files.write("0002_rank", RANK)
    with at_alter_table(postgres, "PERFORM pg_sleep(0.4)"):
        with pytest.raises(RunError, match=r"held its lock for 0\.1 s and was stopped"):
            Runner("default", files.history(), limits=Limits(statement=0.1)).migrate()
        assert Runner("default", files.history()).pending() == ["0002_rank"]
        Runner("default", files.history(), limits=Limits(statement=0)).migrate()


@contextmanager
def at_alter_table(place: Place, body: str) -> Generator[None]:
    """Run a statement of PL/pgSQL at the beginning of each ALTER TABLE."""
    orm_postgres.ask(
        place.address,
        "CREATE FUNCTION public.at_alter() RETURNS event_trigger LANGUAGE plpgsql "
        f"AS $$BEGIN {body}; END$$",
    )
    orm_postgres.ask(
        place.address,
        "CREATE EVENT TRIGGER at_alter ON ddl_command_start WHEN TAG IN ('ALTER TABLE') "
        "EXECUTE FUNCTION public.at_alter()",
    )
    try:
        yield
    finally:
        orm_postgres.ask(place.address, "DROP EVENT TRIGGER at_alter")
        orm_postgres.ask(place.address, "DROP FUNCTION public.at_alter()")


def test_steps_that_lock_nobody_have_no_limit(postgres: Place, files: Files) -> None:
    postgres.configure(statement_timeout=0.1)
    files.write("0001_initial", AUTHOR, 'RunSQL("SELECT pg_sleep(0.3)")')
    limits = Limits(statement=0.1)
    assert len(Runner("default", files.history(), limits=limits).migrate()) == 1


def test_each_schema_has_records_of_its_own(
    postgres: Place, files: Files, make_place: Callable[[str], Place]
) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    tenant = make_place("postgres")
    settings = {"search_path": f"{tenant.schema},{postgres.schema}"}
    close_all()
    configure(database=tenant.address, server_settings=settings)
    assert Runner("default", files.history()).pending() == ["0001_initial"]
    assert len(Runner("default", files.history()).migrate()) == 1
    assert "author" in tenant.tables()


# -- interruptions --------------------------------------------------------------------------------


def interrupted(place: Place, files: Files) -> None:
    """Kill a run in the middle of a statement outside of a transaction."""
    files.write("0001_initial", AUTHOR)
    files.write(
        "0002_sql",
        RANK,
        "RunSQL(\"INSERT INTO author (name) SELECT 'a' FROM pg_sleep(60)\", transactional=False)",
        'RunSQL("UPDATE author SET rank = 1")',
    )
    given = {**vars(place), "folder": str(files.folder)}
    child = subprocess.Popen([sys.executable, CHILD, "migrate", json.dumps(given)])
    deadline = time.monotonic() + 30
    while not sleeping(place):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.kill()
    child.wait(10)
    place.ask(f"SELECT pg_terminate_backend({sleeping(place)})")


def sleeping(place: Place) -> int:
    found = place.ask(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
        "AND state = 'active' AND query LIKE 'INSERT INTO author%pg_sleep%'"
    )
    return found[0][0] if found else 0


@pytest.mark.parametrize("choice", ["again", "skip"])
def test_an_interrupted_statement_of_unknown_outcome_stops_the_run(
    postgres: Place, files: Files, choice: Any
) -> None:
    interrupted(postgres, files)
    with pytest.raises(RunError, match=r"'0002_sql', step 2 of 3.*whether it took effect is not"):
        Runner("default", files.history()).migrate()
    text = (files.folder / "0002_sql.py").read_text()
    if choice == "again":
        postgres.ask("ALTER TABLE author ALTER name SET DEFAULT 'x'")  # nothing of it stands in
        orm_postgres.ask(postgres.address, FASTER.format(schema=postgres.schema))
        postgres.configure()
    Runner("default", files.history(), interrupted=choice).migrate()
    expected = [("a", 1)] if choice == "again" else []
    assert postgres.ask("SELECT name, rank FROM author") == expected
    assert text == (files.folder / "0002_sql.py").read_text()


# the same statement without its wait: a function of the name comes first on the search path
FASTER = "CREATE FUNCTION {schema}.pg_sleep(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'"


def test_a_statement_that_failed_outside_of_a_transaction_runs_again(
    postgres: Place, files: Files
) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_sql", RANK, 'RunSQL("INSERT INTO later VALUES (1)", transactional=False)')
    with pytest.raises(RunError, match=r"step 1 is committed\. Correct it and run"):
        Runner("default", files.history()).migrate()
    postgres.ask("CREATE TABLE later (a integer)")
    assert len(Runner("default", files.history()).migrate()) == 1
    assert postgres.ask("SELECT a FROM later") == [(1,)]


def test_a_complete_step_of_a_half_done_file_may_not_change(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    later = 'RunSQL("INSERT INTO later VALUES (1)", transactional=False)'
    files.write("0002_mixed", RANK, later)
    with pytest.raises(RunError, match="step 1 is committed"):
        Runner("default", files.history()).migrate()
    files.write("0002_mixed", AGE, later, after=["0001_initial"])
    with pytest.raises(RunError, match=r"half applied \(1 of \d steps\), and its step 1, which is"):
        Runner("default", files.history()).migrate()


def test_an_invalid_index_of_an_interrupted_run_is_built_again(
    postgres: Place, files: Files
) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    postgres.ask("INSERT INTO author (name) VALUES ('same'), ('same') RETURNING id")
    files.write("0002_unique", UNIQUE)
    with pytest.raises(RunError):
        Runner("default", files.history()).migrate()
    postgres.ask("DELETE FROM author WHERE id = (SELECT max(id) FROM author) RETURNING id")
    assert len(Runner("default", files.history()).migrate()) == 1
    assert postgres.ask(
        "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indrelid = 'author'::regclass"
    ) == [(0,)]
    with pytest.raises(Exception, match="duplicate key"):
        postgres.ask("INSERT INTO author (name) VALUES ('same') RETURNING id")


def test_an_index_that_finds_no_room_is_removed_at_once(postgres: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    rows = "SELECT md5(n::text) FROM generate_series(1, 30000) n"
    postgres.ask(f"INSERT INTO author (name) {rows} RETURNING id")
    files.write("0002_index", 'AddIndex("author", Index(["name"]))')
    room = {"temp_file_limit": "64kB", "maintenance_work_mem": "1MB"}
    configure(database=postgres.address, server_settings={"search_path": postgres.schema, **room})
    with pytest.raises(RunError, match="failed: PostgreSQL refused the statement: temporary file"):
        Runner("default", files.history()).migrate()
    assert postgres.ask(INDEXES) == [("author_pkey",)]
    postgres.configure()
    assert len(Runner("default", files.history()).migrate()) == 1


def test_a_file_that_failed_half_way_can_be_rolled_back(postgres: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    postgres.ask("INSERT INTO author (name) VALUES ('same'), ('same') RETURNING id")
    files.write("0002_unique", RANK, 'AddIndex("author", Index(["name"]))', UNKNOWN, UNIQUE)
    with pytest.raises(RunError, match="steps 1 to"):
        Runner("default", files.history()).migrate()
    back = Runner("default", files.history()).rollback(allow_destructive=True)
    assert [run.name for run in back] == ["0002_unique"]
    assert postgres.ask("SELECT * FROM author WHERE id = 1") == [(1, "same")]
    assert postgres.ask(INDEXES) == [("author_pkey",)]
    files.write("0002_rank", RANK, after=["0001_initial"])
    (files.folder / "0002_unique.py").unlink()
    assert len(Runner("default", files.history()).migrate()) == 1


UNKNOWN = 'RunSQL("SELECT 1", "")'  # which might change the rows: the guard stays behind it
UNIQUE = 'AlterField("author", "name", fields.CharField(max_length=40, unique=True))'
INDEXES = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'author'::regclass"


# -- foreign keys of SQLite -----------------------------------------------------------------------

REQUIRED = 'AlterField("author", "name", fields.CharField(max_length=40, null=True, unique=True))'


def test_rows_that_lose_their_target_in_a_rebuild_stop_the_file(files: Files) -> None:
    close_all()
    configure("sqlite", ":memory:")
    files.write("0001_initial", AUTHOR, BOOK)
    files.write(
        "0002_rows",
        "RunSQL(\"INSERT INTO author (id, name) VALUES (1, 'a')\")",
        "RunSQL(\"INSERT INTO book (author_id, title) VALUES (1, 'b')\")",
    )
    files.write("0003_lost", REQUIRED, 'RunSQL("DELETE FROM author")')
    with pytest.raises(RunError, match=r"'0003_lost'"):
        Runner("default", files.history()).migrate()
    assert len(raw("SELECT id FROM author")) == 1
    assert Runner("default", files.history()).pending() == ["0003_lost"]
    with pytest.raises(IntegrityError):  # foreign keys are enforced again
        raw("INSERT INTO book (author_id, title) VALUES (99, 'c')")
    close_all()
