"""One history for several databases: each operation runs where its model lives."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_support import (
    AUTHOR,
    Files,
    Place,
    files as files,
    make_place as make_place,
)

from treefold_migrations import (
    CreateTable,
    DataLossRefused,
    FileError,
    HistoryError,
    RunError,
    Runner,
    RunPython,
    RunSQL,
    StateError,
    amigrate,
    drift,
    lint,
    load_folder,
    makemigrations,
    migrate,
    resolve,
    rollback,
    sqlmigrate,
    squash,
)
from treefold_migrations._commands import command_line, command_line_checks
from treefold_migrations._extension.migrations import Migrations
from treefold_orm import ConfigurationError, Model, aclose_all, close_all, configure, fields
from treefold_orm._fields.registry import Registry
from treefold_orm._runtime.connections import _databases

EVENT = (
    'CreateTable("event", {"id": fields.BigAutoField(primary_key=True), '
    '"kind": fields.CharField(max_length=40)}, model="Event", database="analytics")'
)
KIND = 'AddField("event", "size", fields.IntegerField(null=True))'
AGE = 'AddField("author", "age", fields.IntegerField(null=True))'
ALIASES: tuple[str, ...] = ("default", "analytics")
Places = dict[str, Place]


@pytest.fixture(
    params=[("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "postgres")], ids="-".join
)
def places(request: pytest.FixtureRequest, make_place: Callable[[str], Place]) -> Iterator[Places]:
    """An empty database behind each alias."""
    _databases.clear()
    made = dict(zip(ALIASES, map(make_place, request.param), strict=True))
    for alias, place in made.items():
        if place.engine == "sqlite":
            configure("sqlite", place.address, alias=alias)
        else:
            settings = {"search_path": place.schema}
            configure(database=place.address, alias=alias, server_settings=settings)
    yield made
    close_all()
    _databases.clear()


@pytest.fixture(params=["sync", "async"])
def apply(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`migrate` in one half."""
    if request.param == "sync":
        return migrate

    async def in_a_loop(*args: Any, **options: Any) -> Any:
        try:
            return await amigrate(*args, **options)
        finally:
            await aclose_all()

    return lambda *args, **options: asyncio.run(in_a_loop(*args, **options))


def tables(places: Places) -> list[set[str]]:
    """The tables of each database, but for those of the records."""
    return [
        {t for t in place.tables() if not t.startswith("treefold_")} for place in places.values()
    ]


def recorded(places: Places) -> list[list[str]]:
    query = "SELECT name FROM treefold_migrations ORDER BY name"
    return [[name for (name,) in place.ask(query)] for place in places.values()]


def models(**homes: str) -> list[Any]:
    """Models by name, each on a database."""
    own = Registry()
    name = fields.CharField(max_length=20)
    return [model(own, title, home, name=name.copy())._meta for title, home in homes.items()]


def model(own: Registry, title: str, home: str = "default", **body: Any) -> Any:
    """A model of a registry that no other test sees."""
    options = {"Meta": type("Meta", (), {"database": home})}
    return type(title, (Model,), {"__module__": __name__, "_registry": own, **body, **options})


# -- writing files --------------------------------------------------------------------------------


def test_the_database_of_a_model_is_part_of_its_file(tmp_path: Path) -> None:
    folder, metas = tmp_path / "migrations", models(Author="default", Event="analytics")
    made = makemigrations(folder, metas=metas)
    assert made.source.count("database=") == 1
    assert 'model="Event",\n            database="analytics",' in made.source
    assert makemigrations(folder, metas=metas).operations == []
    state = load_folder(folder).state_at()
    assert [t.options.database for t in state.tables.values()] == ["default", "analytics"]


def test_another_database_of_a_model_is_refused_with_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    makemigrations(folder, metas=models(Event="default"))
    with pytest.raises(StateError) as caught:
        makemigrations(folder, metas=models(Event="analytics"))
    assert str(caught.value) == (
        "The model Event moves from the database 'default' to 'analytics', which no operation "
        "does: write a new model with another table for 'analytics', copy the rows with "
        "RunPython(copy, database='analytics') in a file of its own, and drop the old model after "
        "that"
    )
    with pytest.raises(DataLossRefused):  # and it is no rename that is asked for
        makemigrations(folder, metas=models(Events="analytics"))
    with pytest.raises(StateError, match="from the database 'default' to 'analytics'"):
        makemigrations(folder, metas=models(Events="analytics"), rename=["event:events"])


@pytest.mark.parametrize("kind", [fields.ForeignKey, fields.OneToOneField, fields.ManyToManyField])
def test_a_relation_between_databases_is_refused(tmp_path: Path, kind: Any) -> None:
    own = Registry()
    one = model(own, "Author")
    other = model(own, "Event", "analytics", link=kind(one, related_name="+"))
    wanted = (
        r"Event\.link cannot lead to Author: Event is of the database 'analytics', and Author of "
        r"'default'; keep the key in a plain field, or give both models the same Meta\.database"
    )
    for order in ([one, other], [other, one]):
        with pytest.raises(StateError, match=wanted):
            makemigrations(tmp_path / "migrations", metas=[model._meta for model in order])
    assert not (tmp_path / "migrations").exists()


def test_keys_that_form_a_circle_between_databases_are_refused(tmp_path: Path) -> None:
    own = Registry()
    to_right: Any = fields.ForeignKey("Right", related_name="+", null=True)
    one = model(own, "Left", to=to_right)
    to_left: Any = fields.ForeignKey(one, related_name="+", null=True)
    other = model(own, "Right", "analytics", to=to_left)
    with pytest.raises(StateError, match=r"Left\.to cannot lead to Right"):
        makemigrations(tmp_path / "migrations", metas=[one._meta, other._meta])


def test_a_key_between_databases_by_hand_is_refused(files: Files, places: Places) -> None:
    key = 'AddField("event", "author", fields.ForeignKey("author", null=True))'
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_key", key)
    with pytest.raises(StateError, match="points to the table 'author' of the database 'default'"):
        migrate(files.folder)
    assert tables(places) == [set(), set()]


@pytest.mark.parametrize("alias", ["", " ", None, 3, ["default"]])
@pytest.mark.parametrize(
    ("kind", "args"),
    [(CreateTable, ("a", {})), (RunSQL, ("SELECT 1",)), (RunPython, (RunPython.noop,))],
)
def test_an_alias_that_is_no_text_is_refused(kind: Any, args: Any, alias: Any) -> None:
    with pytest.raises(StateError, match="database must be the alias of a database, got"):
        kind(*args, database=alias)


def test_files_in_a_circle_are_refused(files: Files, places: Places) -> None:
    files.write("0001_initial", AUTHOR, after=["0002_event"])
    files.write("0002_event", EVENT, after=["0001_initial"])
    with pytest.raises(HistoryError, match="in a circle"):
        migrate(files.folder)


# -- migrate --------------------------------------------------------------------------------------


def two_files(files: Files) -> None:
    files.write("0001_initial", AUTHOR, EVENT, 'RunSQL("SELECT 1", "", database="analytics")')
    files.write("0002_size", KIND)


def test_each_operation_runs_where_its_model_lives(
    files: Files, places: Places, apply: Any
) -> None:
    two_files(files)
    lines: list[str] = []
    apply(files.folder, say=lines.append)
    assert lines == [
        "default:",
        "0001_initial: 1 step",
        "  1/1 create table author",
        "0002_size: 0 steps",
        "analytics:",
        "0001_initial: 2 steps",
        "  1/2 create table event",
        "  2/2 run SQL: SELECT 1",
        "0002_size: 1 step",
        "  1/1 add column event.size",
    ]
    assert tables(places) == [{"author"}, {"event"}]
    assert recorded(places) == [["0001_initial", "0002_size"]] * 2
    assert drift(files.folder) == []
    lines.clear()
    assert apply(files.folder, say=lines.append) == []
    assert lines == ["Nothing to apply"]


def test_one_database_is_migrated_alone(files: Files, places: Places, apply: Any) -> None:
    two_files(files)
    lines: list[str] = []
    apply(files.folder, database="analytics", say=lines.append)
    assert "analytics:" not in lines
    assert tables(places) == [set(), {"event"}]
    assert drift(files.folder, database="analytics") == []
    apply(files.folder, "0001", database="default")
    assert tables(places) == [{"author"}, {"event"}]
    assert len(apply(files.folder)) == 1  # the record of 0002


def test_a_database_of_no_operation_is_refused(files: Files, places: Places) -> None:
    two_files(files)
    configure("sqlite", ":memory:", alias="replica")
    wanted = "No operation of the migrations lives on the database 'replica'; they live on default"
    for call in (migrate, rollback, drift):
        with pytest.raises(HistoryError, match=wanted):
            call(files.folder, database="replica")


def test_a_history_that_names_no_database_runs_on_any(files: Files, places: Places) -> None:
    files.write("0001_initial", AUTHOR)
    migrate(files.folder, database="analytics")
    assert tables(places) == [set(), {"author"}]
    assert migrate(files.folder, plan=True)[0].database == "default"


def test_nothing_runs_if_one_database_is_not_configured(files: Files, places: Places) -> None:
    two_files(files)
    _databases.pop("analytics").close()
    with pytest.raises(ConfigurationError, match="'analytics' is not configured"):
        migrate(files.folder)
    assert tables(places)[0] == set()
    migrate(files.folder, database="default")
    assert tables(places)[0] == {"author"}


COPY = """
    def copy(models, work):
        def each(rows):
            models.event.objects.bulk_create([models.event(kind=row.name) for row in rows])

        work.batched(models.author.objects.order_by("id"), each, size=2)

    async def acopy(models, work):
        rows = [row async for row in models.author.objects.order_by("id")]
        await models.event.objects.abulk_create([models.event(kind=row.name) for row in rows])
"""


@pytest.mark.parametrize("function", ["copy", "acopy"])
def test_rows_are_copied_before_their_table_is_dropped(
    files: Files, places: Places, apply: Any, function: str
) -> None:
    """All files wait, and `default` comes first: it may not drop what `analytics` still copies."""
    rows = "INSERT INTO author (name) VALUES ('a'), ('b'), ('c')"
    files.write("0001_initial", AUTHOR, f'RunSQL("{rows}", "")')
    files.write("0002_event", EVENT)
    files.write(
        "0003_copy",
        f'RunPython({function}, RunPython.noop, database="analytics", tables=["event"])',
        above=COPY,
    )
    files.write("0004_drop", 'DropTable("author")')
    (files.folder / "0004_drop.py").write_text(
        (files.folder / "0004_drop.py").read_text().replace("AddField,", "AddField, DropTable,")
    )
    apply(files.folder)
    assert tables(places) == [set(), {"event"}]
    assert places["analytics"].ask("SELECT kind FROM event ORDER BY id") == [("a",), ("b",), ("c",)]
    assert recorded(places)[0] == recorded(places)[1]
    lines: list[str] = []
    rollback(files.folder, "0001", say=lines.append, allow_destructive=True)
    assert tables(places) == [{"author"}, set()]
    assert lines[0] == "analytics:"
    assert recorded(places) == [["0001_initial"]] * 2


def test_python_of_one_database_has_its_own_models(files: Files, places: Places) -> None:
    above = """
        def fill(models, work):
            models.event.objects.create(kind=",".join(models))
            assert models.event.objects.db == "analytics"
            assert models.author.objects.db == "default"
    """
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_fill", 'RunPython(fill, database="analytics")', above=above)
    migrate(files.folder)
    assert places["analytics"].ask("SELECT kind FROM event") == [("event,author",)]


# -- a run that ends in the middle ----------------------------------------------------------------

KILLED = """
import os, sys
from treefold_migrations import migrate
from treefold_orm import configure

for alias, address, schema in zip(*[iter(sys.argv[3:])] * 3):
    if schema:
        configure(database=address, alias=alias, server_settings={"search_path": schema})
    else:
        configure("sqlite", address, alias=alias)

def say(line):
    if line == sys.argv[2]:
        os._exit(9)

migrate(sys.argv[1], say=say)
"""


@pytest.mark.parametrize("line", ["analytics:", "  1/2 create table event", "0002_size: 1 step"])
def test_the_next_run_completes_one_that_was_killed_between_databases(
    files: Files, places: Places, line: str
) -> None:
    two_files(files)
    given = [part for a, p in places.items() for part in (a, p.address, p.schema)]
    command = [sys.executable, "-c", KILLED, str(files.folder), line, *given]
    assert subprocess.run(command, check=False).returncode == 9
    assert "author" in tables(places)[0]
    migrate(files.folder, wait=20)
    assert tables(places) == [{"author"}, {"event"}]
    assert recorded(places) == [["0001_initial", "0002_size"]] * 2
    assert drift(files.folder) == []


def test_a_half_done_file_of_one_database_is_resolved_there(files: Files, places: Places) -> None:
    above = """
        def wrong(models, work):
            raise ValueError("no")
    """
    files.write("0001_initial", AUTHOR, EVENT)
    bad = 'RunPython(wrong, transactional=False, database="analytics")'
    files.write("0002_fill", AGE, KIND, bad, above=above)
    with pytest.raises(RunError, match="step 1 is committed"):
        migrate(files.folder)
    assert recorded(places)[0] == ["0001_initial", "0002_fill"]
    done = resolve(files.folder, "0002", "abandon", allow_destructive=True)
    assert [run.database for run in done] == ["analytics"]
    files.write("0002_fill", AGE, KIND, after=["0001_initial"])
    with pytest.raises(HistoryError, match="was changed after it was applied"):
        migrate(files.folder)


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
    assert "default:" in printed(command_line.lint, every=True)


def test_findings_are_those_of_the_database(files: Files) -> None:
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_drop", 'DropField("event", "kind")')
    assert lint(files.folder, database="default", metas=()) == []
    assert [item.name for item, _ in lint(files.folder, metas=())] == ["0002_drop"]
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
    extension, app = Migrations(), SimpleNamespace(root=files.folder.parent)
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


def test_a_file_of_a_missing_folder_is_refused_as_before(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="There is no folder"):
        migrate(tmp_path / "elsewhere")
