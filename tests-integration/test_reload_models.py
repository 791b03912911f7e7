"""Models while their files change: a model that is imported anew takes the old one's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from serving import write_tree

from treefold import Application
from treefold.orm import close_all
from treefold.testing import TestClient
from treefold_http.reload import Reloaded, Reloader

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
    from pathlib import Path
    from treefold.orm import configure, create_all
    from Models.author import Author
    from Models.book import Book

    configure(backend="sqlite", database=str(Path(__file__).with_name("x.db")))
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


def test_models_that_point_to_each_other_stay_together_through_every_reload(root: Path) -> None:
    app = Application(root, dev=True)
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
