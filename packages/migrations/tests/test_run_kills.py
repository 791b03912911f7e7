"""R-01: a run that is killed at any statement leaves something that the next run completes."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_support import (
    AUTHOR,
    BOOK,
    LONG,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)
from test_half_done import AGE, records, run

CHILD = Path(__file__).parent / "run_child.py"
BATCHES = """
    def rows(models, work):
        models.author.objects.bulk_create([models.author(id=n, name=f"a{n}") for n in range(1, 8)])

    async def books(models, work):
        for author in await models.author.objects.order_by("id"):
            await models.book.objects.acreate(id=author.id, author=author, title=author.name)

    def shout(models, work):
        def each(authors):
            for author in authors:
                author.name = author.name.upper() + "!"
                author.save()

        work.batched(models.author.objects.all(), each, size=2)

    def nothing(models, work):
        pass
"""


def long_history(files: Files) -> None:
    """Tables, rows, a column that becomes required, indexes, batches: all that the runner knows."""
    files.write("0001_initial", AUTHOR, BOOK)
    files.write("0002_rows", "RunPython(rows)", "RunPython(books)", above=BATCHES)
    files.write(
        "0003_mixed",
        'AddField("author", "rank", fields.IntegerField(null=True))',
        "RunPython(shout, transactional=False)",
        'AddIndex("author", Index(["name"]))',
        'AddIndex("book", Index(["title", "author"]))',
        'AlterField("author", "name", fields.CharField(max_length=60, null=True, unique=True))',
        above=BATCHES,
    )
    files.write(
        "0004_contract",
        'DropField("author", "rank")',
        "RunSQL(\"UPDATE book SET title = title || '.'\")",
    )


ALL = [
    ("sqlite", "async", False),
    ("postgres", "sync", True),
    ("sqlite", "sync", False),
    ("postgres", "async", True),
    ("postgres", "sync", False),
]


@pytest.mark.parametrize(("engine", "half", "flying"), ALL if LONG else ALL[:2])
def test_r01_a_killed_run_is_completed_by_the_next(
    engine: str,
    half: str,
    flying: bool,
    make_place: Callable[[str], Place],
    files: Files,
) -> None:
    long_history(files)
    place = make_place(engine)
    # the short form takes some statements of two cases, the long one every statement of all cases
    options = {"first": 1, "every": 1} if LONG else {"first": 4, "every": 13}
    given = {**vars(place), "folder": str(files.folder), "half": half, "flying": flying, **options}
    found = run_child("kills", given)
    assert found["wrong"] == []
    assert found["statements"] >= 40
    assert found["killed"] >= found["statements"] // options["every"] - 1


def run_child(command: str, given: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, CHILD, command, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


# -- SQL outside of a transaction -----------------------------------------------------------------

PACE = (
    'CreateTable("pace", {"id": fields.BigAutoField(primary_key=True), '
    '"turns": fields.BigIntegerField()}, model="Pace")'
)
SLOW = {
    "sqlite": "INSERT INTO author (name) SELECT 'a' FROM (WITH RECURSIVE c (n) AS (SELECT 1 UNION "
    "ALL SELECT n + 1 FROM c WHERE n < (SELECT turns FROM pace)) SELECT max(n) AS n FROM c)",
    "postgres": "INSERT INTO author (name) SELECT 'a' FROM pace, pg_sleep(turns)",
}
"""One row; the table `pace` says how long the statement takes."""
LONG_PACE = {"sqlite": 10**10, "postgres": 600}
BEHIND = 'RunSQL("UPDATE author SET age = 1", "")'


def runs_slow_statement(place: Place) -> bool:
    """Return True while a run is in the middle of its slow statement."""
    if place.engine == "postgres":
        return bool(place.ask(f"SELECT 1 {SLEEPING}"))
    row = place.ask("SELECT state FROM treefold_migrations_journal WHERE name = '0002_sql'")
    if not row or not json.loads(row[0][0]).get("started"):
        return False
    connection = sqlite3.connect(place.address, timeout=0)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:  # the statement has the lock of writers
        return True
    finally:
        connection.close()
    return False


SLEEPING = (
    "FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' "
    "AND query LIKE 'INSERT INTO author%pg_sleep%'"
)


def kill_in_statement(place: Place, files: Files, command: str) -> None:
    """Kill a run in the middle of its slow statement, which takes no time from then on."""
    place.ask(f"INSERT INTO pace (turns) VALUES ({LONG_PACE[place.engine]}) RETURNING id")
    given = {**vars(place), "folder": str(files.folder)}
    child = subprocess.Popen([sys.executable, CHILD, command, json.dumps(given)])
    deadline = time.monotonic() + 30
    while not runs_slow_statement(place):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.kill()
    assert child.wait(10) == -signal.SIGKILL
    if place.engine == "postgres":  # a server learns only later that its client is gone
        place.ask(f"SELECT pg_terminate_backend(pid) {SLEEPING}")
    place.ask("UPDATE pace SET turns = 0 RETURNING id")


def require_agreement(
    place: Place, files: Files, applied: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Require that the records, `showmigrations`, `drift` and `migrate` see the same files."""
    assert records(place) == applied
    assert place.ask("SELECT name FROM treefold_migrations_journal WHERE name <> '(lock)'") == []
    capsys.readouterr()
    assert run(files, "list_migrations") == 0
    marks = [f"[{'x' if n in applied else ' '}] {n}" for n in ("0001_initial", "0002_sql")]
    assert capsys.readouterr().out.splitlines() == marks
    assert run(files, "drift") == 0
    assert capsys.readouterr().out == ""
    assert run(files, "migrate", plan=True) == 0
    planned = capsys.readouterr().out
    assert ("0002_sql" in planned, "Nothing to apply" in planned) == (
        "0002_sql" not in applied,
        "0002_sql" in applied,
    )


@pytest.mark.parametrize("choice", ["again", "skip", "abandon"])
@pytest.mark.parametrize("others", [False, True], ids=["alone", "between others"])
def test_r01_sql_that_was_killed_outside_of_a_transaction_is_resolved(
    place: Place, files: Files, choice: str, others: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", AUTHOR, PACE)
    assert run(files, "migrate") == 0
    slow = f'RunSQL({SLOW!r}, "DELETE FROM author", transactional=False)'
    files.write("0002_sql", *([AGE, slow, BEHIND] if others else [slow]))
    kill_in_statement(place, files, "migrate")

    capsys.readouterr()
    for _ in range(2):  # a run that stops changes nothing
        assert run(files, "migrate") == 1
        said = capsys.readouterr().err
        assert "whether it took effect is not known" in said
        assert "`migrate --resolve 0002_sql again`" in said
        assert "`migrate --resolve 0002_sql skip`" in said
    assert run(files, "list_migrations") == 0
    steps = "1 of 3" if others else "0 of 1"
    assert f"[~] 0002_sql: half applied ({steps} steps)" in capsys.readouterr().out
    assert run(files, "drift") == 1
    assert f"0002_sql is half applied ({steps} steps)" in capsys.readouterr().out
    assert place.ask("SELECT name FROM author") == []

    if choice == "skip":
        place.ask("INSERT INTO author (name) VALUES ('a') RETURNING id")
    if choice == "abandon":
        assert run(files, "migrate", choice, resolve="0002_sql") == 1
        accept = "`migrate --resolve 0002_sql abandon --allow-destructive`"
        assert accept in capsys.readouterr().err
        assert run(files, "migrate", choice, resolve="0002_sql", allow_destructive=True) == 0
        require_agreement(place, files, ["0001_initial"], capsys)
        assert run(files, "migrate") == 0
    else:
        assert run(files, "migrate", choice, resolve="0002_sql") == 0
    require_agreement(place, files, ["0001_initial", "0002_sql"], capsys)
    assert run(files, "migrate") == 0
    row = ("a", 1) if others else ("a",)
    assert place.ask(f"SELECT name{', age' if others else ''} FROM author") == [row]


@pytest.mark.parametrize("choice", ["again", "skip"])
def test_r01_sql_that_was_killed_on_the_way_back_is_resolved(
    place: Place, files: Files, choice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", AUTHOR, PACE)
    files.write("0002_sql", AGE, f'RunSQL("SELECT 1", {SLOW!r}, transactional=False)')
    assert run(files, "migrate") == 0
    kill_in_statement(place, files, "rollback")

    capsys.readouterr()
    for command in ("migrate", "rollback"):
        assert run(files, command) == 1
        said = capsys.readouterr().err
        assert "`migrate --resolve 0002_sql again`" in said
        assert "`migrate --resolve 0002_sql skip`" in said
        assert "abandon" not in said
    assert run(files, "migrate", "abandon", resolve="0002_sql") == 1
    assert "`migrate --resolve 0002_sql again`" in capsys.readouterr().err
    assert run(files, "list_migrations") == 0
    assert "[~] 0002_sql: half rolled back (0 of 2 steps)" in capsys.readouterr().out
    assert run(files, "drift") == 1

    assert run(files, "migrate", choice, resolve="0002_sql") == 0
    require_agreement(place, files, ["0001_initial"], capsys)
    assert place.ask("SELECT name FROM author") == ([("a",)] if choice == "again" else [])
    assert run(files, "migrate") == 0
    require_agreement(place, files, ["0001_initial", "0002_sql"], capsys)
