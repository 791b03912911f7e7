"""R-01: a run that is killed at any statement leaves something that the next run completes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_support import (
    AUTHOR,
    BOOK,
    LONG,
    Files,
    Place,
    files as files,
    make_place as make_place,
)

CHILD = Path(__file__).parent / "run_child.py"
BATCHES = """
    def rows(models, work):
        models.author.objects.bulk_create([models.author(id=n, name=f"a{n}") for n in range(1, 8)])

    async def books(models, work):
        for author in await models.author.objects.order_by("id"):
            await models.book.objects.acreate(id=author.id, author=author, title=author.name)

    def shout(models, work):
        def each(authors):
            for author in authors:
                author.name = author.name.upper() + "!"
                author.save()

        work.batched(models.author.objects.all(), each, size=2)

    def nothing(models, work):
        pass
"""


def long_history(files: Files) -> None:
    """Tables, rows, a column that becomes required, indexes, batches: all that the runner knows."""
    files.write("0001_initial", AUTHOR, BOOK)
    files.write("0002_rows", "RunPython(rows)", "RunPython(books)", above=BATCHES)
    files.write(
        "0003_mixed",
        'AddField("author", "rank", fields.IntegerField(null=True))',
        "RunPython(shout, transactional=False)",
        'AddIndex("author", Index(["name"]))',
        'AddIndex("book", Index(["title", "author"]))',
        'AlterField("author", "name", fields.CharField(max_length=60, null=True, unique=True))',
        above=BATCHES,
    )
    files.write(
        "0004_contract",
        'DropField("author", "rank")',
        "RunSQL(\"UPDATE book SET title = title || '.'\")",
    )


ALL = [
    ("sqlite", "async", False),
    ("postgres", "sync", True),
    ("sqlite", "sync", False),
    ("postgres", "async", True),
    ("postgres", "sync", False),
]


@pytest.mark.parametrize(("engine", "half", "flying"), ALL if LONG else ALL[:2])
def test_r01_a_killed_run_is_completed_by_the_next(
    engine: str,
    half: str,
    flying: bool,
    make_place: Callable[[str], Place],
    files: Files,
) -> None:
    long_history(files)
    place = make_place(engine)
    # the short form takes some statements of two cases, the long one every statement of all cases
    options = {"first": 1, "every": 1} if LONG else {"first": 4, "every": 13}
    given = {**vars(place), "folder": str(files.folder), "half": half, "flying": flying, **options}
    found = run_child("kills", given)
    assert found["wrong"] == []
    assert found["statements"] >= 40
    assert found["killed"] >= found["statements"] // options["every"] - 1


def run_child(command: str, given: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, CHILD, command, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
