"""One history for several databases: each operation runs where its model lives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from databases_support import (
    AGE,
    EVENT,
    KIND,
    Places,
    apply as apply,
    configure_place,
    places as places,
    recorded,
    tables,
    two_files,
)
from run_support import AUTHOR, Files, files as files, make_place as make_place

from treefold_migrations import (
    CreateTable,
    DataLossRefused,
    HistoryError,
    RunError,
    RunPython,
    RunSQL,
    StateError,
    drift,
    load_folder,
    makemigrations,
    migrate,
    resolve,
    rollback,
)
from treefold_orm import ConfigurationError, Model, configure, fields
from treefold_orm._fields.registry import Registry
from treefold_orm._runtime.connections import _databases

NO_FIELDS: dict[str, Any] = {}


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
    state = load_folder(folder).compute_state_after()
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
    [(CreateTable, ("a", NO_FIELDS)), (RunSQL, ("SELECT 1",)), (RunPython, (RunPython.noop,))],
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


def test_a_database_of_no_operation_has_the_tables_of_default(
    files: Files, places: Places, apply: Any, make_place: Any
) -> None:
    """As `create_all` does it for a copy or a database of tests."""
    two_files(files)
    copy = make_place(places["default"].engine)
    configure_place(copy, "copy")
    lines: list[str] = []
    apply(files.folder, database="copy", say=lines.append)
    assert lines == ["0001_initial: 1 step", "  1/1 create table author", "0002_size: 0 steps"]
    assert tables({**places, "copy": copy}) == [set(), set(), {"author"}]
    assert drift(files.folder, database="copy") == []
    rollback(files.folder, "zero", database="copy", allow_destructive=True)
    assert tables({"copy": copy}) == [set()]


def test_python_on_a_copy_reads_its_own_rows_and_those_of_other_databases(
    files: Files, places: Places, make_place: Any
) -> None:
    above = """
        def fill(models, work):
            assert models.author.objects.db == work.database
            assert models.event.objects.db == "analytics"
            models.author.objects.create(name=work.database)
    """
    two_files(files)
    files.write("0003_fill", "RunPython(fill, RunPython.noop)", above=above)
    copy = make_place(places["default"].engine)
    configure_place(copy, "copy")
    migrate(files.folder)
    migrate(files.folder, database="copy")
    names = [place.ask("SELECT name FROM author") for place in (places["default"], copy)]
    assert names == [[("default",)], [("copy",)]]


def test_a_database_without_a_part_is_refused(files: Files, places: Places) -> None:
    """Nothing lives on it, and nothing on `default` whose tables it could have."""
    files.write("0001_initial", EVENT)
    configure("sqlite", ":memory:", alias="copy")
    wanted = "No operation of the migrations lives on the database 'copy'; they live on analytics"
    for call in (migrate, rollback, drift):
        with pytest.raises(HistoryError, match=wanted):
            call(files.folder, database="copy")


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


def test_two_aliases_of_one_database_are_refused(files: Files, places: Places) -> None:
    """They would have one record, by which the second has nothing to run."""
    two_files(files)
    place = places["analytics"]
    if place.engine == "sqlite":
        configure("sqlite", place.address)
    else:
        configure(database=place.address, server_settings={"search_path": place.schema})
    with pytest.raises(ConfigurationError, match="'default' and 'analytics' have the same address"):
        migrate(files.folder)
    assert tables(places) == [set(), set()]


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
    wanted = r"was changed after it was applied.*`migrate 0002_fill --fake --database default`"
    with pytest.raises(HistoryError, match=wanted):
        migrate(files.folder)


def test_a_half_rolled_back_file_of_one_database_is_resolved_there(
    files: Files, places: Places
) -> None:
    back = 'RunSQL("SELECT 1", "DELETE FROM gone", transactional=False, database="analytics")'
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_more", AGE, back, KIND)
    migrate(files.folder)
    with pytest.raises(RunError, match="`migrate --resolve 0002_more skip`"):
        rollback(files.folder)
    assert recorded(places)[1] == ["0001_initial", "0002_more"]
    done = resolve(files.folder, "0002", "skip")
    assert [run.database for run in done] == ["analytics"]
    assert recorded(places)[1] == ["0001_initial"]
    rollback(files.folder)
    assert recorded(places) == [["0001_initial"]] * 2
    assert drift(files.folder) == []


def test_a_file_that_failed_on_one_database_can_be_corrected(files: Files, places: Places) -> None:
    """The others have nothing of it but a record, which follows."""
    files.write("0001_initial", AUTHOR, EVENT)
    files.write("0002_wrong", 'RunSQL("INSERT INTO nothing", database="analytics")')
    with pytest.raises(RunError, match="nothing of this file was applied"):
        migrate(files.folder)
    files.write("0003_age", AGE, after=["0002_wrong"])
    migrate(files.folder, database="default")
    assert recorded(places) == [["0001_initial", "0002_wrong", "0003_age"], ["0001_initial"]]
    files.write("0002_wrong", KIND, after=["0001_initial"])
    migrate(files.folder)
    assert recorded(places) == [["0001_initial", "0002_wrong", "0003_age"]] * 2
    hashes = [place.ask("SELECT hash FROM treefold_migrations") for place in places.values()]
    assert hashes[0] == hashes[1]
    assert drift(files.folder) == []
    files.write("0003_age", AGE, KIND.replace("size", "other"), after=["0002_wrong"])
    with pytest.raises(HistoryError, match="0003_age' was changed after it was applied"):
        migrate(files.folder)
