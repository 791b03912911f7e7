"""A process of its own that migrates, for tests that kill it; run as a script.

`kills`: forks a child for each statement of a migration, which is killed right before it sends the
statement (or, with `flying`, right after), then migrates again in another child and compares what
the database holds with an undisturbed run. Prints one JSON object.

`migrate`: migrates once, and prints the names of the files that it applied.

`rollback`: takes the last file back.

`rounds`: forks runners that begin at once on an empty database, in several rounds.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

from run_place import Place, orm_postgres

from treefold_migrations._files.loading import load_folder
from treefold_migrations._run.runner import Runner
from treefold_orm import close_all

Kill = Callable[[], None]


def main() -> None:
    given = json.loads(sys.argv[2])
    place = Place(given["engine"], given["address"], given["schema"])
    folder = Path(given["folder"])
    if sys.argv[1] == "migrate":
        half, phase = given.get("half", "sync"), given.get("phase")
        print(json.dumps(migrate(place, folder, half=half, phase=phase)))
    elif sys.argv[1] == "rollback":
        place.configure()
        Runner("default", load_folder(folder)).rollback(allow_destructive=True)
    elif sys.argv[1] == "rounds":
        warm(place, folder)
        print(json.dumps([one_round(place, folder, given, n) for n in range(given["rounds"])]))
    elif sys.argv[1] == "exits":
        print(json.dumps(exits(place, folder, given)))
    else:
        print(json.dumps(kills(place, folder, given)))


def migrate(
    place: Place, folder: Path, *, half: str, pooler: str = "session", phase: Any = None
) -> list[str]:
    """Apply all files, or what one phase runs of them, in one half."""
    place.configure(**({} if pooler == "session" else {"pooler": pooler}))
    runner = Runner("default", load_folder(folder))
    if half == "sync":
        return [run.name for run in runner.migrate(phase=phase)]

    async def work() -> list[str]:
        from treefold_orm import aclose_all

        try:
            return [run.name for run in await runner.amigrate(phase=phase)]
        finally:
            await aclose_all()

    return asyncio.run(work())


def one_round(place: Place, folder: Path, given: dict[str, Any], number: int) -> dict[str, Any]:
    """Migrate an empty database from many processes at once."""
    reset(place)
    begin = time.time() + 0.1
    children = [
        spawn(functools.partial(at_once, place, folder, given, begin, (number + n) % 2))
        for n in range(given["runners"])
    ]
    ended = [(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), out) for child, out in children]
    records = place.ask("SELECT name FROM treefold_migrations ORDER BY place")
    return {
        "codes": [code for code, _ in ended],
        "applied": [json.loads(out.read() or "[]") for _, out in ended],
        "records": [name for (name,) in records],
    }


def at_once(place: Place, folder: Path, given: dict[str, Any], begin: float, odd: int) -> list[str]:
    time.sleep(max(begin - time.time(), 0))
    return migrate(place, folder, half="async" if odd else "sync", pooler=given["pooler"])


def spawn(work: Callable[[], list[str]]) -> tuple[int, TextIO]:
    """Run in a forked process; return its number, and what its result can be read from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        ended(lambda: os.write(writing, json.dumps(work()).encode()))
    os.close(writing)
    return child, os.fdopen(reading)


# -- kills ----------------------------------------------------------------------------------------


def kills(place: Place, folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Kill a run at each `every`-th statement, and compare what the next run leaves."""
    warm(place, folder)
    reset(place)
    count_file = folder.parent / "count"
    code = in_child(lambda: run_counted(place, folder, given, count_file=count_file))
    assert code == 0, code
    whole, expected = int(count_file.read_text()), dump(place)
    wrong: list[Any] = []
    killed = 0
    for number in range(given["first"], whole + 1, given["every"]):
        reset(place)
        first = in_child(lambda n=number: run_counted(place, folder, given, at=n))
        killed += first == -signal.SIGKILL
        second = in_child(lambda: migrate(place, folder, half=given["half"]))
        found = dump(place)
        if second != 0 or found != expected:
            wrong.append([number, first, second, difference(expected, found)])
    reset(place)
    return {"statements": whole, "killed": killed, "wrong": wrong, "expected": len(expected)}


def exits(place: Place, folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Kill a run of the second file at each `every`-th statement; complete it, and take it back."""
    given = {"half": "sync", "flying": place.engine == "postgres", **given}
    warm(place, folder)
    reset(place)
    assert in_child(lambda: command(place, folder, "0001")) == 0
    first, count_file = dump(place), folder.parent / "count"
    assert in_child(lambda: run_counted(place, folder, given, count_file=count_file)) == 0
    whole = dump(place)
    wrong: list[Any] = []
    half = 0
    for number in range(given["first"], int(count_file.read_text()) + 1, given["every"]):
        for back in (False, True):
            reset(place)
            in_child(lambda: command(place, folder, "0001"))
            in_child(lambda n=number: run_counted(place, folder, given, at=n))
            begun = place.ask("SELECT 1 FROM treefold_migrations_journal WHERE name <> '(lock)'")
            half += bool(begun)
            choice = "abandon" if back else "again"
            resolve = {"resolve": "0002", "allow_destructive": True} if begun else {}
            on = functools.partial(command, place, folder, choice, **resolve)
            ended = [in_child(on)] if begun else []
            if back and begun and unordered(dump(place)) != unordered(first):
                wrong.append([number, "back", difference(first, dump(place))])
            ended.append(in_child(lambda: command(place, folder, "")))
            if any(ended) or unordered(dump(place)) != unordered(whole):
                wrong.append([number, choice, ended, difference(whole, dump(place))])
    return {"wrong": wrong, "half": half}


def unordered(lines: list[str]) -> list[str]:
    return [line for line in lines if "sqlite_sequence" not in line]


def command(place: Place, folder: Path, target: str, **options: Any) -> None:
    """Run `migrate` of the command line; an exit code other than 0 is an error."""
    from treefold_migrations._commands import command_line

    place.configure()
    code = command_line.migrate(target, app_dir=str(folder.parent), **options)
    assert code == 0, code


def warm(place: Place, folder: Path) -> None:
    """Import what the children need before they are made."""
    reset(place)
    for half in ("sync", "async"):
        migrate(place, folder, half=half)
    close_all()


def in_child(work: Callable[[], object]) -> int:
    """Run in a forked process; return its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        ended(work)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ended(work: Callable[[], object]) -> NoReturn:
    """Run, and end this process."""
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def run_counted(
    place: Place,
    folder: Path,
    given: dict[str, Any],
    *,
    at: int | None = None,
    count_file: Path | None = None,
) -> None:
    """Migrate, killing this process at statement `at`."""
    numbers = itertools.count(1)
    last = 0

    def is_last() -> bool:
        nonlocal last
        last = next(numbers)
        return last == at

    if place.engine == "sqlite":
        count_sqlite(is_last)
    else:
        count_postgres(is_last, flying=given["flying"])
    migrate(place, folder, half=given["half"])
    if count_file is not None:
        count_file.write_text(str(last))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def count_sqlite(is_last: Callable[[], bool]) -> None:
    connect = sqlite3.connect

    def counted_connect(*args: Any, **options: Any) -> sqlite3.Connection:
        made = connect(*args, **options)
        made.set_trace_callback(lambda _sql: die() if is_last() else None)
        return made

    sqlite3.connect = counted_connect


def count_postgres(is_last: Callable[[], bool], *, flying: bool) -> None:
    import asyncpg.connection  # pyright: ignore[reportMissingTypeStubs] - it has no type information

    kind: Any = asyncpg.connection.Connection
    for name in ("execute", "fetch"):
        setattr(kind, name, counted(getattr(kind, name), is_last, flying=flying))


def counted(method: Any, is_last: Callable[[], bool], *, flying: bool) -> Any:
    async def call(self: Any, *args: Any, **options: Any) -> Any:
        if not is_last():
            return await method(self, *args, **options)
        if flying:
            task = asyncio.ensure_future(method(self, *args, **options))
            await asyncio.wait([task], timeout=0.001)
        return die()

    return call


# -- what a database holds ------------------------------------------------------------------------


def reset(place: Place) -> None:
    """Make the database empty."""
    if place.engine == "sqlite":
        for suffix in ("", "-wal", "-shm"):
            Path(place.address + suffix).unlink(missing_ok=True)
        return
    orm_postgres.ask(
        place.address,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    orm_postgres.ask(place.address, f"DROP SCHEMA {place.schema} CASCADE")
    orm_postgres.ask(place.address, f"CREATE SCHEMA {place.schema}")


def dump(place: Place) -> list[str]:
    """Return schema, rows and sequences as lines."""
    lines: list[str] = []
    if place.engine == "sqlite":
        lines += [str(row) for row in place.ask("SELECT type, name, sql FROM sqlite_master")]
    else:
        lines += [str(row) for sql in CATALOG for row in place.ask(sql)]
    for table in sorted(place.tables()):
        columns = "name, hash" if table == "treefold_migrations" else "*"
        # a run that was killed while it gave its lock back leaves the row to the next that needs it
        chosen = " WHERE name <> '(lock)'" if table == "treefold_migrations_journal" else ""
        lines += [f"{table} {row}" for row in place.ask(f'SELECT {columns} FROM "{table}"{chosen}')]
    return sorted(lines)


CATALOG = (
    "SELECT table_name::text, column_name::text, data_type::text, is_nullable::text, "
    "column_default::text FROM information_schema.columns WHERE table_schema = current_schema()",
    "SELECT c.relname::text, pg_get_indexdef(i.indexrelid), i.indisvalid FROM pg_index i "
    "JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = current_schema()::regnamespace",
    "SELECT conname::text, pg_get_constraintdef(oid), convalidated FROM pg_constraint "
    "WHERE connamespace = current_schema()::regnamespace",
    "SELECT sequencename::text, last_value FROM pg_sequences WHERE schemaname = current_schema()",
)


def difference(expected: list[str], found: list[str]) -> list[str]:
    """Return some lines that differ."""
    missing = [f"- {line}" for line in expected if line not in found]
    return (missing + [f"+ {line}" for line in found if line not in expected])[:8]


if __name__ == "__main__":
    main()
