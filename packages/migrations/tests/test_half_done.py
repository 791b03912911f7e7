"""Files that stop halfway because of a mistake in them: every state has a way forward and a way
back, by commands of the command line, and no command touches the record of another file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from run_child import dump
from run_support import (
    LONG,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)
from test_run_steps import at_alter_table, locked

from treefold_migrations import Limits, LockTimeout, migrate
from treefold_migrations._commands import command_line, command_line_checks

CHILD = Path(__file__).parent / "run_child.py"
TABLES = (
    'CreateTable("author", {"id": fields.BigAutoField(primary_key=True), '
    '"name": fields.CharField(max_length=40), "rank": fields.IntegerField(null=True)}, '
    'model="Author")',
    'CreateTable("book", {"id": fields.BigAutoField(primary_key=True), '
    '"title": fields.CharField(max_length=40)}, model="Book")',
)
ROWS = """
    def rows(models, work):
        models.author.objects.bulk_create(
            [models.author(id=n, name=f"a{n}" if n != 5 else "") for n in range(1, 9)]
        )
        models.book.objects.bulk_create([models.book(id=n, title="t") for n in range(1, 4)])
"""
AGE = 'AddField("author", "age", fields.IntegerField(null=True))'
BATCHES = """
    def fill(models, work):
        def each(authors):
            for author in authors:
                author.rank = {value}
                author.save()

        work.batched(models.author.objects.all(), each, size=2)

    def clear(models, work):
        models.author.objects.update(rank=None)
"""
WRONG = BATCHES.format(value='{"a": 1}[author.name[:1]]')
RIGHT = BATCHES.format(value='{"a": 1}.get(author.name[:1], 0)')


@dataclass(frozen=True)
class Case:
    """A file that fails: its operations, the code above, and the same with the mistake corrected.

    `by_hand` does what the failed step should have done; `stays` is the part that the way
    back leaves. `meanwhile` is what another program writes at each ALTER TABLE, after the guards.
    """

    wrong: tuple[str, ...]
    right: tuple[str, ...]
    says: str
    above: tuple[str, str] = ("", "")
    by_hand: str = ""
    stays: str = ""
    meanwhile: str = ""
    engines: tuple[str, ...] = ("sqlite", "postgres")


APART = 'RunSQL("UPDATE author SET age = 1", "", transactional=False)'
TITLE = 'AlterField("book", "title", fields.CharField({options}))'
RANK = 'AlterField("author", "rank", fields.IntegerField({options}), fill=7)'
OTHERS = 'RunSQL("UPDATE author SET rank = id + 9 WHERE id <> 5", "UPDATE author SET rank = NULL")'
UNKNOWN = 'RunSQL("SELECT 1", "")'  # which might make the row: it is not looked up before
KEY = 'fields.ForeignKey("author", "CASCADE", related_name="books", null=True, db_default={value})'
CASES = {
    "batches": Case(
        (AGE, "RunPython(fill, clear, transactional=False)"),
        (AGE, "RunPython(fill, clear, transactional=False)"),
        "step 1 is committed, and of step 2, 2 batches with 4 rows are committed",
        (WRONG, RIGHT),
        "UPDATE author SET rank = 1 WHERE id > 4 RETURNING id",
    ),
    "batches without a way back": Case(
        (AGE, "RunPython(fill, transactional=False)"),
        (AGE, "RunPython(fill, transactional=False)"),
        "step 1 is committed, and of step 2, 2 batches with 4 rows are committed",
        (WRONG, RIGHT),
        "UPDATE author SET rank = 1 WHERE id > 4 RETURNING id",
        stays="2 batches with 4 rows of 'run Python: fill' stay as they are",
    ),
    "SQL outside of a transaction": Case(
        (AGE, 'RunSQL("UPDATE author SET older = 1", "", transactional=False)'),
        (AGE, 'RunSQL("UPDATE author SET age = 1", "", transactional=False)'),
        "step 1 is committed",
        by_hand="UPDATE author SET age = 1 RETURNING id",
    ),
    "SQL in a transaction behind that": Case(
        (AGE, APART, AGE.replace("age", "born"), 'RunSQL("UPDATE author SET older = 1", "")'),
        (AGE, APART, AGE.replace("age", "born"), 'RunSQL("UPDATE author SET age = 2", "")'),
        "steps 1 to 2 are committed",
        by_hand="UPDATE author SET age = 2 RETURNING id",
    ),
    "a field behind that": Case(
        (AGE, APART, 'AddField("book", "pages", fields.IntegerField())'),
        (AGE, APART, 'AddField("book", "pages", fields.IntegerField(), fill=3)'),
        "steps 1 to 2 are committed",
    ),
    "a unique field behind that": Case(
        (AGE, APART, TITLE.format(options="max_length=40, unique=True")),
        (AGE, APART, TITLE.format(options="max_length=41")),
        "steps 1 to 2 are committed",
    ),
    "a required field": Case(
        (OTHERS, RANK.format(options="unique=True"), AGE),
        (OTHERS, RANK.format(options=""), AGE),
        "author: 7 rows repeat another row in rank",
        meanwhile="UPDATE author SET rank = 7 WHERE rank IS NOT NULL",
        stays="the values that 'alter field author.rank' has filled in stay",
        engines=("postgres",),
    ),
    "a foreign key to no row": Case(
        (UNKNOWN, AGE, f'AddField("book", "author", {KEY.format(value=8)})'),
        (UNKNOWN, AGE, f'AddField("book", "author", {KEY.format(value=1)})'),
        "3 rows point with author_id to no row of author",
        meanwhile="BEGIN UPDATE book SET author_id = 99; EXCEPTION WHEN undefined_column THEN END",
        engines=("postgres",),
    ),
}
CHOSEN = [(name, e) for name, case in CASES.items() for e in case.engines]


def run(files: Files, name: str, *args: str, **options: object) -> int:
    """Run a command of the command line, and return its exit code."""
    module = command_line_checks if name == "drift" else command_line
    return getattr(module, name)(*args, **options, app_dir=str(files.folder.parent))


def lines(place: Place) -> list[str]:
    """The schema and rows of a database, without records of migrations and the place of columns."""
    return [line for line in dump(place) if not line.startswith("treefold_migrations")]


def records(place: Place) -> list[str]:
    return [n for (n,) in place.ask("SELECT name FROM treefold_migrations ORDER BY place")]


def write(files: Files, case: Case, *, right: bool) -> None:
    operations = case.right if right else case.wrong
    files.write("0002_change", *operations, above=case.above[right], after=["0001_initial"])


def fail(place: Place, files: Files, case: Case, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Apply the file that fails; return what the database held before."""
    files.write("0001_initial", *TABLES, "RunPython(rows, RunPython.noop)", above=ROWS, after=[])
    assert run(files, "migrate") == 0
    before = lines(place)
    write(files, case, right=False)
    capsys.readouterr()
    beside = at_alter_table(place, case.meanwhile) if case.meanwhile else nullcontext()
    with beside:
        assert run(files, "migrate") == 1
    said = capsys.readouterr().err
    assert case.says in said
    assert "`migrate --resolve 0002_change again`" in said
    assert "nothing of this file was applied" not in said
    return before


@pytest.mark.parametrize(("name", "engine"), CHOSEN)
def test_a_corrected_file_goes_on(
    place: Place, files: Files, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    fail(place, files, case, capsys)
    assert run(files, "migrate", "again", resolve="0002") == 1  # the mistake is still there
    write(files, case, right=True)
    if name == "a foreign key to no row":  # a part of its operation is there: that has to go first
        assert run(files, "migrate", "again", resolve="0002") == 1
        assert "`migrate --resolve 0002_change abandon`" in capsys.readouterr().err
        write(files, case, right=False)
        assert run(files, "migrate", "abandon", resolve="0002", allow_destructive=True) == 0
        write(files, case, right=True)
        assert run(files, "migrate") == 0
    else:
        assert run(files, "migrate", "again", resolve="0002") == 0
    assert records(place) == ["0001_initial", "0002_change"]
    assert run(files, "drift") == 0
    assert run(files, "migrate") == 0
    went_on = lines(place)
    if "RunPython(fill, transactional=False)" in case.right:
        assert run(files, "rollback") == 1
        assert "cannot be reversed: run Python: fill" in capsys.readouterr().err
    assert run(files, "rollback", allow_destructive=True) == 0
    if not case.stays:
        assert run(files, "migrate") == 0
        assert lines(place) == went_on


@pytest.mark.parametrize(("name", "engine"), [c for c in CHOSEN if CASES[c[0]].by_hand])
def test_a_step_done_by_hand_is_skipped(
    place: Place, files: Files, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    fail(place, files, case, capsys)
    if "in a transaction" not in name:
        place.ask(case.by_hand)
    assert run(files, "migrate", "skip", resolve="0002") == 0
    assert "(done by hand)" in capsys.readouterr().out
    assert records(place) == ["0001_initial", "0002_change"]
    assert run(files, "migrate") == 0
    assert run(files, "drift") == 0


@pytest.mark.parametrize(("name", "engine"), CHOSEN)
def test_a_half_applied_file_is_taken_back(
    place: Place, files: Files, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    before = fail(place, files, case, capsys)
    if case.stays:
        assert run(files, "migrate", "abandon", resolve="0002") == 1
        said = capsys.readouterr().err
        assert case.stays in said
        assert "abandon --allow-destructive`" in said
    assert run(files, "migrate", "abandon", resolve="0002", allow_destructive=True) == 0
    if not case.stays:
        assert lines(place) == before
    assert records(place) == ["0001_initial"]
    assert run(files, "drift") == 0
    write(files, case, right=True)
    assert run(files, "migrate") == 0
    assert run(files, "drift") == 0


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_rebuild_is_counted_and_skipped_as_one_step(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its copy of the rows alone, the rebuild would lose them."""
    case = CASES["a unique field behind that"]
    fail(place, files, case, capsys)
    run(files, "list_migrations")
    assert "0002_change: half applied (2 of 3 steps)" in capsys.readouterr().out
    assert run(files, "migrate", "skip", resolve="0002", sql=True) == 0  # shows, and runs nothing
    assert records(place) == ["0001_initial"]
    assert run(files, "migrate", "skip", resolve="0002") == 0
    assert records(place) == ["0001_initial", "0002_change"]
    assert place.ask("SELECT id, title FROM book ORDER BY id") == [(1, "t"), (2, "t"), (3, "t")]
    assert run(files, "drift") == 1  # the column is not unique


def test_commands_name_the_half_applied_file_and_touch_no_other(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(place, files, CASES["batches without a way back"], capsys)
    assert run(files, "list_migrations") == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[0] == "[x] 0001_initial"
    assert listed[1].startswith(
        "[~] 0002_change: half applied (1 of 2 steps, and 2 batches with 4 rows of step 2)"
    )
    for command in ("drift", "lint"):
        run(files, command)
        assert "0002_change is half applied" in capsys.readouterr().out
    for command, options in (("migrate", {"fake": True}), ("rollback", {})):
        assert run(files, command, **options) == 1
        said = capsys.readouterr().err
        assert "'0002_change' is half applied" in said
        assert "`migrate --resolve 0002_change abandon`" in said
        assert records(place) == ["0001_initial"]
    assert run(files, "rollback", fake=True) == 0
    assert records(place) == ["0001_initial"]
    capsys.readouterr()
    run(files, "list_migrations")
    assert capsys.readouterr().out.splitlines() == ["[x] 0001_initial", "[ ] 0002_change"]


def test_a_half_applied_file_that_is_lost_is_named(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(place, files, CASES["batches without a way back"], capsys)
    (files.folder / "0002_change.py").unlink()
    for command in ("migrate", "rollback", "drift", "list_migrations"):
        assert run(files, command) == 1
        said = capsys.readouterr().err
        assert "'0002_change' is half applied" in said
        assert "its file is missing" in said
    assert run(files, "rollback", fake=True) == 0
    assert records(place) == ["0001_initial"]
    assert run(files, "migrate") == 0
    assert run(files, "drift") == 1  # the column that it left
    assert "age" in capsys.readouterr().out


LOOKED_UP = {
    "a default that refers to no row": (
        f'AddField("book", "author", {KEY.format(value=99)})',
        "the rows of book would refer to author 99, which does not exist",
        "INSERT INTO author (id, name) VALUES (99, 'x') RETURNING id",
        "",
    ),
    "a column that was dropped by hand": (
        'AddField("book", "pages", fields.IntegerField(null=True))',
        "the database has no column book.title, which an earlier file made",
        "ALTER TABLE book RENAME COLUMN gone TO title",
        "ALTER TABLE book RENAME COLUMN title TO gone",
    ),
    "a table that was dropped by hand": (
        'AddField("book", "author", fields.ForeignKey("author", "CASCADE", null=True))',
        "the database has no column author.id, which an earlier file made",
        "ALTER TABLE gone RENAME TO author",
        "ALTER TABLE author RENAME TO gone",
    ),
}


@pytest.mark.parametrize("name", LOOKED_UP)
def test_what_can_be_looked_up_stops_a_file_before_its_first_step(
    place: Place, files: Files, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    operation, says, repair, damage = LOOKED_UP[name]
    files.write("0001_initial", *TABLES, "RunPython(rows, RunPython.noop)", above=ROWS, after=[])
    assert run(files, "migrate") == 0
    if damage:
        place.ask(damage)
    before = lines(place)
    above = "\n    def wait(models, work):\n        pass\n"
    files.write("0002_change", operation, "RunPython(wait, transactional=False)", above=above)
    assert run(files, "migrate") == 1
    said = capsys.readouterr().err
    assert says in said
    assert "nothing of this file was applied" in said
    assert lines(place) == before
    place.ask(repair)
    assert run(files, "migrate") == 0
    assert run(files, "drift") == 0


def test_an_import_that_fails_stops_a_file_before_its_first_step(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    above = """
    def fill(models, work):
        def each(authors):
            from no_such_package.words import slug

        from os import path
        import json.decoder
        work.batched(models.author.objects.all(), each)
    """
    files.write("0001_initial", *TABLES, after=[])
    files.write("0002_change", AGE, "RunPython(fill, transactional=False)", above=above)
    assert run(files, "migrate") == 1
    assert "fill imports 'no_such_package.words', which does not exist" in capsys.readouterr().err
    assert not [line for line in lines(place) if "age" in line]
    fixed = above.replace("no_such_package.words import slug", "os import sep")
    files.write(
        "0002_change",
        AGE,
        "RunPython(fill, transactional=False)",
        above=fixed,
        after=["0001_initial"],
    )
    assert run(files, "migrate") == 0


def test_resolve_wants_a_half_done_file_and_a_choice(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", *TABLES, after=[])
    assert run(files, "migrate") == 0
    assert run(files, "migrate", "again", resolve="0001") == 1
    assert "'0001_initial' is applied, and not half done" in capsys.readouterr().err
    assert run(files, "migrate", "later", resolve="0001") == 2
    assert "followed by again, skip or abandon, got 'later'" in capsys.readouterr().err


def test_a_rollback_that_fails_is_corrected_and_goes_on(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    back = WRONG.replace("def fill", "def back").replace('"a": 1', '"a": None')
    forth = "\n    def forth(models, work):\n        pass\n"
    operations = (AGE, "RunPython(forth, back, transactional=False)", AGE.replace("age", "born"))
    files.write("0001_initial", *TABLES, "RunPython(rows, RunPython.noop)", above=ROWS, after=[])
    assert run(files, "migrate") == 0
    before = lines(place)
    files.write("0002_change", *operations, above=back + forth)
    assert run(files, "migrate") == 0
    capsys.readouterr()
    assert run(files, "rollback", allow_destructive=True) == 1
    assert "of step 2, 2 batches with 4 rows are committed" in capsys.readouterr().err
    assert run(files, "migrate") == 1
    assert "'0002_change' is half rolled back" in capsys.readouterr().err
    fixed = back.replace("[author.name[:1]]", ".get(author.name[:1])")
    files.write("0002_change", *operations, above=fixed + forth, after=["0001_initial"])
    assert run(files, "migrate", "again", resolve="0002") == 0
    assert records(place) == ["0001_initial"]
    assert lines(place) == before


@pytest.mark.parametrize("engine", ["postgres"])
@pytest.mark.parametrize("choice", ["again", "abandon"])
def test_a_table_that_stays_locked_leaves_both_ways(
    place: Place, files: Files, choice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", *TABLES, "RunPython(rows, RunPython.noop)", above=ROWS, after=[])
    assert run(files, "migrate") == 0
    before = lines(place)
    locks = "RunPython(wait, RunPython.noop, transactional=False)"
    above = "\n    def wait(models, work):\n        pass\n"
    born = 'AddField("book", "born", fields.IntegerField(null=True))'
    files.write("0002_change", AGE, locks, born, above=above)
    with locked(place, "LOCK TABLE book IN ROW SHARE MODE"):
        limits = Limits(lock=0.05, attempts=2)
        with pytest.raises(LockTimeout, match=r"steps 1 to 2 are committed\. .* abandon`"):
            migrate(files.folder, limits=limits)
    run(files, "list_migrations")
    assert "half applied (2 of 3 steps)" in capsys.readouterr().out
    assert run(files, "migrate", choice, resolve="0002", allow_destructive=True) == 0
    assert run(files, "drift") == 0
    assert records(place) == ["0001_initial", "0002_change"][: 1 + (choice == "again")]
    assert (lines(place) == before) is (choice == "abandon")
    assert run(files, "migrate") == 0


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_r01_a_killed_file_can_be_completed_and_taken_back(place: Place, files: Files) -> None:
    files.write("0001_initial", *TABLES, "RunPython(rows, RunPython.noop)", above=ROWS, after=[])
    files.write(
        "0002_change",
        AGE,
        "RunPython(fill, clear, transactional=False)",
        'AddIndex("author", Index(["name"]))',
        f'AddField("book", "author", {KEY.format(value=1)})',
        'AlterField("book", "title", fields.CharField(max_length=40, null=True))',
        above=RIGHT,
    )
    # the short form takes a few statements, the long one each of them
    every = 1 if LONG else 29 if place.engine == "sqlite" else 37
    given = {**vars(place), "folder": str(files.folder), "first": 1 if LONG else 19, "every": every}
    done = subprocess.run(
        [sys.executable, CHILD, "exits", json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == []
    assert found["half"] >= 2


def test_a_rollback_with_a_value_goes_on_with_it(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf = '"shelf": fields.IntegerField()'
    book = f'CreateTable("book", {{"id": fields.BigAutoField(primary_key=True), {shelf}}})'
    files.write("0001_initial", book, after=[])
    assert run(files, "migrate") == 0
    place.ask("INSERT INTO book (shelf) VALUES (1) RETURNING id")
    back = 'RunSQL("SELECT 1", "UPDATE book SET {} = 4", transactional=False)'
    drop = 'DropField("book", "shelf")'
    files.write("0002_drop", back.format("wrong"), drop, after=["0001_initial"])
    assert run(files, "migrate") == 0
    assert run(files, "rollback", fill=["book.shelf:3"]) == 1
    said = capsys.readouterr().err
    assert "`migrate --resolve 0002_drop again`" in said
    assert place.ask("SELECT shelf FROM book") == [(3,)]
    files.write("0002_drop", back.format("shelf"), drop, after=["0001_initial"])
    assert run(files, "migrate", "again", resolve="0002_drop") == 0
    assert place.ask("SELECT shelf FROM book") == [(4,)]
    assert records(place) == ["0001_initial"]


def test_a_fake_run_resolves_nothing(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES["SQL outside of a transaction"]
    fail(place, files, case, capsys)
    assert run(files, "migrate", "again", resolve="0002", fake=True) == 2
    assert "--fake does not go with --resolve" in capsys.readouterr().err
    assert records(place) == ["0001_initial"]


@pytest.mark.parametrize("engine", ["postgres"])
def test_an_index_by_hand_with_the_name_of_a_new_one_stays(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", *TABLES, after=[])
    assert run(files, "migrate") == 0
    place.ask("CREATE INDEX by_title ON book (id, title)")
    operation = 'AddIndex("book", Index(["title"], name="by_title"))'
    files.write("0002_index", operation, after=["0001_initial"])
    before = lines(place)
    for choice in ("", "again", "again"):
        named = {"resolve": "0002"} if choice else {}
        assert run(files, "migrate", *filter(None, [choice]), **named) == 1
        assert "already exists" in capsys.readouterr().err
        assert lines(place) == before
    assert run(files, "migrate", "abandon", resolve="0002") == 0
    assert lines(place) == before
    assert records(place) == ["0001_initial"]
