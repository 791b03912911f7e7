"""What is run, and what stops a run before anything is changed: targets, phases, records, files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
    place as place,
)

from treefold_migrations import DataLossRefused, HistoryError, RunError
from treefold_migrations._run.runner import Runner
from treefold_orm import aclose_all, transaction

RANK = 'AddField("author", "rank", fields.IntegerField(null=True))'
NULLABLE_AUTHOR = AUTHOR.replace("max_length=40", "max_length=40, null=True")
DROP_RANK = 'DropField("author", "rank")'
SYSTEM = {"treefold_migrations", "treefold_migrations_journal"}

FAILING_RECORD = {
    "sqlite": [
        "CREATE TRIGGER no_record BEFORE INSERT ON treefold_migrations "
        "BEGIN SELECT RAISE(ABORT, 'no record'); END"
    ],
    "postgres": [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN RAISE EXCEPTION 'no record'; END $$",
        "CREATE TRIGGER no_record BEFORE INSERT ON treefold_migrations "
        "FOR EACH ROW EXECUTE FUNCTION refuse()",
    ],
}
"""Statements after which no record of a file can be written."""


def three(files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_book", BOOK)
    files.write("0003_rank", RANK)


def runner(files: Files) -> Runner:
    return Runner("default", files.history())


def names(runs: list[Any]) -> list[str]:
    return [run.name for run in runs]


def test_files_run_in_order_and_once(place: Place, files: Files) -> None:
    three(files)
    assert runner(files).pending() == ["0001_initial", "0002_book", "0003_rank"]
    assert names(runner(files).migrate("0002")) == ["0001_initial", "0002_book"]
    assert runner(files).pending() == ["0003_rank"]
    assert names(runner(files).migrate()) == ["0003_rank"]
    assert runner(files).migrate() == []
    assert place.tables() == {"author", "book"} | SYSTEM
    assert list(runner(files).applied().records) == ["0001_initial", "0002_book", "0003_rank"]


def test_the_async_half_does_the_same(place: Place, files: Files) -> None:
    three(files)

    async def work() -> list[list[str]]:
        half = runner(files)
        try:
            return [
                await half.apending(),
                names(await half.amigrate()),
                await half.apending(),
                names(await half.arollback("0001_initial")),
                list((await half.aapplied()).records),
            ]
        finally:
            await aclose_all()

    whole = ["0001_initial", "0002_book", "0003_rank"]
    rolled = ["0003_rank", "0002_book"]
    assert asyncio.run(work()) == [whole, whole, [], rolled, ["0001_initial"]]
    assert place.tables() == {"author"} | SYSTEM


def test_a_plan_changes_nothing(place: Place, files: Files) -> None:
    three(files)
    planned = runner(files).migrate(plan=True)
    assert names(planned) == ["0001_initial", "0002_book", "0003_rank"]
    assert "CREATE TABLE" in planned[0].units[0].identity_text
    assert place.tables() == set()
    runner(files).migrate()
    assert names(runner(files).rollback(plan=True)) == ["0003_rank"]
    assert runner(files).pending() == []


def test_rollback_takes_back_steps_or_all_after_a_target(place: Place, files: Files) -> None:
    three(files)
    runner(files).migrate()
    assert names(runner(files).rollback()) == ["0003_rank"]
    runner(files).migrate()
    assert names(runner(files).rollback(steps=2)) == ["0003_rank", "0002_book"]
    runner(files).migrate()
    assert names(runner(files).rollback("zero")) == ["0003_rank", "0002_book", "0001_initial"]
    assert place.tables() == SYSTEM
    assert runner(files).rollback() == []


def test_a_rollback_that_would_lose_rows_needs_consent(place: Place, files: Files) -> None:
    three(files)
    runner(files).migrate()
    place.ask("INSERT INTO author (name, rank) VALUES ('a', 1) RETURNING id")
    with pytest.raises(DataLossRefused, match=r"'0003_rank' drops what the rows of 'author' hold"):
        runner(files).rollback()
    assert runner(files).pending() == []
    assert names(runner(files).rollback(allow_destructive=True)) == ["0003_rank"]


def test_what_cannot_be_reversed_says_so_before_anything_runs(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_sql", "RunSQL(\"UPDATE author SET name = ''\")")
    files.write("0003_rank", RANK)
    runner(files).migrate()
    with pytest.raises(RunError, match=r"'0002_sql' cannot be rolled back.*nothing was changed"):
        runner(files).rollback(steps=2)
    assert runner(files).pending() == []


def test_expand_passes_over_contract_and_migrate_completes(place: Place, files: Files) -> None:
    files.write("0001_initial", NULLABLE_AUTHOR)
    files.write(
        "0002_mixed", RANK, 'RunSQL("UPDATE author SET rank = 7")', 'DropField("author", "name")'
    )
    files.write("0003_book", BOOK)
    runner(files).migrate("0001")
    place.ask("INSERT INTO author (name) VALUES ('a') RETURNING id")
    assert names(runner(files).migrate(phase="expand")) == ["0002_mixed", "0003_book"]
    assert place.ask("SELECT name, rank FROM author") == [("a", 7)]
    assert "book" in place.tables()
    assert runner(files).pending() == ["0002_mixed", "0003_book"]
    assert runner(files).migrate(phase="expand") == []
    assert names(runner(files).migrate(phase="contract")) == ["0002_mixed", "0003_book"]
    assert place.ask("SELECT rank FROM author") == [(7,)]
    assert runner(files).pending() == []


def test_a_half_done_file_is_rolled_back_first(place: Place, files: Files) -> None:
    files.write("0001_initial", NULLABLE_AUTHOR)
    files.write("0002_mixed", RANK, BOOK, 'DropField("author", "name")')
    runner(files).migrate("0001")
    runner(files).migrate(phase="expand")
    place.ask("INSERT INTO author (name, rank) VALUES ('a', 1) RETURNING id")
    with pytest.raises(DataLossRefused, match=r"'0002_mixed' drops what the rows of 'author'"):
        runner(files).rollback()
    back = runner(files).rollback(allow_destructive=True)
    assert [(run.name, run.direction) for run in back] == [("0002_mixed", "backwards")]
    assert place.tables() == {"author"} | SYSTEM
    assert place.ask("SELECT name FROM author") == [("a",)]
    assert runner(files).applied().progress == {}
    files.write("0002_mixed", BOOK, after=["0001_initial"])  # it may change again
    assert names(runner(files).migrate()) == ["0002_mixed"]
    assert names(runner(files).rollback(steps=2, allow_destructive=True)) == [
        "0002_mixed",
        "0001_initial",
    ]


def test_fake_writes_records_alone(place: Place, files: Files) -> None:
    three(files)
    assert names(runner(files).migrate("0002", fake=True)) == ["0001_initial", "0002_book"]
    assert place.tables() == SYSTEM
    assert runner(files).pending() == ["0003_rank"]
    assert names(runner(files).rollback(fake=True)) == ["0002_book"]
    assert runner(files).pending() == ["0002_book", "0003_rank"]


def changed(files: Files) -> None:
    files.write("0001_initial", AUTHOR.replace("40", "41"), after=[])


def missing(files: Files) -> None:
    (files.folder / "0002_book.py").unlink()


PROBLEMS = [
    (changed, "'0001_initial' was changed after it was applied"),
    (missing, "'0002_book' is applied and its file is missing"),
]


@pytest.mark.parametrize(("edit", "message"), PROBLEMS)
def test_files_that_do_not_fit_the_records_stop_the_run(
    place: Place, files: Files, edit: Callable[[Files], None], message: str
) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_book", BOOK)
    runner(files).migrate()
    edit(files)
    for call in (runner(files).migrate, runner(files).rollback, runner(files).pending):
        with pytest.raises(HistoryError, match=message):
            call()


def test_records_are_repaired_by_fake_runs(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_book", BOOK)
    runner(files).migrate()
    missing(files)
    assert names(runner(files).rollback("0001", fake=True)) == ["0002_book"]
    changed(files)
    assert names(runner(files).migrate(fake=True)) == ["0001_initial"]
    assert runner(files).pending() == []
    assert place.tables() == {"author", "book"} | SYSTEM


def test_a_parent_that_is_not_applied_stops_the_run(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_book", BOOK)
    runner(files).migrate()
    place.ask("DELETE FROM treefold_migrations WHERE name = '0001_initial' RETURNING name")
    with pytest.raises(HistoryError, match=r"'0002_book' is applied and '0001_initial'"):
        runner(files).migrate()


def test_a_fork_stops_the_run_and_a_target_does_not_need_it(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_book", BOOK)
    files.write("0002_rank", RANK, after=["0001_initial"])
    with pytest.raises(HistoryError, match="fork into 0002_book, 0002_rank; merge"):
        runner(files).migrate()
    assert place.tables() == set()
    assert names(runner(files).migrate("0002_rank")) == ["0001_initial", "0002_rank"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0009", "must exist; did you mean '0003_rank' or '0002_book' or"),
        ("ZZZ", r"Migration 'ZZZ' must exist; there are 0001_\w+, 0002_\w+, 0003_\w+$"),
        ("000", "could be 0001"),
    ],
)
def test_a_target_must_mean_one_file(place: Place, files: Files, text: str, message: str) -> None:
    three(files)
    with pytest.raises(HistoryError, match=message):
        runner(files).migrate(text)


def test_a_rollback_to_a_file_that_is_not_applied_names_the_last(
    place: Place, files: Files
) -> None:
    three(files)
    with pytest.raises(RunError, match=r"'0003_rank' is not applied.*rolled back to it; none is$"):
        runner(files).rollback("0003")
    runner(files).migrate("0002")
    with pytest.raises(RunError, match=r"rolled back to it; '0002_\w+' is the last that is$"):
        runner(files).rollback("0003")


def test_a_run_inside_a_transaction_is_refused(place: Place, files: Files) -> None:
    from treefold_orm import ConfigurationError

    three(files)
    with transaction(), pytest.raises(ConfigurationError, match="inside of a transaction"):
        runner(files).migrate()


def test_a_failed_file_leaves_nothing_and_names_its_step(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_broken", BOOK, 'RunSQL("INSERT INTO nowhere VALUES (1)")', RANK)
    with pytest.raises(RunError, match=r"'0002_broken', step \d of \d: .* failed: ") as raised:
        runner(files).migrate()
    assert "nowhere" in str(raised.value)
    assert "nothing of this file was applied" in str(raised.value)
    assert place.tables() == {"author"} | SYSTEM
    assert runner(files).pending() == ["0002_broken"]


def test_s112_ddl_and_its_record_are_one_transaction(place: Place, files: Files) -> None:
    """A failed record undoes the tables of its file, on SQLite too."""
    place.configure()
    files.write("0001_initial", AUTHOR)
    runner(files).migrate()
    for statement in FAILING_RECORD[place.engine]:
        place.ask(statement)
    files.write("0002_book", BOOK)
    with pytest.raises(RunError):
        runner(files).migrate()
    assert place.tables() == {"author"} | SYSTEM
    on = " ON treefold_migrations" if place.engine == "postgres" else ""
    place.ask(f"DROP TRIGGER no_record{on}")
    assert names(runner(files).migrate()) == ["0002_book"]
