"""Commands on several databases: the way back, plans, phases, lists, and the application."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from databases_support import (
    EVENT,
    KIND,
    Places,
    apply as apply,
    places as places,
    recorded,
    tables,
    two_files,
)
from run_support import AUTHOR, Files, files as files, make_place as make_place

from treefold_migrations import (
    RunError,
    Runner,
    drift,
    lint,
    migrate,
    rollback,
    sqlmigrate,
    squash,
)
from treefold_migrations._commands import command_line, command_line_checks
from treefold_migrations._extension.migrations import Migrations
from treefold_orm._runtime.connections import _databases

# -- the way back, plans and phases ---------------------------------------------------------------


def test_a_rollback_takes_the_last_file_back_on_each_database(files: Files, places: Places) -> None:
    two_files(files)
    migrate(files.folder)
    lines: list[str] = []
    rollback(files.folder, plan=True, say=lines.append)
    assert [line for line in lines if "without a lock" not in line] == [
        "analytics:",
        "0002_size: 1 step",
        "  1/1 drop column event.size",
        "default:",
        "0002_size: 0 steps",
    ]
    rollback(files.folder)
    assert recorded(places) == [["0001_initial"]] * 2
    migrate(files.folder, database="analytics")
    rollback(files.folder)  # the last file is there on one of them alone
    assert recorded(places) == [["0001_initial"]] * 2
    rollback(files.folder, "zero")
    assert tables(places) == [set(), set()]
    lines.clear()
    assert rollback(files.folder, say=lines.append) == []
    assert lines == ["Nothing to roll back"]


def test_a_rollback_that_cannot_be_is_refused_on_all_databases(
    files: Files, places: Places
) -> None:
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_more", KIND, 'RunSQL("SELECT 1")')
    migrate(files.folder)
    with pytest.raises(RunError, match="cannot be rolled back"):
        rollback(files.folder)
    assert recorded(places) == [["0001_initial", "0002_more"]] * 2
    rollback(files.folder, database="analytics")
    rollback(files.folder, allow_destructive=True)
    assert recorded(places) == [["0001_initial"]] * 2


def test_a_fill_goes_to_the_database_of_its_field(files: Files, places: Places) -> None:
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_drop", 'DropField("event", "kind")', 'DropField("author", "name")')
    migrate(files.folder)
    fills = ["event.kind:some", "author.name:one"]
    rollback(files.folder, fill=fills)
    assert recorded(places) == [["0001_initial"]] * 2
    migrate(files.folder)
    with pytest.raises(Exception, match=r"--fill event\.other does not fit"):
        rollback(files.folder, fill=["event.other:x"])
    assert recorded(places) == [["0001_initial", "0002_drop"]] * 2


def test_records_are_written_and_removed_on_each_database(files: Files, places: Places) -> None:
    two_files(files)
    lines: list[str] = []
    migrate(files.folder, fake=True, say=lines.append)
    assert tables(places) == [set(), set()]
    assert recorded(places) == [["0001_initial", "0002_size"]] * 2
    assert lines[:3] == ["default:", "0001_initial: record written", "0002_size: record written"]
    rollback(files.folder, fake=True)
    assert recorded(places) == [["0001_initial"]] * 2
    assert [str(d) for d in drift(files.folder)] != []


def test_both_phases_go_through_each_database(files: Files, places: Places, apply: Any) -> None:
    files.write("0001_initial", AUTHOR, EVENT)
    apply(files.folder)
    added = 'AddField("{}", "rank", fields.IntegerField(default=0), fill=0)'
    files.write("0002_rank", added.format("author"), added.format("event"))
    lines: list[str] = []
    apply(files.folder, phase="expand", say=lines.append)
    assert lines[-1] == "Expanded; run `migrate` once the release before is gone"
    for alias, table in (("default", "author"), ("analytics", "event")):
        column = "name" if table == "author" else "kind"
        places[alias].ask(f"INSERT INTO {table} ({column}) VALUES ('old')")
        assert places[alias].ask(f"SELECT rank FROM {table}") == [(0,)]
        assert Runner(alias, files.history()).missing() == []
    assert apply(files.folder, phase="expand") == []
    assert drift(files.folder) == []
    apply(files.folder, database="analytics")
    assert recorded(places) == [["0001_initial"], ["0001_initial", "0002_rank"]]
    apply(files.folder, phase="contract")
    assert recorded(places) == [["0001_initial", "0002_rank"]] * 2
    assert drift(files.folder) == []


# -- commands -------------------------------------------------------------------------------------


def test_commands_show_each_database(
    files: Files, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    two_files(files)
    app_dir = str(files.folder.parent)

    def printed(command: Any, *args: Any, **options: Any) -> list[str]:
        command(*args, app_dir=app_dir, **options)
        return capsys.readouterr().out.splitlines()

    migrate(files.folder, "0001", database="analytics")
    assert printed(command_line.list_migrations) == [
        *("default:", "[ ] 0001_initial", "[ ] 0002_size"),
        *("analytics:", "[x] 0001_initial", "[ ] 0002_size"),
    ]
    one = printed(command_line.list_migrations, database="analytics")
    assert one == ["[x] 0001_initial", "[ ] 0002_size"]
    sql = printed(command_line.migrate, sql=True)
    assert [line for line in sql if line.startswith(("-- 0", "-- database"))] == [
        "-- database default",
        f"-- 0001_initial ({places['default'].engine})",
        f"-- 0002_size ({places['default'].engine})",
        "-- database analytics",
        f"-- 0002_size ({places['analytics'].engine})",
    ]
    assert printed(command_line.migrate)[0] == "default:"
    places["analytics"].ask("ALTER TABLE event ADD COLUMN extra integer")
    found = printed(command_line_checks.drift)
    assert found[0] == "analytics:"
    assert "extra" in found[1]
    assert printed(command_line_checks.drift, database="default") == []
    sql = printed(command_line.sqlmigrate, "0001")
    assert sum("CREATE TABLE" in line for line in sql) == 2
    sql = printed(command_line.sqlmigrate, "0001", database="analytics", dialect="postgres")
    assert [line for line in sql if "CREATE TABLE" in line] == ['CREATE TABLE "event" (']


def test_findings_are_those_of_the_database(files: Files) -> None:
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_drop", 'DropField("event", "kind")')
    assert lint(files.folder, database="default", metas=()) == []
    lines: list[str] = []
    found = lint(files.folder, metas=(), say=lines.append)
    assert [item.name for item, _ in found] == ["0002_drop"]
    assert (lines[0], lines[1].split(":")[0]) == ("analytics:", "0002_drop, drop-column")
    assert 'CREATE TABLE "event"' in sqlmigrate(
        files.folder, "0001", dialect="sqlite", database="analytics"
    )


def test_a_squash_keeps_the_databases(files: Files, places: Places) -> None:
    two_files(files)
    migrate(files.folder, database="analytics")
    path = squash("0002", files.folder)
    assert path.read_text().count('database="analytics"') == 2
    migrate(files.folder)
    assert tables(places) == [{"author"}, {"event"}]
    assert drift(files.folder) == []
    assert recorded(places)[0] == [path.stem]


def test_an_application_is_behind_on_each_database(files: Files, places: Places) -> None:
    two_files(files)
    extension = Migrations()
    app: Any = SimpleNamespace(root=files.folder.parent)
    extension.setup(app)
    assert [p.text for p in extension.pending() if "applied" in p.text] == [
        "not applied: 0001_initial, 0002_size",
        "not applied to analytics: 0001_initial, 0002_size",
    ]
    assert extension.apply() == [
        "applied 0001_initial",
        "applied 0002_size",
        "applied 0001_initial to analytics",
        "applied 0002_size to analytics",
    ]
    assert not [p for p in extension.pending() if "applied" in p.text]
    _databases.pop("analytics").close()
    assert [p.text for p in extension.pending() if "config" in p.text] == [
        "the database 'analytics' is not configured"
    ]
