"""The runner over a squashed history: new databases run one file, old ones count it as applied."""

from __future__ import annotations

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

from treefold_migrations import HistoryError, Runner, drift, migrate, rollback, squash

RANK = 'AddField("author", "rank", fields.IntegerField(null=True))'
WORDS = 'AlterField("author", "name", fields.CharField(max_length=60))'
LATER = 'AddIndex("author", Index(["rank"]))'
ROW = "INSERT INTO author (name) VALUES ('Le Guin')"


def three(files: Files) -> None:
    """Files of which the first three are squashed, and one that comes after them."""
    files.write("0001_initial", AUTHOR, BOOK, after=[])
    files.write("0002_rank", RANK)
    files.write("0003_words", WORDS)


def squashed(files: Files) -> None:
    squash("0003", files.folder)
    files.write("0005_later", LATER, after=["0003_words"])


def names(place: Place) -> list[str]:
    found = place.ask("SELECT name FROM treefold_migrations ORDER BY place")
    return [name for (name,) in found]


def test_a_new_database_runs_the_squashed_file(place: Place, files: Files) -> None:
    three(files)
    squashed(files)
    runs = migrate(files.folder)
    assert [run.name for run in runs] == ["0004_squashed", "0005_later"]
    assert names(place) == ["0004_squashed", "0005_later"]
    place.ask(ROW)
    assert drift(files.folder) == []
    assert migrate(files.folder) == []


def test_a_database_with_the_originals_runs_what_follows(place: Place, files: Files) -> None:
    three(files)
    migrate(files.folder)
    place.ask(ROW)
    squashed(files)
    assert Runner("default", files.history()).pending() == ["0005_later"]
    assert [run.name for run in migrate(files.folder)] == ["0005_later"]
    assert names(place) == ["0001_initial", "0002_rank", "0003_words", "0005_later"]
    assert place.ask("SELECT name FROM author") == [("Le Guin",)]
    assert drift(files.folder) == []


def test_the_originals_may_go_once_every_database_has_them(place: Place, files: Files) -> None:
    three(files)
    migrate(files.folder)
    squashed(files)
    migrate(files.folder)
    for name in ("0001_initial", "0002_rank", "0003_words"):
        (files.folder / f"{name}.py").unlink()
    assert migrate(files.folder) == []
    assert drift(files.folder) == []


def test_a_database_in_the_middle_is_refused_with_the_way_out(place: Place, files: Files) -> None:
    three(files)
    migrate(files.folder, "0002")
    squashed(files)
    before = place.tables()
    match = "'0004_squashed' stands for '0002_rank', which is applied, and for '0003_words'"
    with pytest.raises(HistoryError, match=match):
        migrate(files.folder)
    assert place.tables() == before
    assert names(place) == ["0001_initial", "0002_rank"]


def test_both_kinds_of_databases_roll_back_to_nothing(place: Place, files: Files) -> None:
    three(files)
    migrate(files.folder)
    squashed(files)
    migrate(files.folder)
    runs = rollback(files.folder, "zero", allow_destructive=True)
    assert [run.name for run in runs] == ["0005_later", "0004_squashed"]
    assert names(place) == []
    assert not {"author", "book"} & place.tables()
    migrate(files.folder)
    assert names(place) == ["0004_squashed", "0005_later"]
    rollback(files.folder, "zero", allow_destructive=True)
    assert not {"author", "book"} & place.tables()
