from Models.catalogue import Book
from treefold import NotFound
from treefold.orm import Avg, Count

from ..Services.prices import price


async def handler(isbn: str):
    books = Book.objects.select_related("author")
    rated = books.annotate(rated=Count("reviews"), stars=Avg("reviews__stars"))
    book = await rated.filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    return {
        "isbn": isbn,
        "title": book.title,
        "author": book.author.name,
        "price": price(book.cents),
        "reviews": {"count": book.rated, "stars": book.stars},
    }
