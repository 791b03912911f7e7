"""Fill the shelves of a new shop: three books, and a first customer."""

from typing import Any

from treefold_migrations import Migration, RunPython

FIRST_BOOKS = (
    ("9780441478125", "The Left Hand of Darkness", "Le Guin", 1299, ("science fiction",)),
    ("9780061054884", "The Dispossessed", "Le Guin", 1450, ("science fiction", "utopia")),
    ("9780553293357", "Foundation", "Asimov", 999, ("science fiction",)),
)


async def stock_shelves(models: Any, work: Any) -> None:
    """A shop that has books keeps its own."""
    if await models.book.objects.aexists():
        return
    await models.user.objects.acreate(name="ada", email="ada@example.org")
    for isbn, title, author, cents, genres in FIRST_BOOKS:
        by, _ = await models.author.objects.aget_or_create(name=author)
        book = await models.book.objects.acreate(
            isbn=isbn, title=title, author=by, cents=cents, stock=3
        )
        for name in genres:
            genre, _ = await models.genre.objects.aget_or_create(name=name)
            await models.book_genres.objects.acreate(book=book, genre=genre)


migration = Migration(after=["0001_initial"], operations=[RunPython(stock_shelves, RunPython.noop)])
