"""What the hash of an applied file covers, records of its first version, and the advice of squash.

The commands are those of the command line, called as it calls them.
"""

from __future__ import annotations

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

from treefold_migrations._commands import command_line, command_line_checks
from treefold_migrations._files.hashing import compute_legacy_digests

RANK = 'AddField("author", "rank", fields.IntegerField(null=True))'
FILL = """
    def fill(models, work):
        "Fill the ranks."
        for author in models.author.objects.all():
            author.rank = len(author.name)
            author.save()
"""


def filled(files: Files, above: str = FILL, options: str = "") -> None:
    """Three files, the second of which runs Python."""
    files.write("0001_initial", AUTHOR, RANK, after=[])
    files.write("0002_fill", f"RunPython(fill, RunPython.noop{options})", above=above)
    files.write("0003_words", 'AlterField("author", "name", fields.CharField(max_length=60))')


def command(files: Files, name: str, *args: str, **options: object) -> int:
    """Run a command of the command line, and return its exit code."""
    module = command_line_checks if name == "drift" else command_line
    return getattr(module, name)(*args, **options, app_dir=str(files.folder.parent))


def hashes(place: Place) -> dict[str, str]:
    found = place.ask("SELECT name, hash FROM treefold_migrations ORDER BY place")
    return {name: str(hash_) for name, hash_ in found}


def as_first_version(place: Place, files: Files) -> None:
    """Rewrite every record with the hash of the first version of this package."""
    parents: list[str] = []
    for item in files.history().order():
        text = item.path.read_text()
        (old,) = compute_legacy_digests(parents, item.migration, text)
        place.ask(
            f"UPDATE treefold_migrations SET hash = '{old}' WHERE name = '{item.name}' RETURNING 1"
        )
        parents = [old]


SAME = {
    "annotations": """
    from typing import Any

    def fill(models: Any, work: "Any") -> None:
        "Fill the ranks."
        author: Any
        for author in models.author.objects.all():
            rank: int = len(author.name)
            author.rank = rank
            author.save()
""",
    "local names": """
    def fill(m, w):
        for row in m.author.objects.all():
            row.rank = len(row.name)
            row.save()
""",
}
INLINE = """
    def fill(models, work):
        for author in models.author.objects.all():
            rank = len(author.name)
            author.rank = rank
            author.save()
"""
OTHER = {
    "another value": FILL.replace("len(author.name)", "1"),
    "another field": FILL.replace("author.rank", "author.other"),
    "two names swapped": FILL.replace("fill(models, work)", "fill(work, models)"),
}


@pytest.mark.parametrize("edit", SAME)
def test_what_changes_no_run_is_not_in_the_hash(place: Place, files: Files, edit: str) -> None:
    filled(files, INLINE if edit == "annotations" else FILL)
    assert command(files, "migrate") == 0
    filled(files, SAME[edit], ', elidable=True, when="contract"')
    assert command(files, "migrate") == 0
    assert command(files, "drift") == 0
    assert command(files, "rollback", allow_destructive=True) == 0


@pytest.mark.parametrize("edit", OTHER)
@pytest.mark.parametrize("engine", ["sqlite"])
def test_what_changes_a_run_is_refused(place: Place, files: Files, edit: str) -> None:
    filled(files)
    assert command(files, "migrate") == 0
    filled(files, OTHER[edit])
    assert command(files, "migrate") == 1
    filled(files)
    assert command(files, "migrate") == 0


SHADOWS = [
    ("def f(a):\n    return [x for x in a]", "def f(x):\n    return [a for a in x]"),
    ("def f(a):\n    return lambda b: a(b)", "def f(q):\n    return lambda r: q(r)"),
    (
        "def f(a):\n    def each(rows):\n        return a, rows\n    return each",
        "def f(m):\n    def one(rows):\n        return m, rows\n    return one",
    ),
    (
        "def f(a):\n    try:\n        a()\n    except ValueError as e:\n        print(e)",
        "def f(a):\n    try:\n        a()\n    except ValueError as error:\n        print(error)",
    ),
    (
        "async def f(a, b=1, *c, **d):\n    with a as g:\n        return b, c, d, g",
        "async def f(b, c=1, *d, **e):\n    with b as h:\n        return c, d, e, h",
    ),
]
DIFFERENT = [
    ("def f(a):\n    return [a for x in a]", "def f(a):\n    return [x for x in a]"),
    ("def f(a):\n    return lambda b: a(b)", "def f(a):\n    return lambda a: a(a)"),
    ("x = 1\ndef f(a):\n    return x", "x = 1\ndef f(a):\n    return a"),
    # the caller may give it by its name
    ("def f(a=1, **c):\n    return a\nf(a=2)", "def f(b=1, **c):\n    return b\nf(a=2)"),
    ("def f():\n    a = 1\n    return locals()", "def f():\n    b = 1\n    return locals()"),
    ("class A:\n    a: int", "class A:\n    a: str"),
    ("def f():\n    global a\n    a = 1", "def f():\n    global b\n    b = 1"),
]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(*pair, True) for pair in SHADOWS] + [(*pair, False) for pair in DIFFERENT],
)
def test_local_names_are_followed_through_scopes(
    files: Files, one: str, other: str, same: bool
) -> None:
    digests: list[str] = []
    for text in (one, other):
        path = files.folder / "0001_a.py"
        path.write_text(
            f"from treefold_migrations import Migration\nmigration = Migration()\n{text}\n"
        )
        digests.append(files.history().compute_digest("0001_a"))
    assert (digests[0] == digests[1]) is same


def test_a_record_of_the_first_version_is_rewritten_once(place: Place, files: Files) -> None:
    filled(files)
    assert command(files, "migrate") == 0
    today = hashes(place)
    as_first_version(place, files)
    old = hashes(place)
    assert {len(text) for text in old.values()} == {64}
    assert command(files, "drift") == 0  # which reads only
    assert hashes(place) == old
    assert command(files, "migrate") == 0
    assert hashes(place) == today


def test_a_changed_file_with_an_old_record_is_refused(place: Place, files: Files) -> None:
    filled(files)
    assert command(files, "migrate") == 0
    as_first_version(place, files)
    old = hashes(place)
    filled(files, OTHER["another value"])
    assert command(files, "migrate") == 1
    assert hashes(place)["0002_fill"] == old["0002_fill"]
    assert command(files, "migrate", fake=True) == 0
    assert command(files, "migrate") == 0


@pytest.mark.parametrize("old", [False, True], ids=["records of today", "old records"])
def test_the_advice_of_squash_locks_nothing_out(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str], *, old: bool
) -> None:
    filled(files)
    assert command(files, "migrate") == 0
    if old:
        as_first_version(place, files)
    place.ask("INSERT INTO author (name, rank) VALUES ('a', 1) RETURNING id")
    assert command(files, "squash", "0003") == 1
    assert "set elidable=True if a new database does not need it" in capsys.readouterr().err
    filled(files, options=", elidable=True")
    assert command(files, "squash", "0003") == 0
    files.write("0005_age", RANK.replace("rank", "age"), after=["0003_words"])
    for name in ("migrate", "migrate", "drift", "list_migrations"):
        assert command(files, name) == 0, capsys.readouterr().err
    for name in ("0001_initial", "0002_fill", "0003_words"):
        (files.folder / f"{name}.py").unlink()
    assert command(files, "migrate") == 0
    assert command(files, "drift") == 0
    assert place.ask("SELECT name, rank, age FROM author") == [("a", 1, None)]
    assert command(files, "rollback") == 1  # the column holds rows
    assert command(files, "rollback", allow_destructive=True) == 0
    assert command(files, "migrate") == 0


def test_a_faked_squash_replaces_the_records_that_it_stands_for(place: Place, files: Files) -> None:
    filled(files, options=", elidable=True")
    assert command(files, "migrate", "0002") == 0
    command(files, "squash", "0003")
    assert command(files, "migrate") == 1  # two of three are applied
    assert command(files, "migrate", "0004", fake=True) == 0
    assert list(hashes(place)) == ["0004_squashed"]
    assert command(files, "migrate") == 0
    files.write("0005_age", RANK.replace("rank", "age"), after=["0003_words"])
    assert command(files, "migrate") == 0
    assert command(files, "migrate") == 0
