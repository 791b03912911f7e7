"""Compare every report with SQL written by hand, on both databases.

`python tools/chinook FOLDER [--only WORD]`, where FOLDER holds `chinook_sqlite.sql.gz` and
`chinook_postgres.sql.gz`. PostgreSQL is the server of `TREEFOLD_TEST_POSTGRES`, else the one on
127.0.0.1:5432; a database is made there and dropped. Exits with 1 if a report differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information

from chinook import (
    changes,
    loading,
    reports_sales,
    reports_shapes,
    reports_tables,
    reports_time,
    reports_windows,
)
from chinook.report import (
    Change,
    Report,
    comparable,
    for_postgres,
    for_sqlite,
    in_snake_case,
)
from treefold_orm import close_all, configure, transaction

REPORTS = [
    report
    for module in (reports_tables, reports_sales, reports_windows, reports_time, reports_shapes)
    for report in module.reports
]
Run = Callable[[str], list[Any]]


class SQLite:
    """The data in a file of its own."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._path = place / "chinook.sqlite3"
        loading.load_sqlite(folder, self._path)
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        columns = self.run(
            "SELECT name FROM sqlite_schema UNION SELECT c.name FROM sqlite_schema AS t,"
            " pragma_table_info(t.name) AS c"
        )
        self._names = [snake for (name,) in columns if "_" in (snake := in_snake_case(name))]

    def configure(self) -> None:
        """Make it the ORM's database."""
        configure("sqlite", str(self._path))

    def configure_empty(self, alias: str) -> None:
        """Make an empty database beside it another database of the ORM."""
        configure("sqlite", str(self._path.with_name("empty.sqlite3")), alias=alias)

    def run(self, sql: str) -> list[Any]:
        """Run a statement written for both databases."""
        names = getattr(self, "_names", ())
        return self._connection.execute(for_sqlite(sql, names)).fetchall()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class Postgres:
    """The data in a database that is made for it and dropped afterwards."""

    def __init__(self, folder: Path) -> None:
        self._server = os.environ.get(
            "TREEFOLD_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres"
        )
        self._database = f"chinook_{os.getpid()}"
        self._dsn = f"{self._server.rpartition('/')[0]}/{self._database}"
        self._loop = asyncio.new_event_loop()
        self._administer(f"CREATE DATABASE {self._database}")
        self._wait(loading.load_postgres(folder, self._dsn))
        self._connection = self._wait(self._connect(self._dsn))
        self.run(f"SET search_path = {loading.SCHEMA}")

    def configure(self) -> None:
        """Make it the ORM's database."""
        configure(database=self._dsn, server_settings={"search_path": loading.SCHEMA})

    def configure_empty(self, alias: str) -> None:
        """Make an empty schema beside it another database of the ORM."""
        self.run("CREATE SCHEMA empty")
        configure(database=self._dsn, alias=alias, server_settings={"search_path": "empty"})

    def run(self, sql: str) -> list[Any]:
        """Run a statement written for both databases."""
        return [tuple(row) for row in self._wait(self._connection.fetch(for_postgres(sql)))]

    def close(self) -> None:
        """Drop the database."""
        self._wait(self._connection.close())
        self._administer(f"DROP DATABASE {self._database} WITH (FORCE)")
        self._loop.close()

    def _administer(self, sql: str) -> None:
        async def work() -> None:
            connection = await self._connect(self._server)
            try:
                await connection.execute(sql)
            finally:
                await connection.close()

        self._wait(work())

    def _connect(self, dsn: str) -> Any:
        return cast("Any", asyncpg).connect(dsn)

    def _wait(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)


def opened(engine: str, folder: Path, place: Path) -> SQLite | Postgres:
    """Load the data into one of the databases."""
    return SQLite(folder, place) if engine == "sqlite" else Postgres(folder)


def compare_report(report: Report, models: Any, run: Run) -> None:
    """Raise `AssertionError` where the ORM and the SQL of a report give different rows."""
    wanted = comparable(run(report.sql), ordered=report.ordered)
    found = comparable(report.query(models), ordered=report.ordered)
    assert wanted, "the SQL written by hand gives no row"  # noqa: S101 - the purpose of the tool
    _same(found, wanted)


def compare_change(change: Change, models: Any, run: Run) -> None:
    """Raise `AssertionError` where a change by the ORM and by SQL leaves different rows."""
    before = comparable(run(change.look), ordered=False)
    with transaction(rollback=True):
        change.work(models)
        found = comparable(change.rows(models), ordered=False)
    run("BEGIN")
    try:
        for statement in change.sql:
            run(statement)
        wanted = comparable(run(change.look), ordered=False)
    finally:
        run("ROLLBACK")
    assert wanted != before, "the SQL written by hand changes nothing"  # noqa: S101 - as above
    _same(found, wanted)


def _same(found: list[Any], wanted: list[Any]) -> None:
    if found != wanted:
        lacking = [row for row in wanted if row not in found][:3]
        extra = [row for row in found if row not in wanted][:3]
        raise AssertionError(
            f"{len(found)} rows, not {len(wanted)}; lacking {lacking}, instead {extra}"
        )


def main() -> int:
    """Run what the arguments ask for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--traceback", action="store_true")
    arguments = parser.parse_args()
    failures = total = 0
    with tempfile.TemporaryDirectory() as place:
        for engine in ("sqlite", "postgres"):
            database = opened(engine, arguments.folder, Path(place))
            with contextlib.closing(database):
                database.configure()
                models = loading.models(engine)
                for item in [*REPORTS, *changes.changes]:
                    if arguments.only not in item.name:
                        continue
                    total += 1
                    compare: Any = compare_report if isinstance(item, Report) else compare_change
                    try:
                        compare(item, models, database.run)
                    except Exception as error:
                        failures += 1
                        print(f"{engine}: {item.name}: {type(error).__name__}: {error}")
                        if arguments.traceback:
                            traceback.print_exc()
                close_all()
    kinds = f"{len(REPORTS)} reports, {len(changes.changes)} changes, two databases"
    print(f"{total - failures} of {total} equal ({kinds})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
