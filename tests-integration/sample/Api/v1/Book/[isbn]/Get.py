from typing import TypedDict

from Models.catalogue import Book
from treefold import NotFound


class Detail(TypedDict):
    isbn: str
    title: str
    author: str
    price: float


async def handler(isbn: str) -> Detail:
    book = await Book.objects.select_related("author").filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    price = book.cents / 100
    return {"isbn": isbn, "title": book.title, "author": book.author.name, "price": price}
