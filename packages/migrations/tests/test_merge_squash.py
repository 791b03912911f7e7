"""Branches that meet, and files that become one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairs import models_of

from treefold_migrations import FileError, HistoryError
from treefold_migrations._commands.files import (
    list_migrations,
    makemigrations,
    merge,
    squash,
)
from treefold_migrations._files.loading import load_folder
from treefold_migrations._state.schema_state import is_same_state

HEAD = "from treefold_orm import Index, fields\nfrom treefold_migrations import *\n"
BASE = """
migration = Migration(operations=[
    CreateTable("author", {"id": fields.BigAutoField(), "a": fields.IntegerField()}, "Author"),
    CreateTable("post", {"id": fields.BigAutoField(), "n": fields.IntegerField()}, "Post"),
])
"""
ADD_X = 'AddField("author", "x", fields.TextField(null=True))'
ADD_Y = 'AddField("author", "y", fields.TextField(null=True))'


def put(folder: Path, name: str, after: list[str], *operations: str, more: str = "") -> None:
    body = f"migration = Migration(after={after!r}, operations=[{', '.join(operations)}])\n"
    (folder / f"{name}.py").write_text(HEAD + more + body, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0001_initial.py").write_text(HEAD + BASE, encoding="utf-8")
    return tmp_path


def fork(folder: Path, one: str, other: str) -> None:
    put(folder, "0002_one", ["0001_initial"], one)
    put(folder, "0002_other", ["0001_initial"], other)


COMMUTING = [
    (ADD_X, ADD_Y),
    (ADD_X, 'AddField("post", "x", fields.TextField(null=True))'),
    (ADD_X, 'DropField("author", "a")'),
    (ADD_X, 'CreateTable("tag", {"id": fields.BigAutoField()}, "Tag")'),
    (
        'AddField("post", "author", fields.ForeignKey("author", null=True))',
        'CreateTable("t", {"id": fields.BigAutoField(), "a": fields.ForeignKey("author")}, "T")',
    ),
    (ADD_X, 'CreateTable("t", {"id": fields.BigAutoField(), "a": fields.ForeignKey("author")})'),
    ('AddIndex("author", Index("a"))', 'AddIndex("author", Index("-a"))'),
    (ADD_X, 'RunSQL("UPDATE post SET n = 1", tables=["post"])'),
    (ADD_X, 'RenameTable("post", "article")'),
]
CLASHING = [
    (ADD_X, ADD_X, "both change author.x"),
    (ADD_X, 'DropTable("author")', "both change author.x"),
    (ADD_X, 'RenameTable("author", "writer")', "both change author.x"),
    (
        'AlterField("author", "a", fields.BigIntegerField())',
        'AlterField("author", "a", fields.TextField())',
        "both change author.a",
    ),
    ('AddIndex("author", Index("a"))', 'DropField("author", "a")', "one changes author.a, which"),
    (
        'AddField("post", "author", fields.ForeignKey("author", null=True))',
        'DropTable("author")',
        "one changes author, which the other relies on",
    ),
    (ADD_X, 'RunSQL("UPDATE author SET a = 1")', "touches is not known; give it tables="),
    (
        'CreateTable("t", {"id": fields.BigAutoField()})',
        'CreateTable("t", {"id": fields.AutoField()})',
        "both change t",
    ),
]


@pytest.mark.parametrize(("one", "other"), COMMUTING)
def test_branches_that_commute_meet_in_one_file(folder: Path, one: str, other: str) -> None:
    fork(folder, one, other)
    path = merge(folder)
    assert path.name == "0003_merge.py"
    history = load_folder(folder)
    head = history.head()
    assert head is not None
    assert history.parents(head.name) == ("0002_one", "0002_other")
    assert sorted(item.name for item in history.order()) == sorted(history.files)


@pytest.mark.parametrize(("one", "other", "clash"), CLASHING)
def test_branches_that_clash_are_named(folder: Path, one: str, other: str, clash: str) -> None:
    fork(folder, one, other)
    for _ in range(2):
        with pytest.raises(HistoryError) as raised:
            merge(folder)
        assert clash in str(raised.value)
        fork(folder, other, one)
    assert len(list(folder.glob("*.py"))) == 3


def test_a_history_without_a_fork_is_not_merged(folder: Path) -> None:
    with pytest.raises(HistoryError, match="nothing to merge: the migrations have one head"):
        merge(folder)


def test_three_branches_of_different_length_meet(folder: Path) -> None:
    fork(folder, ADD_X, ADD_Y)
    put(folder, "0002_third", ["0001_initial"], 'DropField("author", "a")')
    put(folder, "0003_on", ["0002_other"], 'RenameField("author", "y", "z")')
    merge(folder)
    assert set(load_folder(folder).compute_state_after().table("author").fields) == {"id", "x", "z"}


# -- squash ---------------------------------------------------------------------------------------


def long_history(folder: Path) -> None:
    put(folder, "0002_x", ["0001_initial"], ADD_X, 'RenameField("author", "x", "z")')
    put(folder, "0003_post", ["0002_x"], 'DropTable("post")')
    put(folder, "0004_y", ["0003_post"], ADD_Y)


def test_a_squash_takes_the_place_of_its_files(folder: Path) -> None:
    long_history(folder)
    before = load_folder(folder)
    path = squash("0003", folder)
    after = load_folder(folder)
    assert path.name == "0005_squashed.py"
    assert [item.name for item in after.order()] == ["0005_squashed", "0004_y"]
    assert len(after["0005_squashed"].operations) == 1
    assert is_same_state(after.compute_state_after(), before.compute_state_after())
    assert after["0002_x"].name == "0005_squashed"
    assert after["0005_squashed"].replaces == {
        name: before.compute_digest(name) for name in ("0001_initial", "0002_x", "0003_post")
    }


def test_a_squash_leaves_the_hashes_of_what_follows(folder: Path) -> None:
    long_history(folder)
    before = load_folder(folder).compute_digest("0004_y")
    squash("0003", folder)
    assert load_folder(folder).compute_digest("0004_y") == before
    for name in ("0001_initial", "0002_x", "0003_post"):
        (folder / f"{name}.py").unlink()
    assert load_folder(folder).compute_digest("0004_y") == before


def test_a_squash_can_be_squashed_again(folder: Path) -> None:
    long_history(folder)
    hashes = load_folder(folder)
    squash("0003", folder)
    squash("0004", folder, "again")
    history = load_folder(folder)
    assert [item.name for item in history.order()] == ["0006_again"]
    assert list(history["0006_again"].replaces)[-1] == "0004_y"
    assert history.compute_digest_for_children("0006_again") == hashes.compute_digest("0004_y")


def test_sql_stays_in_a_squash_and_what_is_elidable_goes(folder: Path) -> None:
    put(folder, "0002_sql", ["0001_initial"], 'RunSQL("SELECT 1")', 'RunSQL("x", elidable=True)')
    put(folder, "0003_x", ["0002_sql"], ADD_X)
    squash("0003", folder)
    found = [type(o).__name__ for o in load_folder(folder)["0004_squashed"].operations]
    assert found == ["CreateTable", "CreateTable", "RunSQL", "AddField"]


def test_a_squash_keeps_the_rule_of_a_foreign_key(folder: Path) -> None:
    add = 'AddField("post", "author", fields.ForeignKey("author", null=True))'
    protect = 'AlterField("post", "author", fields.ForeignKey("author", "PROTECT", null=True))'
    put(folder, "0002_add", ["0001_initial"], add)
    put(folder, "0003_protect", ["0002_add"], protect)
    history = load_folder(folder)
    before = history.replay_migrations([item.name for item in history.order()])
    squash("0003", folder)
    assert "PROTECT" in (folder / "0004_squashed.py").read_text(encoding="utf-8")
    history = load_folder(folder)
    after = history.replay_migrations([item.name for item in history.order()])
    assert is_same_state(before, after)


def test_python_that_is_not_elidable_stops_a_squash(folder: Path) -> None:
    more = "def forward(*_): pass\n"
    put(folder, "0002_run", ["0001_initial"], "RunPython(forward)", more=more)
    with pytest.raises(HistoryError, match=r"0002_run, operation 1 \(run Python: forward\) cannot"):
        squash("0002", folder)
    put(folder, "0002_run", ["0001_initial"], "RunPython(forward, elidable=True)", more=more)
    squash("0002", folder)


def test_a_branch_in_the_middle_stops_a_squash(folder: Path) -> None:
    fork(folder, ADD_X, ADD_Y)
    with pytest.raises(HistoryError, match="0002_other comes after 0001_initial, in the middle"):
        squash("0002_one", folder)


def test_one_file_is_not_squashed(folder: Path) -> None:
    with pytest.raises(FileError, match="0001_initial is the only file up to there"):
        squash("0001", folder)


# -- commands -------------------------------------------------------------------------------------


def test_makemigrations_writes_what_the_models_need(tmp_path: Path) -> None:
    lines: list[str] = []
    folder = tmp_path / "migrations"
    first = makemigrations(
        folder,
        metas=[m._meta for m in models_of("n = fields.IntegerField()")],
        say=lines.append,
    )
    assert first.path == folder / "0001_initial.py"
    assert lines == [str(first.path), "  create table thing"]
    body = "n = fields.IntegerField()\nslug = fields.SlugField(null=True)"
    second = makemigrations(folder, metas=[m._meta for m in models_of(body)])
    assert second.path == folder / "0002_add_field_thing_slug.py"
    assert second.path is not None
    assert second.source == second.path.read_text(encoding="utf-8")
    third = makemigrations(folder, metas=[m._meta for m in models_of(body)], say=lines.append)
    assert third.path is None
    assert lines[-1] == "Models and migrations agree"


def test_check_writes_nothing_and_says_what_is_missing(tmp_path: Path) -> None:
    lines: list[str] = []
    models = [m._meta for m in models_of("n = fields.IntegerField()")]
    made = makemigrations(tmp_path, metas=models, check=True, say=lines.append)
    assert lines == ["Models have changes that no migration holds:", "  create table thing"]
    assert len(made.operations) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_there_to_be_filled(tmp_path: Path) -> None:
    models = [m._meta for m in models_of("n = fields.IntegerField()")]
    makemigrations(tmp_path, metas=models)
    made = makemigrations(tmp_path, "copy titles", metas=models, empty=True)
    assert made.path == tmp_path / "0002_copy_titles.py"
    assert load_folder(tmp_path)["0002_copy_titles"].operations == []


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    models = [m._meta for m in models_of("n = fields.IntegerField()")]
    made = makemigrations(tmp_path, metas=models, dry_run=True)
    assert made.path is None
    assert "CreateTable(\n" in made.source
    assert list(tmp_path.iterdir()) == []


def test_a_fork_must_be_merged_before_more_is_made(folder: Path) -> None:
    fork(folder, ADD_X, ADD_Y)
    models = [m._meta for m in models_of("n = fields.IntegerField()")]
    with pytest.raises(HistoryError, match="The migrations fork into 0002_one, 0002_other"):
        makemigrations(folder, metas=models)


def test_migrations_are_listed_with_what_is_applied(folder: Path) -> None:
    long_history(folder)
    lines: list[str] = []
    list_migrations(folder, ["0001_initial", "0002_x"], say=lines.append)
    assert lines == ["[x] 0001_initial", "[x] 0002_x", "[ ] 0003_post", "[ ] 0004_y"]
    squash("0003", folder)
    lines.clear()
    list_migrations(folder, ["0001_initial", "0002_x", "0003_post"], say=lines.append)
    assert lines == ["[x] 0005_squashed", "[ ] 0004_y"]
    lines.clear()
    list_migrations(folder / "none", say=lines.append)
    assert lines == ["There are no migrations yet; `makemigrations` writes the first one"]
