"""Expanded files: what the commands say of them, how they go on, and how they are taken back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from run_support import (
    AUTHOR,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)
from test_run_lock import holding, start

from treefold_migrations import Ambiguous, DataLossRefused, HistoryError, RunError, drift
from treefold_migrations._commands.running import migrate, rollback
from treefold_migrations._run.events import Event
from treefold_migrations._run.runner import Runner
from treefold_migrations._schedule.half_done import describe_progress

BOOK = (
    'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
    '"title": fields.CharField(max_length=40), "pages": fields.IntegerField(db_default=1), '
    '"year": fields.IntegerField(null=True)}, model="Book")'
)
SLUG = 'AddField("book", "slug", fields.CharField(max_length=20, default="-"), fill="-")'
ISBN = 'AddField("book", "isbn", fields.CharField(max_length=20, null=True))'
PAGES = 'AlterField("book", "pages", fields.IntegerField(default=2))'
YEAR = 'DropField("book", "year")'
LONG_TITLE = 'AlterField("book", "title", fields.CharField(max_length=80))'
INSERT = "INSERT INTO book (title) VALUES ('{}') RETURNING id"


def runner(files: Files, **options: Any) -> Runner:
    return Runner("default", files.history(), **options)


def base(files: Files) -> None:
    """Write the first file, apply it, and insert a row."""
    files.write("0001_base", BOOK)
    runner(files).migrate()


def names(runs: list[Any]) -> list[str]:
    return [run.name for run in runs]


def stands(files: Files) -> dict[str, str]:
    return {name: describe_progress(e) for name, e in runner(files).applied().progress.items()}


LUCK = 'AddField("book", "luck", fields.FloatField(db_default=Random()))'
RANDOM = "from treefold_orm import Random"


# -- locks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["postgres"])
def test_no_default_writes_every_row_again_in_expand(place: Place, files: Files) -> None:
    base(files)
    place.ask("INSERT INTO book (title) VALUES ('a'), ('b') RETURNING id")
    files.write("0002_luck", LUCK, above=RANDOM)
    node = "SELECT pg_relation_filenode('book')"
    before = place.ask(node)
    runner(files).migrate(phase="expand")
    assert place.ask(node) == before
    place.ask(INSERT.format("c"))
    assert place.ask("SELECT count(DISTINCT luck) FROM book") == [(3,)]
    runner(files).migrate(phase="contract")
    assert place.ask(node) == before
    assert drift(files.folder) == []


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_default_that_writes_every_row_is_refused_inside_of_separate(
    place: Place, files: Files
) -> None:
    base(files)
    both = f"SeparateStateAndDatabase(database=[{LUCK}], state=[{LUCK}])"
    files.write("0002_luck", both, above=RANDOM)
    with pytest.raises(RunError, match=r"cannot run in expand: .*every row is written again"):
        runner(files).migrate(phase="expand")
    runner(files).migrate()
    assert drift(files.folder) == []


# -- what the commands say ------------------------------------------------------------------------


def test_expand_says_what_it_did_and_then_nothing(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_slug", SLUG)
    lines: list[str] = []
    migrate(files.folder, phase="expand", say=lines.append)
    assert lines == [
        "0002_slug (expand): 1 step",
        "  1/1 add column book.slug",
        "Expanded; run `migrate` once the release before is gone",
    ]
    lines.clear()
    migrate(files.folder, phase="expand", say=lines.append)
    assert lines == ["Nothing to expand"]
    migrate(files.folder, say=lines.append)
    assert lines[1] == "0002_slug (contract): 1 step"


def test_each_release_finds_its_files_between_the_phases(place: Place, files: Files) -> None:
    base(files)
    old = files.history()
    files.write("0002_slug", SLUG, YEAR)
    files.write("0003_isbn", ISBN)
    assert runner(files).missing() == ["0002_slug", "0003_isbn"]
    runner(files).migrate(phase="expand")
    assert runner(files).missing() == []
    assert runner(files).pending() == ["0002_slug", "0003_isbn"]
    assert Runner("default", old).missing() == []
    assert Runner("default", old).migrate() == []
    with pytest.raises(HistoryError, match="'0002_slug' is expanded and its file is missing"):
        Runner("default", old).rollback()
    assert drift(files.folder) == []
    assert stands(files) == {"0002_slug": "expanded", "0003_isbn": "expanded"}


# -- what runs ------------------------------------------------------------------------------------


def test_contract_of_one_file_keeps_the_columns_of_later_ones(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_pages", PAGES)
    files.write("0003_isbn", ISBN, LONG_TITLE)
    runner(files).migrate(phase="expand")
    place.ask("INSERT INTO book (title, isbn) VALUES ('a', 'x') RETURNING id")
    assert names(runner(files).migrate("0002")) == ["0002_pages"]
    assert place.ask("SELECT title, pages, isbn FROM book") == [("a", 1, "x")]
    assert stands(files) == {"0003_isbn": "expanded"}
    assert drift(files.folder) == []
    files.write("0004_year", YEAR)
    assert names(runner(files).migrate(phase="expand")) == ["0004_year"]
    back = runner(files).rollback(steps=2, allow_destructive=True)
    assert names(back) == ["0004_year", "0003_isbn"]
    assert place.ask("SELECT * FROM book") == [(1, "a", 1, None)]
    assert drift(files.folder) == []
    assert names(runner(files).migrate()) == ["0003_isbn", "0004_year"]
    assert drift(files.folder) == []


def test_data_of_contract_makes_later_data_wait(place: Place, files: Files) -> None:
    base(files)
    files.write(
        "0002_data",
        ISBN,
        "RunSQL(\"UPDATE book SET isbn = 'early'\")",
        "RunSQL(\"UPDATE book SET isbn = 'late'\", when='contract', tables=['book'])",
        "RunSQL(\"UPDATE book SET isbn = isbn || '!'\", tables=['book'])",
        'RunSQL("UPDATE author SET name = 1", tables=["author"])',
        SLUG,
    )
    files.write("0003_author", AUTHOR)
    place.ask(INSERT.format("a"))
    with pytest.raises(RunError, match="UPDATE author"):  # which runs in expand
        runner(files).migrate(phase="expand")
    files.write(
        "0002_data",
        ISBN,
        "RunSQL(\"UPDATE book SET isbn = 'early'\")",
        "RunSQL(\"UPDATE book SET isbn = 'late'\", when='contract', tables=['book'])",
        "RunSQL(\"UPDATE book SET isbn = isbn || '!'\", tables=['book'])",
        SLUG,
        after=["0001_base"],
    )
    assert names(runner(files).migrate(phase="expand")) == ["0002_data", "0003_author"]
    assert place.ask("SELECT isbn, slug FROM book") == [("early", "-")]
    runner(files).migrate()
    assert place.ask("SELECT isbn, slug FROM book") == [("late!", "-")]


def test_a_second_change_of_a_field_that_waits_is_refused(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_slug", SLUG)
    files.write("0003_longer", 'AlterField("book", "slug", fields.CharField(max_length=30))')
    with pytest.raises(RunError, match=r"'0003_longer' cannot run in expand: .*apply the earlier"):
        runner(files).migrate(phase="expand")
    assert names(runner(files).migrate("0002", phase="expand")) == ["0002_slug"]
    runner(files).migrate("0002")
    assert names(runner(files).migrate(phase="expand")) == ["0003_longer"]


def test_a_whole_history_expands_on_an_empty_database(place: Place, files: Files) -> None:
    files.write("0001_base", BOOK)
    files.write("0002_more", SLUG, 'RenameField("book", "title", "name")', YEAR)
    files.write("0003_table", 'RenameTable("book", "volume")')
    runner(files).migrate(phase="expand")
    assert "volume" in place.tables()
    assert runner(files).missing() == []
    assert drift(files.folder) == []
    runner(files).migrate()
    assert runner(files).pending() == []


def test_runs_of_two_phases_exclude_each_other(place: Place, files: Files) -> None:
    said: list[Event] = []
    files.write("0001_base", BOOK)
    runner(files).migrate()
    files.write("0002_slug", SLUG)
    runner(files).migrate(phase="expand")
    with holding(place, files, "0003_isbn", ISBN) as child:

        def listen(event: Event) -> None:
            said.append(event)
            Path(str(files.folder.parent / "inside") + ".go").touch()

        assert runner(files, listener=listen).migrate(phase="expand") == []
        assert child.wait(30) == 0
    assert [event.kind for event in said] == ["wait"]
    assert stands(files) == {}


# -- halfway --------------------------------------------------------------------------------------


FAILS = 'RunSQL("INSERT INTO later VALUES (1)", transactional=False)'


def test_an_expand_that_fails_halfway_has_ways_out(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_slug", SLUG, FAILS, YEAR)
    files.write("0003_isbn", ISBN)
    with pytest.raises(RunError, match="step 1 is committed"):
        runner(files).migrate(phase="expand")
    assert stands(files) == {"0002_slug": "half expanded (1 of 2 steps)"}
    assert drift(files.folder) == []
    runner(files).resolve("0002", "abandon")
    assert stands(files) == {}
    assert drift(files.folder) == []
    with pytest.raises(RunError, match="step 1 is committed"):
        runner(files).migrate(phase="expand")
    place.ask("CREATE TABLE later (a integer)")
    assert names(runner(files).migrate()) == ["0002_slug", "0002_slug", "0003_isbn"]
    assert place.ask("SELECT * FROM book") == []
    place.ask("DROP TABLE later")
    assert drift(files.folder) == []


def test_a_contract_that_fails_leaves_the_file_expanded(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_slug", SLUG, YEAR, FAILS.replace("False", "True, when='contract'"))
    runner(files).migrate(phase="expand")
    with pytest.raises(RunError, match="nothing of this file was applied"):
        runner(files).migrate()
    assert stands(files) == {"0002_slug": "expanded"}
    assert drift(files.folder) == []
    place.ask(INSERT.format("old"))


def test_a_contract_that_stops_halfway_goes_back_to_expanded(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_slug", SLUG, FAILS.replace("False", "False, when='contract'"), YEAR)
    runner(files).migrate(phase="expand")
    with pytest.raises(RunError, match=r"is committed\. Correct it"):
        runner(files).migrate()
    assert stands(files)["0002_slug"].startswith("half applied (")
    assert drift(files.folder) == []
    files.write("0003_isbn", ISBN)
    with pytest.raises(RunError, match=r"half applied.*no file can expand"):
        runner(files).migrate(phase="expand")
    assert names(runner(files).resolve("0002", "abandon")) == ["0002_slug"]
    assert stands(files) == {"0002_slug": "expanded"}
    assert drift(files.folder) == []
    with pytest.raises(RunError, match="'0002_slug' is expanded, and not half done"):
        runner(files).resolve("0002", "again")
    runner(files).rollback(allow_destructive=True)
    assert stands(files) == {}
    assert drift(files.folder) == []


def test_an_expanded_file_may_not_change(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_slug", SLUG)
    runner(files).migrate(phase="expand")
    files.write("0002_slug", ISBN, after=["0001_base"])
    with pytest.raises(HistoryError, match="'0002_slug' was changed after it was expanded"):
        runner(files).migrate()
    with pytest.raises(RunError, match=r"'0002_slug' is expanded; `migrate` applies the rest"):
        runner(files).migrate(fake=True)


def test_a_killed_expand_and_a_killed_contract_go_on(place: Place, files: Files) -> None:
    base(files)
    marker = files.folder.parent / "inside"
    above = f"""
        import pathlib, time

        def hold(models, work):
            marker = pathlib.Path({str(marker)!r})
            if not marker.exists():
                marker.touch()
                time.sleep(60)
    """
    waits = "RunPython(hold, transactional=False{})"
    late = waits.format(", when='contract'")
    files.write("0002_slug", SLUG, waits.format(""), ISBN, late, YEAR, above=above)
    phases: list[tuple[Literal["expand", "contract"], str]] = [
        ("expand", "half expanded"),
        ("contract", "half applied"),
    ]
    for phase, done in phases:
        child = start("migrate", place, files, phase=phase)
        wait_until(marker.exists)
        child.kill()
        child.communicate()
        assert stands(files)["0002_slug"].startswith(done)
        place.ask(f"INSERT INTO book (title, slug) VALUES ('{phase}', '-') RETURNING id")
        runner(files).migrate(phase=phase)
        marker.unlink()
    assert stands(files) == {}
    assert place.ask("SELECT title, slug FROM book ORDER BY id") == [
        ("expand", "-"),
        ("contract", "-"),
    ]
    assert drift(files.folder) == []


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- the way back ---------------------------------------------------------------------------------


def test_rollback_takes_exactly_the_expanded_parts_back(place: Place, files: Files) -> None:
    base(files)
    place.ask(INSERT.format("before"))
    files.write("0002_slug", SLUG, YEAR, PAGES)
    files.write("0003_title", LONG_TITLE)
    runner(files).migrate(phase="expand")
    place.ask(INSERT.format("old"))
    place.ask("INSERT INTO book (title, slug, pages) VALUES ('new', 's', 2) RETURNING id")
    assert names(runner(files).rollback()) == ["0003_title"]
    with pytest.raises(DataLossRefused, match="'0002_slug' drops what the rows of 'book' hold"):
        runner(files).rollback()
    lines: list[str] = []
    rollback(files.folder, allow_destructive=True, say=lines.append)
    assert lines[-1].endswith("drop column book.slug")
    assert place.ask("SELECT title, pages, year FROM book ORDER BY id") == [
        ("before", 1, None),
        ("old", 1, None),
        ("new", 2, None),
    ]
    assert drift(files.folder) == []
    assert names(runner(files).migrate()) == ["0002_slug", "0003_title"]


def test_rollback_fills_what_the_new_release_left_null(place: Place, files: Files) -> None:
    base(files)
    nullable = "fields.CharField(max_length=40, null=True)"
    files.write("0002_null", f'AlterField("book", "title", {nullable})')
    runner(files).migrate(phase="expand")
    place.ask("INSERT INTO book (title) VALUES (NULL) RETURNING id")
    with pytest.raises(Ambiguous, match=r"--fill book\.title:VALUE"):
        runner(files).rollback()
    runner(files).rollback(fill=["book.title:none"])
    assert place.ask("SELECT title FROM book") == [("none",)]
    assert drift(files.folder) == []


def test_rollback_to_a_target_takes_expanded_files_first(place: Place, files: Files) -> None:
    base(files)
    files.write("0002_isbn", ISBN)
    runner(files).migrate()
    files.write("0003_slug", SLUG)
    files.write("0004_year", YEAR)
    runner(files).migrate(phase="expand")
    assert names(runner(files).rollback("0001")) == ["0004_year", "0003_slug", "0002_isbn"]
    assert drift(files.folder) == []
    assert runner(files).pending() == ["0002_isbn", "0003_slug", "0004_year"]
