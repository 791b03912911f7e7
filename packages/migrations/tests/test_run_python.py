"""Python steps: functions of both halves, in runs of both halves, on frozen models, in batches."""

from __future__ import annotations

import asyncio
from pathlib import Path
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

from treefold_migrations import RunError
from treefold_migrations._run.events import Event
from treefold_migrations._run.runner import Runner
from treefold_orm import aclose_all, close_all, configure, raw, registry

FILL = """
    def fill(models, work):
        models.author.objects.create(name="sync")
        author = models.author.objects.get(name="sync")
        models.book.objects.create(author=author, title="one")
        assert [book.title for book in author.books.all()] == ["one"]

    async def afill(models, work):
        author = await models.author.objects.acreate(name="async")
        await models.book.objects.acreate(author=author, title="two")
        assert [book.title async for book in author.books.all()] == ["two"]

    def empty(models, work):
        models.book.objects.all().delete()
        models.author.objects.filter(id__gt=0).delete()
"""


@pytest.fixture(params=["sync", "async"])
def half(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def migrate(files: Files, half: str, *, back: bool = False, **options: Any) -> list[str]:
    """Migrate, or roll back the last file, in one half."""
    runner = Runner("default", files.history(), **options)
    if half == "sync":
        return [run.name for run in (runner.rollback() if back else runner.migrate())]

    async def work() -> list[str]:
        try:
            made = await (runner.arollback() if back else runner.amigrate())
            return [run.name for run in made]
        finally:
            await aclose_all()

    return asyncio.run(work())


def test_functions_of_both_halves_run_in_either(place: Place, files: Files, half: str) -> None:
    files.write("0001_initial", AUTHOR, BOOK)
    files.write("0002_fill", "RunPython(fill, empty)", "RunPython(afill, empty)", above=FILL)
    assert migrate(files, half) == ["0001_initial", "0002_fill"]
    assert sorted(place.ask("SELECT name FROM author")) == [("async",), ("sync",)]
    assert migrate(files, half, back=True) == ["0002_fill"]
    assert place.ask("SELECT name FROM author") == []


def test_a_function_that_fails_leaves_nothing(place: Place, files: Files, half: str) -> None:
    above = f"{FILL}\n    def fail(models, work):\n        raise ValueError('no such luck')\n"
    files.write("0001_initial", AUTHOR, BOOK)
    files.write("0002_fill", "RunPython(fill)", "RunPython(fail)", above=above)
    with pytest.raises(RunError, match=r"step 2 of 2: run Python: fail raised ValueError: no such"):
        migrate(files, half)
    assert place.ask("SELECT name FROM author") == []
    assert Runner("default", files.history()).pending() == ["0002_fill"]


BATCHES = """
    import pathlib

    def insert(models, work):
        models.author.objects.bulk_create([models.author(name=f"a{{n}}") for n in range(10)])

    def check(authors):
        if authors[0].name == "a6" and pathlib.Path({marker!r}).exists():
            raise ValueError("stopped")

    def shout(models, work):
        def each(authors):
            for author in authors:
                author.name += "!"
                author.save()
            check(authors)

        work.batched(models.author.objects.filter(name__startswith="a"), each, size=3)
        work.batched(models.author.objects.order_by("-id"), each, size=4)

    async def ashout(models, work):
        async def each(authors):
            for author in authors:
                author.name += "!"
                await author.asave()
            check(authors)

        await work.abatched(models.author.objects.filter(name__startswith="a"), each, size=3)
        await work.abatched(models.author.objects.order_by("-id"), each, size=4)
"""


@pytest.mark.parametrize("function", ["shout", "ashout"])
def test_batches_resume_where_they_stopped(
    place: Place, files: Files, half: str, function: str, tmp_path: Path
) -> None:
    marker = tmp_path / "stop"
    marker.touch()
    above = BATCHES.format(marker=str(marker)).replace('"a6"', '"a6!"')
    files.write("0001_initial", AUTHOR, "RunPython(insert)", above=above)
    files.write("0002_shout", f"RunPython({function}, transactional=False)", above=above)
    with pytest.raises(RunError, match="raised ValueError: stopped"):
        migrate(files, half)
    stopped = ["a0!", "a1!", "a2!", "a3!", "a4!", "a5!", "a6", "a7", "a8", "a9"]
    assert names(place) == stopped  # the batch that failed is undone, those before it stay
    marker.unlink()
    said: list[Event] = []
    assert migrate(files, half, listener=said.append) == ["0002_shout"]
    assert names(place) == [f"a{n}!!" for n in range(10)]
    rows = [(event.rows, event.total) for event in said if event.kind == "rows"]
    assert rows == [(3, 10), (4, 10), (4, 10), (8, 10), (10, 10)]


def names(place: Place) -> list[str]:
    return [name for (name,) in place.ask("SELECT name FROM author ORDER BY id")]


def test_atomic_batches_are_one_transaction(place: Place, files: Files, tmp_path: Path) -> None:
    marker = tmp_path / "stop"
    marker.touch()
    above = BATCHES.format(marker=str(marker)).replace('"a6"', '"a6!"')
    files.write("0001_initial", AUTHOR, "RunPython(insert)", above=above)
    files.write("0002_shout", "RunPython(shout)", above=above)
    with pytest.raises(RunError, match="stopped"):
        migrate(files, "sync")
    assert names(place) == [f"a{n}" for n in range(10)]


def test_frozen_models_are_those_of_their_file(place: Place, files: Files) -> None:
    above = """
        def look(models, work):
            assert sorted(models) == ["author", "book"]
            assert models.Author is models.author is models["author"]
            assert not hasattr(models.author, "rank")
            try:
                models.autor
            except AttributeError as error:
                assert "did you mean 'author'" in str(error)
            else:
                raise AssertionError
            assert work.database == "default"
    """
    files.write("0001_initial", AUTHOR, BOOK, "RunPython(look)", above=above)
    files.write("0002_rank", 'AddField("author", "rank", fields.IntegerField(null=True))')
    before = {meta.name for meta in registry}
    assert migrate(files, "sync") == ["0001_initial", "0002_rank"]
    assert {meta.name for meta in registry} == before


def test_frozen_models_belong_to_the_alias_that_is_migrated(place: Place, files: Files) -> None:
    close_all()
    if place.engine == "sqlite":
        configure("sqlite", place.address, alias="other")
    else:
        settings = {"search_path": place.schema}
        configure(database=place.address, server_settings=settings, alias="other")
    configure("sqlite", ":memory:")
    files.write("0001_initial", AUTHOR, BOOK)
    files.write("0002_fill", "RunPython(fill)", "RunPython(afill)", above=FILL)
    Runner("other", files.history()).migrate()
    assert len(raw("SELECT name FROM author", using="other")) == 2


def test_nested_transactions_of_a_function_are_savepoints(place: Place, files: Files) -> None:
    above = """
        from treefold_orm import transaction

        def nest(models, work):
            models.author.objects.create(name="kept")
            try:
                with transaction():
                    models.author.objects.create(name="undone")
                    raise KeyError
            except KeyError:
                pass
    """
    files.write("0001_initial", AUTHOR, "RunPython(nest)", above=above)
    migrate(files, "sync")
    assert place.ask("SELECT name FROM author") == [("kept",)]


def test_a_database_in_memory_migrates_in_its_only_connection(files: Files, half: str) -> None:
    close_all()
    configure("sqlite", ":memory:")
    above = BATCHES.format(marker="/nowhere")
    files.write("0001_initial", AUTHOR, "RunPython(insert)", above=above)
    files.write("0002_shout", "RunPython(shout, transactional=False)", above=above)
    runner = Runner("default", files.history())
    if half == "sync":
        runner.migrate()
        assert len(raw("SELECT 1 AS a FROM author WHERE name LIKE '%!!'")) == 10
    else:
        asyncio.run(runner.amigrate())
        asyncio.run(aclose_all())
    close_all()


def test_the_function_of_the_readme_fills_a_column(place: Place, files: Files) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    above = readme.split("```py\n")[1].split("migration = ")[0]
    files.write("0001_initial", AUTHOR)
    migrate(files, "sync")
    place.ask("INSERT INTO author (name) VALUES ('Ada'), ('Bo') RETURNING id")
    field = 'AddField("author", "slug", fields.CharField(max_length=40, null=True))'
    files.write("0002_slug", field)
    files.write("0003_fill", "RunPython(fill, transactional=False)", above=above)
    migrate(files, "sync")
    assert sorted(place.ask("SELECT name, slug FROM author")) == [("Ada", "ada"), ("Bo", "bo")]
