"""Models while their files change: a model that is imported anew takes the old one's place."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from serving import PATIENCE, write_tree

from treefold import Application, Settings
from treefold.orm import close_all
from treefold.testing import TestClient
from treefold_http.reload import Reloaded, Reloader
from treefold_orm import registry

AUTHOR = """
    from treefold.orm import Model, fields
    class Author(Model):
        name = fields.CharField(max_length=50)
        class Meta:
            table = "reload_author"
"""
BOOK = """
    from treefold.orm import Model, fields
    class Book(Model):
        title = fields.CharField(max_length=50)
        author = fields.ForeignKey("Author", related_name="books")
        class Meta:
            table = "reload_book"
"""
HANDLER = """
    from Models.author import Author
    from Models.book import Book

    async def handler(request):
        books = Book.objects.filter(author__name="Le Guin").select_related("author")
        found = [book async for book in books]
        back = await Author.objects.filter(books__title="The Dispossessed").acount()
        return [[type(book.author) is Author, book.author.name] for book in found] + [back]
"""
SETUP = """
    from treefold.orm import create_all
    from Models.author import Author
    from Models.book import Book

    create_all(Author, Book)
    if not Author.objects.count():
        Book.objects.create(title="The Dispossessed", author=Author.objects.create(name="Le Guin"))

    async def handler(request):
        return []
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield write_tree(
        tmp_path / "project",
        {
            "Models/__init__.py": "",
            "Models/author.py": AUTHOR,
            "Models/book.py": BOOK,
            "Api/v1/Found/Get.py": HANDLER,
            "Api/v1/Setup/Get.py": SETUP,
        },
    )
    close_all()


def development(root: Path) -> Application:
    settings = Settings.load(root, databases={"default": f"sqlite:///{root}/books.sqlite3"})
    return Application(root, dev=True, settings=settings)


def test_models_that_point_to_each_other_stay_together_through_every_reload(root: Path) -> None:
    app = development(root)
    app.boot()  # before a loop runs, as `treefold dev` does
    assert app.report.broken == ()
    with TestClient(app) as client:
        reloader = Reloader(app)

        def save(files: Mapping[str, str]) -> None:
            write_tree(root, files)
            outcome = reloader.reload(files)
            assert isinstance(outcome, Reloaded)
            assert outcome.broken == ()

        expected = [[True, "Le Guin"], 1]
        assert client.get("/v1/found").json() == expected
        for number in range(3):
            save({"Models/author.py": f"{AUTHOR}\n    n = {number}\n"})
            assert client.get("/v1/found").json() == expected
            save({"Models/book.py": f"{BOOK}\n    n = {number}\n"})
            assert client.get("/v1/found").json() == expected
            save({"Models/author.py": AUTHOR, "Models/book.py": BOOK})
            assert client.get("/v1/found").json() == expected


def test_a_model_that_moves_to_another_file_is_found_there(root: Path) -> None:
    """`Book` names it in a text and is not imported anew; there is one `Author`, and it is new."""
    app = development(root)
    app.boot()
    with TestClient(app) as client:
        reloader = Reloader(app)
        assert client.get("/v1/found").json() == [[True, "Le Guin"], 1]
        moved = {
            "Models/people.py": AUTHOR,
            "Api/v1/Found/Get.py": HANDLER.replace("Models.author", "Models.people"),
            "Api/v1/Setup/Get.py": SETUP.replace("Models.author", "Models.people"),
        }
        write_tree(root, moved)
        (root / "Models/author.py").unlink()
        outcome = reloader.reload([*moved, "Models/author.py"])

        assert isinstance(outcome, Reloaded)
        assert outcome.broken == ()
        assert client.get("/v1/found").json() == [[True, "Le Guin"], 1]
        own = [m for m in registry if m.space.startswith(str(root.resolve()))]
        assert sorted(m.model.__module__ for m in own) == ["Models.book", "Models.people"]


def test_a_model_whose_file_fails_stays_as_it_was(root: Path) -> None:
    app = development(root)
    app.boot()
    with TestClient(app) as client:
        reloader = Reloader(app)
        write_tree(root, {"Models/author.py": f"{AUTHOR}\n    raise ValueError('half')\n"})
        outcome = reloader.reload(["Models/author.py"])

        assert isinstance(outcome, Reloaded)
        assert [broken.kept for broken in outcome.broken] != []
        assert client.get("/v1/found").json() == [[True, "Le Guin"], 1]
        write_tree(root, {"Models/author.py": AUTHOR})
        mended = reloader.reload(["Models/author.py"])
        assert isinstance(mended, Reloaded)
        assert mended.broken == ()
        assert client.get("/v1/found").json() == [[True, "Le Guin"], 1]


LONG = """
    import asyncio
    from pathlib import Path
    from Models.author import Author
    from Models.book import Book

    async def handler(request):
        author = await Author.objects.aget(name="Le Guin")
        (Path(__file__).parents[3] / "begun").touch()
        while not (Path(__file__).parents[3] / "go").exists():
            await asyncio.sleep(0.005)
        book = await Book.objects.acreate(title="Rocannon's World", author=author)
        again = await Book.objects.select_related("author").aget(pk=book.pk)
        titles = [one.title async for one in author.books.all() if type(one) is Book]
        return [type(again.author) is type(author), "Rocannon's World" in titles]
"""


@pytest.mark.parametrize("changed", ["Models/author.py", "Models/book.py"])
def test_a_request_in_flight_ends_on_the_models_it_began_with(root: Path, changed: str) -> None:
    write_tree(root, {"Api/v1/Long/Get.py": LONG})
    app = development(root)
    app.boot()
    with TestClient(app) as client, ThreadPoolExecutor() as threads:
        reloader = Reloader(app)
        assert client.get("/v1/found").json() == [[True, "Le Guin"], 1]
        running = threads.submit(client.get, "/v1/long")
        deadline = time.monotonic() + PATIENCE
        while not (root / "begun").exists():
            assert time.monotonic() < deadline
        for number in range(3):
            source = AUTHOR if changed == "Models/author.py" else BOOK
            write_tree(root, {changed: f"{source}\n    n = {number}\n"})
            assert isinstance(reloader.reload([changed]), Reloaded)
        (root / "go").touch()
        answer = running.result()
        assert answer.json() == [True, True]
        (root / "Models/book.py").write_text("1 / 0\n")
        reloader.reload(["Models/book.py"])
        assert client.get("/v1/long").json() == [True, True]
