"""Models while their files change: a model that is imported anew takes the old one's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from serving import write_tree

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
